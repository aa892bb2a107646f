// What came of one recorded call.
#pragma once

#include <string>

namespace ait::api_check {

// The verdicts are "True", "False", "SKIP" where it could not be run, "N/A" where there is nothing
// to judge.
struct ApiResult {
  std::string name;  // "Functional*linear*0"
  std::string forward;
  std::string backward;
  std::string message;
  std::string forward_within;
  std::string backward_within;
};

}  // namespace ait::api_check
