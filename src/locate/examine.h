// Looks at the tensors of findings for what may have made them.
//
//   const auto findings = examine(locator, [&](size_t number) { return pairs.at(number); });
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "locate/locate.h"
#include "match/pair.h"

namespace ait::locate {

// The pair of a row, by the row's number; fails where there is none.
using PairOf = std::function<Result<match::Pair>(size_t number)>;

// What was found, with the choices among it that rounding does not explain, and with the causes of the
// first few. A tensor that cannot be read any more leaves these empty.
std::vector<Finding> examine(const Locator& locator, const PairOf& pair_of);

// As far as a row knows it.
match::Pair pair_of(const compare::Row& row);

}  // namespace ait::locate
