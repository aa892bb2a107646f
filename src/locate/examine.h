// Looks at the tensors of findings for what may have made them.
//
//   examine(findings, [&](size_t number) { return pairs.at(number); });
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "locate/locate.h"
#include "match/pair.h"

namespace ait::locate {

// The pair of a row, by the row's number.
using PairOf = std::function<Result<match::Pair>(size_t number)>;

// Fills Finding::causes of the first few. A tensor that cannot be read any more leaves them empty.
void examine(std::vector<Finding>& findings, const PairOf& pair_of);

// As far as a row knows it.
match::Pair pair_of(const compare::Row& row);

}  // namespace ait::locate
