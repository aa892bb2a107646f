// An operation of my side computed again from what it was given: the error that it adds itself,
// apart from what it was handed.
//
//   if (const auto again = introduced_error(record, "3_Layer/1_Linear"); again && again->of_bound > 1) …
#pragma once

#include <optional>
#include <string>

#include "capture/capture.h"

namespace ait::locate {

struct Introduced {
  // How far the worst element is off, in bounds of what rounding explains; above 1 it does not.
  double of_bound = 0;
};

// `operation` ran in the same round and on the same rank as the one that `record` is of. Nothing
// where there is no golden for it, or its inputs were not recorded.
std::optional<Introduced> introduced_error(const capture::TensorRecord& record,
                                           const std::string& operation);

}  // namespace ait::locate
