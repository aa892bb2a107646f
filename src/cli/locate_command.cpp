#include <fmt/format.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "cli/stored_rows.h"
#include "locate/locate.h"
#include "report/json.h"
#include "report/utf8.h"
#include "report/wrap.h"
#include "summary/comparison.h"
#include "summary/findings.h"

namespace ait::cli {
namespace {

struct LocateArguments {
  std::string path;
  std::string noise;
  bool explain = false;
  bool json = false;
};

int run_locate(const LocateArguments& options) {
  const auto name = find_store(options.path);
  if (!name) return report_error(name.error());
  const auto store = compare::RowStore::open(*name);
  if (!store) return report_error(store.error());
  if (!store->is_complete())
    log_warning(fmt::format("{} was cut short: only its first {} rows are used", printable(*name),
                            store->size()));
  const auto in_order = are_in_order(*store);
  if (!in_order) return report_error(in_order.error());
  locate::NoiseRun noise;
  if (!options.noise.empty()) {
    auto measured = read_noise(options.noise);
    if (!measured) return report_error(measured.error());
    noise = std::move(*measured);
  }

  summary::ComparisonSummary found;
  const auto findings = locate_in(*store, *in_order, options.noise.empty() ? nullptr : &noise,
                                  [&](const compare::Row& row) { found.add(row); });
  if (!findings) return report_error(findings.error());
  if (options.json) {
    report::JsonObject document;
    document.set("rows", uint64_t{store->size()})
        .set("in_order", *in_order)
        .set("findings", summary::findings_json(*findings))
        .set("jump", summary::jump_json(*findings))
        .set("store", *name);
    return print(report::Json(std::move(document)).text() + "\n", kDone);
  }
  std::string out =
      *in_order ? summary::findings_text(*findings, found.differing(), options.explain)
                : "The report does not say in which order these rows were computed, so each one is "
                  "judged by itself; the columns verdict and verdict_reason of --extended tell "
                  "more.\n";
  const size_t columns = stdout_columns();
  return print(report::wrapped(out, columns) + "\n" + found.text(stdout_is_colourful(), columns) +
                   "\n" + found.next_step(*findings, *name),
               kDone);
}

class LocateCommand : public CommandOf<LocateArguments> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("REPORT", options_.path,
                    "a report of `ait llm compare`, the file of rows beside it, or the folder\n"
                    "that holds them; the newest in a folder is taken");
    set.group("Input");
    set.add_option("--noise", options_.noise, "REPORT",
                   "the report that compares the same golden run with one that is known\n"
                   "to be healthy; its differences are taken for noise");
    set.group("Output");
    set.add_flag("--explain", options_.explain,
                 "say of each finding where its threshold comes from");
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
