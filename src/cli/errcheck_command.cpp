#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/moment.h"
#include "cli/overflow_results.h"
#include "cli/probes.h"
#include "cli/process_io.h"
#include "report/json.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

using report::Json;
using report::JsonArray;
using report::JsonObject;

struct Check {
  std::string output;
  RecordingEnd end;
  std::vector<OverflowFile> files;
  std::vector<std::string> problems;  // why "no overflow" would not be the whole truth
};

std::string path_of(const Check& check, const OverflowFile& file) {
  return check.output + "/" + file.name;
}

void find_problems(Check& check, const launch::Program& program) {
  const RecordedRun& run = check.end.run;
  if (run.processes.empty())
    check.problems.push_back(why_nobody_called(program, check.end, launch::find_atb()));
  for (const RecordedProcess& process : run.processes)
    if (!process.ended)
      check.problems.push_back(fmt::format(
          "process {} {}", process.pid,
          process.still_running ? "outlived the command and still runs" : "did not end in order"));
  if (const record::Ledger counts = run.totals(); counts.lines_failed > 0)
    check.problems.push_back(fmt::format(
        "{} could not be stored: cannot {}: {}", count_text(counts.lines_failed, "report"),
        printable(counts.failure_step), system_message(static_cast<int>(counts.failure_number))));
}

std::string summary(const Check& check) {
  std::string out = "\n";
  const size_t processes = check.end.run.processes.size();
  if (!check.files.empty()) {
    report::Table table({{"operator"}, {"overflows", report::Align::kRight}, {"process"}});
    for (const OverflowFile& file : check.files)
      for (const auto& [name, count] : file.operators)
        table.add({name, std::to_string(count), std::to_string(file.pid)});
    out += table.text(stdout_is_colourful());
    for (const OverflowFile& file : check.files)
      out += "Report: " + report::visible(path_of(check, file)) + "\n";
  } else if (processes > 0 && check.end.run.totals().overflows == 0) {
    out += fmt::format("No overflow was reported by {}.\n", count_text(processes, "process"));
  }
  for (const std::string& problem : check.problems)
    out += "Not certain: " + problem + (problem.ends_with('?') ? "\n" : ".\n");
  out += fmt::format("The command {}.\n", end_text(check.end.child));
  if (processes == 0) return out + "Next: see what this machine has with: ait doctor\n";
  if (check.files.empty())
    return out + "Next: record tensors with: ait llm dump --exec \"…\" --dry-run\n";
  const std::string ids = ids_of(check.files.front().operators.front().first);
  return out + fmt::format(
                   "Next: record what the first of them computed: ait llm dump --exec \"…\" "
                   "{}-time 2\n",
                   ids.empty() ? "" : "-ids " + ids + " ");
}

std::string document(const Check& check, const ErrcheckOptions& options) {
  JsonArray files;
  for (const OverflowFile& file : check.files) {
    JsonArray operators;
    for (const auto& [name, count] : file.operators) {
      JsonObject object;
      operators.emplace_back(object.set("name", name).set("overflows", count));
    }
    JsonObject object;
    files.emplace_back(object.set("path", path_of(check, file))
                           .set("pid", file.pid)
                           .set("operators", std::move(operators)));
  }
  JsonArray problems;
  for (const std::string& problem : check.problems) problems.emplace_back(problem);
  JsonArray command;
  for (const std::string& word : options.command) command.emplace_back(word);
  JsonObject root;
  root.set("tool", std::string("ait llm errcheck"))
      .set("version", std::string(AIT_VERSION))
      .set("command", std::move(command))
      .set("exit", options.stop)
      .set("start", iso_text(check.end.start))
      .set("end", iso_text(check.end.end))
      .set("exit_status", int64_t{check.end.child.status()})
      .set("processes", check.end.run.processes.size())
      .set("overflows", check.end.run.totals().overflows)
      .set("results", std::move(files))
      .set("problems", std::move(problems));
  return Json(std::move(root)).text() + "\n";
}

int check_overflow(const ErrcheckOptions& options, RecordingPlan& plan, const std::string& output) {
  auto scratch = ScratchFolder::temporary();
  if (!scratch) return report_error(scratch.error());
  plan.environment.set("ATB_CHECK_TYPE", "1")
      .set("ATB_OUTPUT_DIR", output)
      .set("ATB_EXIT", options.stop ? "1" : "0")
      .set("ATB_AIT_LOG_LEVEL", log_level_number(options.log_level));
  const ResultSizes earlier = result_sizes(output);
  const GracefulStop stop;  // what the command is stopped with may come twice
  auto end = run_recording(plan, scratch->path(), std::time(nullptr));
  if (!end) return report_error(end.error());

  Check check{output, std::move(*end), {}, {}};
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
  print(options.json ? document(check, options) : summary(check));
  return check.end.child.status();
}

}  // namespace

int run_errcheck(const ErrcheckOptions& options) {
  auto plan = plan_recording(options.command);
  if (!plan) return report_error(plan.error());
  if (auto placed = preload_atb_probe(*plan); !placed) return report_error(placed.error());
  if (const std::string obstacle = launch::obstacle_text(plan->program); !obstacle.empty())
    log_warning(obstacle);
  MadeFolders made;
  const auto output = prepare_output(options.output, made);
  const int status =
      output ? check_overflow(options, *plan, *output) : report_error(output.error());
  made.remove_empty();
  return status;
}

}  // namespace ait::cli
