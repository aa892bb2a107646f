// Comma-separated reports: UTF-8 without a mark, "\n" line ends, quotes only where needed.
//
//   auto csv = CsvWriter::create("out", "cmp_report.csv", header);
//   if (!csv) return fail(csv.error());
//   for (const Row& row : rows)
//     if (auto ok = csv->append(texts(row)); !ok) return fail(ok.error());
//   auto path = csv->finish();  // until here no report is to be seen; without it none ever is
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/output_file.h"

namespace ait::report {

class CsvWriter {
 public:
  static Result<CsvWriter> create(const std::string& folder, const std::string& name,
                                  std::span<const std::string> header);

  Result<void> append(std::span<const std::string> cells);
  Result<std::string> finish(std::string_view suffix = {}) { return file_.finish(suffix); }

 private:
  explicit CsvWriter(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
  std::string line_;  // its memory serves every line
};

// One cell as it stands in the file, without anything that a terminal obeys (utf8.h). Text that a
// spreadsheet would run as a formula (it begins with + - = % @, their full-width twins, a tab or a
// line end, and is not a number) gets a ' in front.
std::string csv_cell(std::string_view text);

}  // namespace ait::report
