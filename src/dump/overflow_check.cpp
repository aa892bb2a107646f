#include "dump/overflow_check.h"

#include <fmt/format.h>

#include <ctime>

#include "dump/folders.h"
#include "dump/judgement.h"
#include "dump/probes.h"
#include "dump/texts.h"

namespace ait::dump {
namespace {

void find_problems(OverflowCheck& check, const launch::Program& program) {
  const RecordedRun& run = check.end.run;
  if (run.processes.empty())
    check.problems.push_back(why_nobody_called(program, check.end, launch::find_atb()));
  for (const RecordedProcess& process : run.processes)
    if (process.no_ledger != 0)
      check.problems.push_back(fmt::format("process {} could not keep its counts: {}", process.pid,
                                           system_message(process.no_ledger)));
    else if (!process.ended)
      check.problems.push_back(fmt::format(
          "process {} {}", process.pid,
          process.still_running ? "outlived the command and still runs" : "did not end in order"));
  if (const record::Ledger counts = run.totals(); counts.lines_failed > 0)
    check.problems.push_back(fmt::format(
        "{} could not be stored: cannot {}: {}", count_text(counts.lines_failed, "report"),
        printable(counts.failure_step), system_message(static_cast<int>(counts.failure_number))));
}

Result<OverflowCheck> check_into(const std::string& output, const OverflowOptions& options,
                                 RecordingPlan& plan) {
  auto scratch = ScratchFolder::temporary();
  if (!scratch) return fail(scratch.error());
  plan.environment.set("ATB_CHECK_TYPE", "1")
      .set("ATB_OUTPUT_DIR", output)
      .set("ATB_EXIT", options.stop ? "1" : "0")
      .set("ATB_AIT_LOG_LEVEL", log_level_number(options.log_level));
  const ResultSizes earlier = result_sizes(output);
  auto end = run_recording(plan, scratch->path(), std::time(nullptr));
  if (!end) return fail(end.error());

  OverflowCheck check{output, std::move(*end), {}, {}};
  for (const RecordedProcess& process : check.end.run.processes) {
    if (!process.ended && !process.still_running)
      cut_off_half_line(output + "/" + result_name(process.pid));
    auto file = read_results(output, process.pid, earlier);
    if (!file)
      check.problems.push_back(file.error().text());
    else if (!file->operators.empty())
      check.files.push_back(std::move(*file));
  }
  if (!check.end.run.still_running.empty()) scratch->keep();
  find_problems(check, plan.program);
  return check;
}

}  // namespace

Result<RecordingPlan> plan_overflow_check(const OverflowOptions& options) {
  auto plan = plan_recording(options.command);
  if (!plan) return plan;
  if (auto placed = preload_atb_probe(*plan); !placed) return fail(placed.error());
  return plan;
}

Result<OverflowCheck> check_overflow(const OverflowOptions& options, RecordingPlan plan) {
  MadeFolders made;
  const auto output = prepare_output(options.output, made);
  auto check = output ? check_into(*output, options, plan) : fail(output.error());
  made.remove_empty();
  return check;
}

}  // namespace ait::dump
