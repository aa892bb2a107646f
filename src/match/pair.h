// Who is to be compared with whom. A matcher turns two captures into these; nothing upstream of
// compare reads a tensor.
#pragma once

#include <string>
#include <vector>

#include "capture/capture.h"

namespace ait::match {

struct Pair {
  std::string token_id = "0";
  std::string data_id = "0";
  // Without a path: there is no such side.
  capture::TensorRecord golden;
  capture::TensorRecord actual;

  bool complete() const { return !golden.path.empty() && !actual.path.empty(); }
};

}  // namespace ait::match
