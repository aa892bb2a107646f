#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "cli/report_name.h"
#include "opcheck/check.h"
#include "report/csv.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "tables/opcheck.h"

namespace ait::cli {
namespace {

using opcheck::CheckRow;
using opcheck::Verdict;
using report::Align;
using report::Cell;

constexpr size_t kWorstRows = 10;
constexpr size_t kShownReasons = 5;

// What is wrong with a row, the worst first: outside of what rounding explains, then not up to the
// standard, then not checked.
int rank_of(const CheckRow& row) {
  if (row.is_outside_bound()) return 0;
  if (row.was_compared()) return row.verdict == Verdict::kFailed ? 1 : 3;
  return 2;
}

bool is_worse(const CheckRow& a, const CheckRow& b) {
  if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b);
  return a.of_bound.value_or(0) > b.of_bound.value_or(0);
}

// What is kept of the rows once they are in the report.
struct Summary {
  size_t operations = 0;
  size_t outputs = 0;  // that were compared
  size_t outside = 0;  // of them, beyond what rounding explains
  size_t below = 0;    // of them, below the standard
  size_t unchecked = 0;
  std::map<std::string, size_t> reasons;  // why operations were not checked
  std::vector<CheckRow> worst;

  void add(const CheckRow& row) {
    if (!row.was_compared()) {
      ++unchecked;
      ++reasons[row.reasons.empty() ? "no reason is known" : row.reasons.back()];
      return;
    }
    ++outputs;
    if (row.is_outside_bound()) ++outside;
    if (row.verdict == Verdict::kFailed) ++below;
    if (!row.is_outside_bound() && row.verdict == Verdict::kPass) return;
    worst.insert(std::upper_bound(worst.begin(), worst.end(), row, is_worse), row);
    if (worst.size() > kWorstRows) worst.pop_back();
  }
};

std::string summary_text(const Summary& summary, const std::string& report) {
  std::string out = fmt::format(
      "\n{} operations: {} outputs checked, {} not explained by rounding, {} below the standard, "
      "{} "
      "not checked\n",
      summary.operations, summary.outputs, summary.outside, summary.below, summary.unchecked);
  if (!summary.worst.empty()) {
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
           std::string(tables::verdict_text(row.verdict))});
    out += "\n" + table.text(stdout_is_colourful());
  }
  std::vector<std::pair<size_t, std::string>> reasons;
  for (const auto& [reason, count] : summary.reasons) reasons.emplace_back(count, reason);
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < std::min(reasons.size(), kShownReasons); ++i)
    out +=
        fmt::format("{} not checked: {}\n", reasons[i].first, report::visible(reasons[i].second));
  out += "\nOpcheck results saved to: " + report::visible(report) + "\n";
  if (!summary.worst.empty()) {
    const CheckRow& first = summary.worst.front();
    out += fmt::format("Again: ait llm opcheck -i {} -ids {}\n", report::visible(first.folder),
                       first.id);
  }
  return out;
}

report::JsonObject summary_json(const Summary& summary) {
  report::JsonObject object;
  object.set("operations", uint64_t{summary.operations})
      .set("outputs", uint64_t{summary.outputs})
      .set("outside_bound", uint64_t{summary.outside})
      .set("below_standard", uint64_t{summary.below})
      .set("not_checked", uint64_t{summary.unchecked});
  return object;
}

enum class FailOn : uint8_t { kStandard, kBound, kUnchecked };

bool is_met(FailOn condition, const Summary& summary) {
  switch (condition) {
    case FailOn::kStandard:
      return summary.below > 0;
    case FailOn::kBound:
      return summary.outside > 0;
    default:
      return summary.unchecked > 0;
  }
}

struct FailOnWord {
  std::string_view word;
  FailOn condition;
};
constexpr FailOnWord kFailOnWords[] = {
    {"failed", FailOn::kStandard}, {"bound", FailOn::kBound}, {"unchecked", FailOn::kUnchecked}};

struct OpcheckOptions {
  opcheck::Search search;
  opcheck::Options options;
  std::string output_folder = ".";
  std::vector<FailOnWord> fail_on;
  bool json = false;
};

