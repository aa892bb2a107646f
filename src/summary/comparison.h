// What the comparison of many pairs comes to, for the end of a command: counts, the worst rows, and
// where the error begins.
//
//   ComparisonSummary summary;
//   compare_pairs(pairs, options, stop, [&](Row&& row, uint64_t) { summary.add(row); });
//   print(summary.text(coloured) + summary.jump_text());
//
// This is the main header of `summary`, which has the words and the JSON of every command's result.
// Another kind of result is a file pair beside this one; what it says is told by a test.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/row.h"
#include "locate/jump.h"
#include "report/json.h"
#include "tables/comparison.h"

namespace ait::summary {

// Keeps a few rows, however many are added.
class ComparisonSummary {
 public:
  void add(const compare::Row& row);

  size_t rows() const { return rows_; }
  size_t paired() const { return identical_ + differing_ + by_statistics_ + failed_; }

  std::string text(bool coloured) const;

  // Where the error begins; rows must be in the order of the computation for that.
  std::string jump_text() const;
  // What to look at next; `in_order` as above.
  std::string next_step(bool in_order, const std::string& report_path) const;

  report::JsonObject json(const tables::ComparisonColumns& columns) const;
  // The data_id of the row at which the error jumps, or nothing.
  report::Cell jump_json() const;

 private:
  std::string jump_size(const compare::Row& row) const;
  void keep_if_worst(const compare::Row& row);
  std::string worst_table(bool coloured) const;

  size_t rows_ = 0;
  size_t identical_ = 0;
  size_t differing_ = 0;
  size_t by_statistics_ = 0;
  size_t failed_ = 0;
  size_t only_golden_ = 0;
  size_t only_actual_ = 0;
  std::map<std::string, size_t> reasons_;
  size_t non_finite_ = 0;
  std::optional<compare::Row> first_non_finite_;
  std::vector<compare::Row> worst_;
  std::optional<compare::Row> farthest_;
  locate::ErrorJump jump_;
};

}  // namespace ait::summary
