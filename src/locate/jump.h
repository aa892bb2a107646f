// The first row of a run at which the error is much larger than anywhere before it: where a fault
// begins, unless it is only the first lossy step. Rows come in the order of the computation.
//
//   ErrorJump jump;
//   compare_pairs(pairs, options, stop, [&](Row&& row, uint64_t) { jump.add(row); });
//   if (jump.row() != nullptr) …        // the error there, and jump.before() for what was before it
//
// This is the main header of `locate`. Another way to find where an error begins is a file pair
// beside this one that looks at rows in the same way.
#pragma once

#include <optional>
#include <string>

#include "compare/row.h"

namespace ait::locate {

class ErrorJump {
 public:
  void add(const compare::Row& row);

  // A NaN or an infinity on one side only is an error whatever the distance; where a side kept
  // statistics, the error is what these prove.
  const compare::Row* row() const { return row_ ? &*row_ : nullptr; }
  double before() const { return before_; }  // the largest error up to there

 private:
  std::string token_;
  double largest_ = 0;
  double before_ = 0;
  std::optional<compare::Row> row_;
};

}  // namespace ait::locate