// Goldens take and free megabytes for every operation. To give such memory back to the system and
// take it again, cleared page by page, costs a fifth of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestKept = 32 << 20;  // the most that is allowed
  constexpr int kKept = 512 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestKept);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

int run_opcheck(const OpcheckOptions& options) {
  keep_freed_memory();
  const auto found = opcheck::find_cases(options.search);
  if (!found) return report_error(found.error());
  for (const Error& problem : found->problems) log_warning(problem.text());
  log_info(fmt::format("Total {} cases found under path: {}", found->cases.size(),
                       options.search.folder));
  if (found->cases.empty()) {
    if (options.json) return print("{\"rows\": [], \"report\": null}\n");
    return kDone;
  }
  const opcheck::Metrics& asked = options.options.metrics;
  const auto columns = tables::check_columns({asked.absolute, asked.cosine, asked.kl});
  auto csv = report::CsvWriter::create(options.output_folder, opcheck_name(),
                                       report::column_names(columns));
  if (!csv) return report_error(csv.error());
  Summary summary;
  report::JsonArray rows_json;
  std::optional<Error> problem;
  const GracefulStop stop;
  {
    Progress progress(found->cases.size());
    opcheck::check_cases(
        found->cases, options.options, stop.requested(), [&](std::vector<CheckRow>&& rows) {
          progress.advance(++summary.operations, 0);
          for (const CheckRow& row : rows) {
            summary.add(row);
            if (options.json) rows_json.emplace_back(report::column_json(columns, row));
            if (problem) continue;
            if (auto done = csv->append(tables::check_texts(columns, row)); !done) {
              problem = done.error();
              stop.request();
            }
          }
        });
  }
  if (problem) return report_error(*problem);
  const auto path = csv->finish(stop.requested() ? "_partial" : "");
  if (!path) return report_error(path.error());
  int status = kDone;
  for (const FailOnWord& word : options.fail_on)
    if (is_met(word.condition, summary)) {
      status = kFailOnHit;
      log_warning(fmt::format("--fail-on {} is met", word.word));
    }
  if (stop.requested()) status = kInterruptedStatus;
  if (!options.json) return print(summary_text(summary, *path), status);
  report::JsonObject root;
  root.set("rows", std::move(rows_json)).set("summary", summary_json(summary)).set("report", *path);
  return print(report::Json(std::move(root)).text() + "\n", status);
}

// "24_1,2_3_5"
Result<std::vector<std::vector<uint64_t>>> parse_ids(const std::vector<std::string>& words) {
  std::vector<std::vector<uint64_t>> out;
  for (const std::string& item : list_items(words)) {
    std::vector<uint64_t> ids;
    std::string_view rest(item);
    while (true) {
      const std::string_view part = rest.substr(0, rest.find('_'));
      uint64_t id = 0;
      const auto [end, bad] = std::from_chars(part.data(), part.data() + part.size(), id);
      if (bad != std::errc() || end != part.data() + part.size())
        return fail(Error(ErrorCode::kUsage) << "-ids does not understand '" << printable(item)
                                             << "', give ids as 24_1,2_3_5");
      ids.push_back(id);
      if (part.size() == rest.size()) break;
      rest.remove_prefix(part.size() + 1);
    }
    out.push_back(std::move(ids));
  }
  return out;
}

