// The result of a check of single operators: its csv, and what a person or a script is told of it.
//
//   auto report = CheckReport::create({.folder = "out", .name = "opcheck_result.csv"});
//   if (!report) return fail(report.error());
//   if (auto done = report->add(std::move(rows)); !done) return fail(done.error());
//   auto path = report->finish();   // until here no csv is to be seen; without it none ever is
//   print(report->text(false));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "opcheck/summary.h"
#include "report/csv.h"
#include "report/json.h"
#include "tables/opcheck.h"

namespace ait::tables {

class CheckReport {
 public:
  struct Settings {
    std::string folder = ".";
    std::string name;
    opcheck::Metrics metrics = {};
    // Options that the command for a single operation repeats: {"-c", "table.csv"}.
    std::vector<std::string> again = {};
    std::string library = {};      // what runs operations again, in words; empty: nothing
    bool save_error_data = false;  // there is an error_folder()
    bool json = false;             // keeps all rows for document()
  };
  static Result<CheckReport> create(Settings settings);

  // Beside the csv, for the data of operations that fail; empty where none are saved.
  std::string error_folder() const;

  // The rows of one operation; those that failed get their command. After a failure (a full disk)
  // nothing more is added.
  Result<void> add(std::vector<opcheck::CheckRow>&& rows);
  // The path of the csv; `suffix` goes before the extension ("_partial"). Fails where add() has.
  Result<std::string> finish(std::string_view suffix = {});

  const opcheck::Summary& summary() const { return summary_; }
  std::string text(bool colourful) const;
  std::string document();

 private:
  CheckReport(Settings settings, CheckColumns columns, report::CsvWriter csv)
      : settings_(std::move(settings)), columns_(std::move(columns)), csv_(std::move(csv)) {}

  Settings settings_;
  CheckColumns columns_;
  report::CsvWriter csv_;
  opcheck::Summary summary_;
  report::JsonArray rows_;
  std::optional<Error> problem_;
  std::string path_;
};

}  // namespace ait::tables
