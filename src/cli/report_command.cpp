#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/log.h"
#include "cli/command.h"
#include "cli/page_file.h"
#include "cli/process_io.h"
#include "cli/stored_rows.h"
#include "page/results.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string path;
  std::string output;
  std::string noise;
};

// The newest result in a folder, or the one that the path is; nothing where it is none but perhaps a
// comparison.
std::string find_result(const std::string& path) {
  if (page::result_kind(path)) return path;
  std::string newest;
  fs::file_time_type newest_time;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (!page::result_kind(entry.path().native())) continue;
    const fs::file_time_type time = entry.last_write_time(ignored);
    if (!newest.empty() && time <= newest_time) continue;
    newest = entry.path().native();
    newest_time = time;
  }
  return newest;
}

std::string beside(const std::string& path) {
  return fs::path(path).replace_extension(".html").native();
}

int write(const ReportArguments& options, const std::string& source,
          const Result<page::Page>& page) {
  if (!page) return report_error(page.error());
  const auto written =
      page::write_page(options.output.empty() ? beside(source) : options.output, *page);
  if (!written) return report_error(written.error());
  return print(page_line(*written), kDone);
}

Result<page::Page> page_of(const std::string& name, const std::string& noise_path) {
  const auto store = compare::RowStore::open(name);
  if (!store) return fail(store.error());
  if (!store->is_complete())
    log_warning(fmt::format("{} was cut short: only its first {} rows are used", printable(name),
                            store->size()));
  const auto in_order = are_in_order(*store);
  if (!in_order) return fail(in_order.error());
  auto note = store->note();
  if (!note) return fail(note.error());
  std::optional<locate::NoiseRun> noise;
  if (!noise_path.empty()) {
    auto measured = read_noise(noise_path);
    if (!measured) return fail(measured.error());
    noise = std::move(*measured);
  }
  page::ComparisonPage rows;
  const auto findings = locate_in(*store, *in_order, noise ? &*noise : nullptr,
                                  [&](const compare::Row& row) { rows.add(row); });
  if (!findings) return fail(findings.error());
  page::ComparisonFacts facts;
  facts.findings = &*findings;
  facts.pair_of = [&](size_t number) { return pair_in(*store, number); };
  facts.in_order = *in_order;
  facts.complete = store->is_complete();
  facts.report = name;
  facts.note = std::move(*note);
  facts.noise = noise_path;
  add_origin(facts);
  return std::move(rows).finish(facts);
}

int run_report(const ReportArguments& options) {
  const auto store = find_store(options.path);
  if (store) return write(options, *store, page_of(*store, options.noise));
  const std::string result = find_result(options.path);
  std::error_code ignored;
  if (result.empty() && fs::exists(options.path, ignored) &&
      !fs::is_directory(options.path, ignored))
    return write(options, options.path, page::result_page(options.path, AIT_VERSION));
  if (result.empty()) return report_error(store.error());
  if (!options.noise.empty())
    return report_error(
        Error(ErrorCode::kUsage, result)
        << "is not a comparison of two runs, so --noise has no effect; leave it out");
  return write(options, result, page::result_page(result, AIT_VERSION));
}

class ReportCommand : public CommandOf<ReportArguments> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("REPORT", options_.path,
                    "a report of `ait llm compare` or the file of rows beside it, the csv of\n"
                    "`ait llm opcheck` or `ait api check`, the manifest.json of a dump, the\n"
                    "result of `ait llm errcheck`, or a folder; its newest report is taken");
    set.group("Input");
    set.add_option("--noise", options_.noise, "REPORT",
                   "the report of a comparison of the same golden run with one that is\n"
                   "healthy by definition: what that is off by is noise");
    set.group("Output");
    set.add_option("-o,--output", options_.output, "FILE",
                   "the page to write; beside the report, with the extension .html,\nif not given");
  }

  int run() override { return run_report(options_); }
};

}  // namespace

CommandEntry report_command() {
  return {"report",
          "Make an html page of a report",
          {"REPORT [options]",
           {"report out/ait_cmp_report_20250102030405.csv", "report out -o report.html",
            "report golden_run/ait_dump/manifest.json -o dump.html"}},
          &make_command<ReportCommand>};
}

}  // namespace ait::cli
