// A csv report of comparison rows with the store of the same rows beside it.
//
//   auto report = RowReport::create("out", "cmp_report.csv", comparison_columns(extended));
//   if (!report) return fail(report.error());
//   if (auto ok = report->append(row); !ok) return fail(ok.error());
//   auto path = report->finish();     // "out/cmp_report.csv", with "out/cmp_report.rows" beside it
//
// Until finish() neither is to be seen; without it they never are.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "compare/row_store.h"
#include "report/csv.h"
#include "tables/comparison.h"

namespace ait::tables {

class RowReport {
 public:
  static Result<RowReport> create(const std::string& folder, const std::string& name,
                                  ComparisonColumns columns);

  Result<void> append(const compare::Row& row);
  // `suffix` goes before the extension ("_partial"); `note` is what the store is to keep of all rows
  // together. Returns the path of the csv.
  Result<std::string> finish(std::string_view suffix = {}, std::string_view note = {});

 private:
  RowReport(ComparisonColumns columns, report::CsvWriter csv, compare::RowStoreWriter store)
      : columns_(std::move(columns)), csv_(std::move(csv)), store_(std::move(store)) {}

  ComparisonColumns columns_;
  report::CsvWriter csv_;
  compare::RowStoreWriter store_;
};

}  // namespace ait::tables
