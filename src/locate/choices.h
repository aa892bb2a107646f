// Choices that differ: indices of experts, of the best word. Where two candidates of golden are as
// close as the scores of the two runs are apart, rounding chooses; otherwise something is wrong.
#pragma once

#include <optional>
#include <string>

#include "locate/examine.h"

namespace ait::locate {

// Why rounding does not explain the choices of a finding whose values are indices; nothing where it
// does, or where no scores were recorded that tell.
std::optional<std::string> unexplained_choice(const Finding& finding, const PairOf& pair_of);

}  // namespace ait::locate
