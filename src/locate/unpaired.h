// Who is to blame where pairing itself was led astray: operations that have no partner although
// golden has one of the same name, and sums that were paired with one of their own addends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "locate/examine.h"

namespace ait::locate {

struct Culprit {
  std::string operation;
  std::string reason;  // a sentence
  std::vector<Cause> causes;
};

// Nothing where the pairs around the finding are in order.
std::optional<Culprit> led_astray(const Finding& finding, const PairOf& pair_of);

}  // namespace ait::locate
