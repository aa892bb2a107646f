#pragma once

#include <string>

namespace ait::locate {

struct Cause {
  std::string name;
  std::string text;
  double residual_error = 0;
  double error = 0;
};

}  // namespace ait::locate
