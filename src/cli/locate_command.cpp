#include <filesystem>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "compare/row_store.h"
#include "locate/examine.h"
#include "locate/locate.h"
#include "report/json.h"
#include "report/utf8.h"
#include "summary/comparison.h"
#include "summary/findings.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;

struct LocateArguments {
  std::string path;
  std::string noise;
  bool explain = false;
  bool json = false;
};

constexpr std::string_view kRows = ".rows";

// The store of a report, of its csv, or of the newest report in a folder.
Result<std::string> find_store(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    std::string store = path.ends_with(kRows) ? path : compare::rows_path_of(path);
    if (fs::exists(store, ignored)) return store;
    return fail(Error(ErrorCode::kNotFound, store)
                << "is not there; the rows of a comparison lie beside its csv, so compare again "
                   "with: ait llm compare");
  }
  std::string newest;
  fs::file_time_type newest_time;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().extension() != kRows) continue;
    const fs::file_time_type time = entry.last_write_time(ignored);
    if (!newest.empty() && time <= newest_time) continue;
    newest = entry.path().native();
    newest_time = time;
  }
  if (newest.empty())
    return fail(Error(ErrorCode::kNotFound, path)
                << "holds no report of a comparison; make one with: ait llm compare -o "
                << printable(path));
  return newest;
}

template <typename Use>
Result<void> each_row(const compare::RowStore& store, const Use& use) {
  for (size_t i = 0; i < store.size(); ++i) {
    auto row = store.at(i);
    if (!row) return fail(row.error());
    use(std::move(*row));
  }
  return {};
}

// Only pairs that were found by the order of the computation are in that order.
Result<bool> are_in_order(const compare::RowStore& store) {
  bool in_order = false;
  auto read = each_row(store, [&](const compare::Row& row) {
    in_order |= row.origin.is_known || row.subject.layer.has_value();
  });
  if (!read) return fail(read.error());
  return in_order;
}

Result<locate::NoiseRun> read_noise(const std::string& path) {
  locate::NoiseRun noise;
  const auto name = find_store(path);
  if (!name) return fail(name.error());
  const auto store = compare::RowStore::open(*name);
  if (!store) return fail(store.error());
  auto read = each_row(*store, [&](const compare::Row& row) { noise.add(row); });
  if (!read) return fail(read.error());
  noise.settle();
  return noise;
}

int run_locate(const LocateArguments& options) {
  const auto name = find_store(options.path);
  if (!name) return report_error(name.error());
  const auto store = compare::RowStore::open(*name);
  if (!store) return report_error(store.error());
  if (!store->is_complete())
    log_warning(printable(*name) + " ends early: only its whole blocks of rows are looked at");
  const auto in_order = are_in_order(*store);
  if (!in_order) return report_error(in_order.error());
  locate::NoiseRun noise;
  if (!options.noise.empty()) {
    auto measured = read_noise(options.noise);
    if (!measured) return report_error(measured.error());
    noise = std::move(*measured);
  }

  summary::ComparisonSummary found;
  locate::Locator locator(
      {.in_order = *in_order, .noise = options.noise.empty() ? nullptr : &noise},
      [&](compare::Row&& row, uint64_t) { found.add(row); });
  if (auto read = each_row(*store, [&](compare::Row row) { locator.add(std::move(row), 0); });
      !read)
    return report_error(read.error());
  locator.finish();
  const std::vector<locate::Finding> findings =
      locate::examine(locator, [&](size_t number) -> Result<match::Pair> {
        if (number >= store->size())
          return fail(Error(ErrorCode::kNotFound) << "there is no such row");
        const auto row = store->at(number);
        if (!row) return fail(row.error());
        return locate::pair_of(*row);
      });
  if (options.json) {
    report::JsonObject document;
    document.set("rows", uint64_t{store->size()})
        .set("in_order", *in_order)
        .set("findings", summary::findings_json(findings))
        .set("jump", summary::jump_json(findings))
        .set("store", *name);
    return print(report::Json(std::move(document)).text() + "\n", kDone);
  }
  std::string out =
      *in_order ? summary::findings_text(findings, found.differing(), options.explain)
                : "These rows are in no order of computation, so that each stands for "
                  "itself; the columns verdict and verdict_reason of --extended tell more.\n";
  return print(
      out + "\n" + found.text(stdout_is_colourful()) + "\n" + found.next_step(findings, *name),
      kDone);
}

class LocateCommand : public CommandOf<LocateArguments> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("REPORT", options_.path,
                    "a report of `ait llm compare`, the file of rows beside it, or the folder\n"
                    "that holds them, of which the newest is taken");
    set.group("Input");
    set.add_option("--noise", options_.noise, "REPORT",
                   "the report of a comparison of the same golden run with one that is\n"
                   "healthy by definition: what that is off by is noise");
    set.group("Output");
    set.add_flag("--explain", options_.explain,
                 "with each finding, where its threshold comes from");
    add_json(set, options_.json);
  }

  int run() override { return run_locate(options_); }
};

}  // namespace

CommandEntry locate_command() {
  return {"locate",
          "Say where a comparison goes wrong, from its report",
          {"REPORT [options]",
           {"locate out/ait_cmp_report_20250102030405.csv", "locate out --explain"}},
          &make_command<LocateCommand>};
}

}  // namespace ait::cli