class OpcheckCommand : public CommandOf<OpcheckOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.group("Input");
    set.add_required("-i,--input", options_.search.folder, "DIR",
                     "a dump of the acceleration library, or any part of one, as\n"
                     "OUTPUT_DIR/PID_TID/0/");
    set.add_option("-c,--csv-path", options_.search.table, "PATH",
                   "the table of operations, operation_tensors_0.csv; without it the\n"
                   "dump itself says what ran");
    set.group("Which");
    set.add_list("--operation-ids", ids_, "IDS",
                 "only these operations and what is inside them, as 24_1,2_3_5;\n"
                 "all if not given");
    set.add_list("--operation-name", names_, "NAMES",
                 "only operations whose name holds one of these, in any case, as\n"
                 "self,linear");
    set.group("Output");
    set.add_option("-o,--output", options_.output_folder, "DIR",
                   "folder for the result; the current one if not given");
    set.add_list("--precision-metric", metrics_, "METRIC...",
                 "more columns: any of abs, cos_sim, kl");
    add_json(set, options_.json);
    set.add_option("--fail-on", fail_on_, "LIST",
                   "end with status 1 where one holds: failed (an output is below\n"
                   "its standard), bound (rounding does not explain it), unchecked");
    set.group("Other");
    set.add_option("--device-id", device_, "N",
                   "the device to run on; goldens run on the CPU, so it is only\n"
                   "checked to be a number");
    set.add_option("--memory", memory_, "GIB",
                   "what all goldens at a time may take; a quarter of the machine's\n"
                   "if not given");
    add_threads(set, options_.options.threads);
  }

  Result<void> understand() override {
    auto ids = parse_ids(ids_);
    if (!ids) return fail(ids.error());
    options_.search.ids = std::move(*ids);
    options_.search.names = list_items(names_);
    for (const std::string& metric : metrics_) {
      if (metric == "abs")
        options_.options.metrics.absolute = true;
      else if (metric == "cos_sim")
        options_.options.metrics.cosine = true;
      else if (metric == "kl")
        options_.options.metrics.kl = true;
      else
        return fail(Error(ErrorCode::kUsage) << "-metric does not know '" << printable(metric)
                                             << "', give abs, cos_sim or kl");
    }
    if (!device_.empty() && device_.find_first_not_of("0123456789") != std::string::npos)
      return fail(Error(ErrorCode::kUsage) << printable(device_) << " is an invalid int value");
    if (auto memory = understand_memory(); !memory) return memory;
    return understand_fail_on();
  }

  int run() override { return run_opcheck(options_); }

 private:
  Result<void> understand_memory() {
    if (memory_.empty()) return {};
    double gibibytes = 0;
    const char* end = memory_.data() + memory_.size();
    const auto [stop, bad] = std::from_chars(memory_.data(), end, gibibytes);
    if (bad != std::errc() || stop != end || !(gibibytes > 0) || gibibytes > 1e6)
      return fail(Error(ErrorCode::kUsage) << "--memory does not understand '" << printable(memory_)
                                           << "', give a number of GiB, as 8");
    options_.options.memory_bytes = static_cast<size_t>(gibibytes * (size_t{1} << 30));
    return {};
  }

  Result<void> understand_fail_on() {
    for (const std::string& item : list_items({fail_on_})) {
      const auto* found = std::find_if(std::begin(kFailOnWords), std::end(kFailOnWords),
                                       [&](const FailOnWord& each) { return each.word == item; });
      if (found == std::end(kFailOnWords))
        return fail(Error(ErrorCode::kUsage) << "--fail-on does not know '" << printable(item)
                                             << "', give failed, bound or unchecked");
      options_.fail_on.push_back(*found);
    }
    return {};
  }

  std::vector<std::string> ids_;
  std::vector<std::string> names_;
  std::vector<std::string> metrics_;
  std::string fail_on_;
  std::string device_;
  std::string memory_;
};

}  // namespace

CommandEntry opcheck_command() {
  return {"llm opcheck",
          "Check every operation of a dump against what it must give",
          {"-i DIR [options]",
           {"llm opcheck -i ait_dump -o out",
            "llm opcheck -i OUTPUT_DIR/PID_TID/0/ -c operation_tensors_0.csv",
            "llm opcheck -i ait_dump -ids 24_1,2_3_5 -metric kl cos_sim",
            "llm opcheck -i ait_dump -opname self,linear --fail-on bound"},
           "  0  done, whatever was found\n"
           "  1  a condition of --fail-on was met\n"
           "  2  wrong usage, unreadable input, or a result that cannot be written\n"
           "  130  stopped by Ctrl-C; what was done is in a result named …_partial.csv\n"},
          &make_command<OpcheckCommand>};
}

}  // namespace ait::cli
