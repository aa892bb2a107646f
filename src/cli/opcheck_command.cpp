#include <fmt/format.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "cli/report_name.h"
#include "opcheck/request.h"
#include "rerun/runner.h"
#include "tables/opcheck_report.h"

namespace ait::cli {
namespace {

constexpr int kMostSeconds = 86400, kMostThreads = 1024;

struct OpcheckOptions {
  opcheck::Request request;
  bool save_error_data = false;
  std::string output_folder = ".";
  bool json = false;
};

// What was asked for and holds, as an exit status.
int status_of(const std::vector<opcheck::FailOn>& conditions, const opcheck::Summary& summary) {
  int status = kDone;
  for (const opcheck::FailOn condition : conditions)
    if (opcheck::is_met(condition, summary)) {
      status = kFailOnHit;
      log_warning(fmt::format("--fail-on {} is met", opcheck::word(condition)));
    }
  return status;
}

int check(const OpcheckOptions& options, rerun::Runner* runner) {
  const opcheck::Request& request = options.request;
  const auto found = opcheck::find_cases(request.search);
  if (!found) return report_error(found.error());
  for (const Error& problem : found->problems) log_warning(problem.text());
  log_info(fmt::format("Total {} cases found under path: {}", found->cases.size(),
                       request.search.folder));
  if (found->cases.empty()) return print(options.json ? "{\"rows\": [], \"report\": null}\n" : "");
  auto report = tables::CheckReport::create({.folder = options.output_folder,
                                             .name = opcheck_name(),
                                             .metrics = request.options.metrics,
                                             .again = request.again,
                                             .library = runner == nullptr ? "" : runner->library(),
                                             .save_error_data = options.save_error_data,
                                             .json = options.json});
  if (!report) return report_error(report.error());
  opcheck::Options how = request.options;
  how.runner = runner;
  how.error_folder = report->error_folder();
  const GracefulStop stop;
  {
    Progress progress(found->cases.size());
    opcheck::check_cases(found->cases, how, stop.requested(),
                         [&](std::vector<opcheck::CheckRow>&& rows) {
                           if (!report->add(std::move(rows))) stop.request();
                           progress.advance(report->summary().operations, 0);
                         });
  }
  if (auto path = report->finish(stop.requested() ? "_partial" : ""); !path)
    return report_error(path.error());
  const int status = status_of(request.fail_on, report->summary());
  return print(options.json ? report->document() : report->text(stdout_is_colourful()),
               stop.requested() ? kInterruptedStatus : status);
}

int run_opcheck(const OpcheckOptions& options) {
  keep_freed_memory();
  if (!options.request.rerun) return check(options, nullptr);
  const auto runner = rerun::Runner::start(options.request.library);
  if (!runner) return report_error(runner.error());
  log_info(
      fmt::format("Operations are run again by {}: {}", (*runner)->library(), (*runner)->plugin()));
  return check(options, runner->get());
}

class OpcheckCommand : public CommandOf<OpcheckOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.group("Input");
    set.add_required("-i,--input", words_.search.folder, "DIR",
                     "a dump of the acceleration library, or any part of one, as\n"
                     "OUTPUT_DIR/PID_TID/0/");
    set.add_option("-c,--csv-path", words_.search.table, "PATH",
                   "the table of operations, operation_tensors_0.csv; without it the\n"
                   "dump itself says what ran");
    set.group("Which");
    set.add_list("--operation-ids", ids_, "IDS",
                 "only these operations and what is inside them, as 24_1,2_3_5;\n"
                 "all if not given");
    set.add_list("--operation-name", names_, "NAMES",
                 "only operations whose name contains one of these, in upper or lower\n"
                 "case, as self,linear");
    set.group("Output");
    set.add_option("-o,--output", options_.output_folder, "DIR",
                   "folder for the result; the current one if not given");
    set.add_list("--precision-metric", words_.metrics, "METRIC...",
                 "more columns: any of abs, cos_sim, kl");
    add_json(set, options_.json);
    set.add_option("--fail-on", fail_on_, "LIST",
                   "end with status 1 if one of these occurs: failed (an output is\n"
                   "below its standard), bound (rounding does not explain it),\n"
                   "unchecked (an operation could not be checked)");
    set.add_flag("--save-error-data", options_.save_error_data,
                 "save inputs, parameters, outputs and golden of each operation that\n"
                 "fails, in a folder beside the result that can be checked with -i");
    set.group("Run again");
    set.add_flag("--atb-rerun", words_.rerun,
                 "run each operation again on the recorded inputs, and check that\n"
                 "result in place of the recorded one");
    set.add_option("--rerun-plugin", words_.plugin, "PATH",
                   "the plug-in to run operations with (docs/opcheck.md);\n"
                   "$AIT_OPCHECK_LIB_PATH or the CPU engine of ait if not given");
    set.add_number("--rerun-seconds", words_.rerun_seconds, 1, kMostSeconds, "N",
                   "how long one operation may take; 60 if not given");
    set.add_option("--device-id", words_.device, "N",
                   "the device for the plug-in; 0 if not given. Goldens run on the CPU");
    set.group("Other");
    set.add_option("--precision-mode", words_.precision, "MODE",
                   "convert floating-point tensors first: force_fp16 or\n"
                   "force_fp32; keep_origin_dtype if not given");
    set.add_option("--memory", words_.memory, "GIB",
                   "memory for all goldens that run at the same time; a quarter of\n"
                   "the machine's if not given");
    set.add_number("-j,--jobs,--threads", words_.threads, 1, kMostThreads, "N",
                   "threads to compute with; all cores if not given");
  }

  Result<void> understand() override {
    words_.ids = list_items(ids_);
    words_.search.names = list_items(names_);
    words_.fail_on = list_items({fail_on_});
    auto request = opcheck::understand(words_);
    if (!request) return fail(request.error());
    options_.request = std::move(*request);
    return {};
  }

  int run() override { return run_opcheck(options_); }

 private:
  opcheck::Words words_;
  std::vector<std::string> ids_;
  std::vector<std::string> names_;
  std::string fail_on_;
};

}  // namespace

CommandEntry opcheck_command() {
  return {"llm opcheck",
          "Check every operation of a dump against what it must give",
          {"-i DIR [options]",
           {"llm opcheck -i ait_dump -o out",
            "llm opcheck -i OUTPUT_DIR/PID_TID/0/ -c operation_tensors_0.csv",
            "llm opcheck -i ait_dump -ids 24_1,2_3_5 -metric kl cos_sim",
            "llm opcheck -i ait_dump -opname self,linear --fail-on bound",
            "llm opcheck -i ait_dump -rerun --save-error-data"},
           "  0  done, whatever was found\n"
           "  1  a condition of --fail-on was met\n"
           "  2  wrong usage, unreadable input, or a result that cannot be written\n"
           "  130  stopped by Ctrl-C; what was done is in a result named …_partial.csv\n"},
          &make_command<OpcheckCommand>};
}

}  // namespace ait::cli
