// What the comparison of many pairs comes to, for the end of a command: counts and the worst rows.
//
//   ComparisonSummary summary;
//   compare_pairs(pairs, options, stop, [&](Row&& row, uint64_t) { summary.add(row); });
//   print(summary.text(coloured));
//
// This is the main header of `summary`, which has the words and the JSON of every command's result.
// Another kind of result is a file pair beside this one; what it says is told by a test.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/row.h"
#include "locate/locate.h"
#include "report/json.h"
#include "tables/comparison.h"

namespace ait::summary {

// Keeps a few rows, however many are added.
class ComparisonSummary {
 public:
  void add(const compare::Row& row);

  size_t rows() const { return rows_; }
  size_t paired() const { return identical_ + differing_ + by_statistics_ + failed_; }

  // For a terminal of so many columns; 0: as wide as it gets.
  std::string text(bool coloured, size_t columns = 0) const;

  size_t differing() const { return differing_ + by_statistics_ + non_finite_; }

  // What to look at next: where the error begins, if that was found.
  std::string next_step(const std::vector<locate::Finding>& findings,
                        const std::string& report_path) const;

  report::JsonObject json(const tables::ComparisonColumns& columns) const;

 private:
  void keep_if_worst(const compare::Row& row);
  std::string worst_table(bool coloured, size_t columns) const;
  std::string layers_text(size_t columns) const;
  void note_layer(const compare::Row& row);

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
  std::map<uint32_t, double> layers_;  // the most times that an error exceeds what is expected
};

}  // namespace ait::summary
