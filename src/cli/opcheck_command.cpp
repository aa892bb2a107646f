#include <fmt/format.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "cli/report_name.h"
#include "opcheck/check.h"
#include "opcheck/words.h"
#include "tables/opcheck_report.h"

namespace ait::cli {
namespace {

using opcheck::CheckRow;

struct OpcheckOptions {
  opcheck::Search search;
  opcheck::Options options;
  std::string output_folder = ".";
  std::vector<opcheck::FailOn> fail_on;
  bool json = false;
};

// Words of the command that checks a single operation again.
std::vector<std::string> repeated(const OpcheckOptions& options) {
  std::vector<std::string> out;
  if (!options.search.table.empty()) out.insert(out.end(), {"-c", options.search.table});
  return out;
}

int run_opcheck(const OpcheckOptions& options) {
  const auto found = opcheck::find_cases(options.search);
  if (!found) return report_error(found.error());
  for (const Error& problem : found->problems) log_warning(problem.text());
  log_info(fmt::format("Total {} cases found under path: {}", found->cases.size(),
                       options.search.folder));
  if (found->cases.empty()) {
    if (options.json) return print("{\"rows\": [], \"report\": null}\n");
    return kDone;
  }
  auto report = tables::CheckReport::create({.folder = options.output_folder,
                                             .name = opcheck_name(),
                                             .metrics = options.options.metrics,
                                             .again = repeated(options),
                                             .json = options.json});
  if (!report) return report_error(report.error());
  std::optional<Error> problem;
  const GracefulStop stop;
  {
    Progress progress(found->cases.size());
    opcheck::check_cases(found->cases, options.options, stop.requested(),
                         [&](std::vector<CheckRow>&& rows) {
                           if (problem) return;
                           if (auto done = report->add(std::move(rows)); !done) {
                             problem = done.error();
                             stop.request();
                           }
                           progress.advance(report->summary().operations, 0);
                         });
  }
  if (problem) return report_error(*problem);
  if (auto path = report->finish(stop.requested() ? "_partial" : ""); !path)
    return report_error(path.error());
  int status = kDone;
  for (const opcheck::FailOn condition : options.fail_on)
    if (opcheck::is_met(condition, report->summary())) {
      status = kFailOnHit;
      log_warning(fmt::format("--fail-on {} is met", opcheck::word(condition)));
    }
  if (stop.requested()) status = kInterruptedStatus;
  return print(options.json ? report->document() : report->text(stdout_is_colourful()), status);
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
    auto ids = opcheck::parse_id_list(list_items(ids_));
    if (!ids) return fail(ids.error());
    options_.search.ids = std::move(*ids);
    options_.search.names = list_items(names_);
    const auto metrics = opcheck::parse_metrics(metrics_);
    if (!metrics) return fail(metrics.error());
    options_.options.metrics = *metrics;
    const auto device = opcheck::parse_device(device_);
    if (!device) return fail(device.error());
    const auto memory = opcheck::parse_memory(memory_);
    if (!memory) return fail(memory.error());
    options_.options.memory_bytes = *memory;
    auto fail_on = opcheck::parse_fail_on(list_items({fail_on_}));
    if (!fail_on) return fail(fail_on.error());
    options_.fail_on = std::move(*fail_on);
    return {};
  }

  int run() override { return run_opcheck(options_); }

 private:
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
