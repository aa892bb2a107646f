#include "tables/opcheck_report.h"

#include <algorithm>

#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::tables {
namespace {

using opcheck::CheckRow;
using opcheck::Summary;
using report::Align;

constexpr size_t kShownReasons = 5;

std::string again_text(const CheckRow& row, const std::vector<std::string>& options) {
  std::string out =
      "ait llm opcheck -i " + report::shell_word(row.again_folder) + " -ids " + row.id;
  for (const std::string& each : options) out += " " + report::shell_word(each);
  return out;
}

std::string worst_text(const Summary& summary, bool colourful) {
  report::Table table({{"op_id"},
                       {"op_name"},
                       {"rank"},
                       {"round"},
                       {"output", Align::kRight},
                       {"error of bound", Align::kRight},
                       {"rate", Align::kRight},
                       {"standard"}});
  for (const CheckRow& row : summary.worst)
    table.add(
        {row.id, row.type, row.rank, row.round, row.output ? std::to_string(*row.output) : "",
         row.of_bound ? report::number_text(*row.of_bound) : "",
         row.relative_rate_percent ? report::number_text(*row.relative_rate_percent) + "%" : "",
         std::string(verdict_text(row.verdict))});
  return table.text(colourful);
}

// The commonest first.
std::string reasons_text(const Summary& summary) {
  std::vector<std::pair<std::string, size_t>> reasons(summary.reasons.begin(),
                                                      summary.reasons.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (size_t i = 0; i < std::min(reasons.size(), kShownReasons); ++i)
    out += std::to_string(reasons[i].second) +
           " not checked: " + report::visible(reasons[i].first) + "\n";
  return out;
}

// One line for each operation of the worst rows, which may have several outputs.
std::string again_lines(const Summary& summary) {
  std::vector<std::string> shown;
  std::string out;
  for (const CheckRow& row : summary.worst) {
    if (std::find(shown.begin(), shown.end(), row.again) != shown.end()) continue;
    shown.push_back(row.again);
    out += "Again: " + row.again + "\n";
  }
  return out;
}

}  // namespace

Result<CheckReport> CheckReport::create(Settings settings) {
  CheckColumns columns = check_columns(settings.metrics);
  auto csv =
      report::CsvWriter::create(settings.folder, settings.name, report::column_names(columns));
  if (!csv) return fail(csv.error());
  return CheckReport(std::move(settings), std::move(columns), std::move(*csv));
}

std::string CheckReport::error_folder() const {
  if (!settings_.save_error_data) return "";
  return settings_.folder + "/" + settings_.name.substr(0, settings_.name.rfind('.')) +
         "_error_data";
}

Result<void> CheckReport::add(std::vector<CheckRow>&& rows) {
  if (problem_) return fail(*problem_);
  for (CheckRow& row : rows) {
    if (row.is_failing()) row.again = again_text(row, settings_.again);
    if (settings_.json) rows_.emplace_back(report::column_json(columns_, row));
    if (auto done = csv_.append(check_texts(columns_, row)); !done) {
      problem_ = done.error();
      return done;
    }
  }
  summary_.add(rows);
  return {};
}

Result<std::string> CheckReport::finish(std::string_view suffix) {
  if (problem_) return fail(*problem_);
  auto path = csv_.finish(suffix);
  if (path) path_ = *path;
  return path;
}

std::string CheckReport::text(bool colourful) const {
  const auto count = [](size_t number) { return std::to_string(number); };
  std::string out = "\n" + count(summary_.operations) + " operations: " + count(summary_.outputs) +
                    " outputs checked, " + count(summary_.outside) +
                    " not explained by rounding, " + count(summary_.below) +
                    " below the standard, " + count(summary_.unchecked) + " not checked\n";
  if (!settings_.library.empty())
    out += count(summary_.rerun) + " outputs are those of " + settings_.library + ", " +
           count(summary_.outputs - summary_.rerun) + " those of the dump\n";
  if (!summary_.worst.empty()) out += "\n" + worst_text(summary_, colourful);
  out += reasons_text(summary_);
  out += "\nOpcheck results saved to: " + report::visible(path_) + "\n";
  if (summary_.saved > 0)
    out += "Error data of " + count(summary_.saved) +
           " operations saved to: " + report::visible(error_folder()) + "\n";
  return out + again_lines(summary_);
}

std::string CheckReport::document() {
  report::JsonObject counts;
  counts.set("operations", uint64_t{summary_.operations})
      .set("outputs", uint64_t{summary_.outputs})
      .set("outside_bound", uint64_t{summary_.outside})
      .set("below_standard", uint64_t{summary_.below})
      .set("not_checked", uint64_t{summary_.unchecked})
      .set("rerun", uint64_t{summary_.rerun})
      .set("saved", uint64_t{summary_.saved});
  report::JsonObject root;
  root.set("rows", std::move(rows_)).set("summary", counts).set("report", path_);
  if (summary_.saved > 0) root.set("error_data", error_folder());
  return report::Json(std::move(root)).text() + "\n";
}

}  // namespace ait::tables
