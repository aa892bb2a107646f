// Rows of a round that hold no token, but fill a sequence up to the length of the longest, as the
// mask that a torch model was given says it.
#pragma once

#include <memory>
#include <vector>

#include "match/program.h"
#include "match/tokens.h"

namespace ait::match {

// Of each row of [sequences, tokens], whether it is padding. Null where no mask was recorded, or none
// hides a token of the round.
std::shared_ptr<const std::vector<bool>> find_padding(const RunSide& side, const SideStep& step);

}  // namespace ait::match
