#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/cpu_profiling.h"
#include "cli/dump_report.h"
#include "cli/moment.h"
#include "cli/probes.h"
#include "cli/process_io.h"
#include "graph/finish.h"
#include "record/dump_names.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;

// The pids whose tensors an earlier run left here.
std::set<std::string> recorded_pids(const std::string& dump) {
  std::set<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(dump + "/" + record::kTensorsFolder, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (const size_t underscore = name.rfind('_'); underscore != std::string::npos)
      out.insert(name.substr(underscore + 1));
  }
  return out;
}

// Files of this run in a folder of the dump, relative to it and in order.
std::vector<std::string> list_files(const std::string& dump, const std::string& folder,
                                    std::string_view ending, fs::file_time_type since) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(fs::path(dump) / folder, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().native();
    std::error_code ignored;
    if (name.ends_with(ending) && !name.starts_with('.') && at->last_write_time(ignored) >= since)
      out.push_back(fmt::format("{}/{}", folder, name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// One dump from its folders to its summary.
class Dump {
 public:
  Dump(const DumpOptions& options, RecordingPlan plan, std::string output, ScratchFolder scratch)
      : plan_(std::move(plan)), output_(std::move(output)), scratch_(std::move(scratch)) {
    report_.options = options;
    report_.dump = output_ + "/" + record::kDumpFolder;
  }

  // The exit status.
  int run() {
    const std::set<std::string> earlier = recorded_pids(report_.dump);
    const std::time_t start = std::time(nullptr);
    if (report_.options.probe == Probe::kTorch)
      ask_torch_probe(report_.options, output_, plan_.environment);
    else
      ask_atb_probe(report_.options, output_, start, plan_.environment);
    const GracefulStop stop;  // what the command is stopped with may come twice
    auto end = run_recording(plan_, scratch_.path(), start);
    if (!end) return report_error(end.error());
    report_.end = std::move(*end);
    if (std::error_code error; !fs::exists(scratch_.path(), error))
      report_.problems.push_back("the output folder was removed while the command ran");
    if (report_.options.dry_run)
      predict();
    else
      finish(earlier);
    return report_.end.child.status();
  }

 private:
  // Processes that outlive the command and have not finished.
  bool somebody_records() const {
    const auto& processes = report_.end.run.processes;
    return std::any_of(processes.begin(), processes.end(),
                       [](const RecordedProcess& process) { return process.still_running; });
  }

  void predict() {
    judge(report_, plan_.program);
    const record::Ledger counts = report_.end.run.totals();
    auto predicted = forecast(report_.options, counts.announced, counts.announced_bytes,
                              counts.highest_round, scratch_.path());
    if (predicted)
      report_.forecast = *predicted;
    else
      log_error(predicted.error().text());
    tell();
  }

  void finish(const std::set<std::string>& earlier) {
    RecordedRun& run = report_.end.run;
    const std::string timestamp = stamp_text(report_.end.start);
    for (RecordedProcess& process : run.processes) {
      if (process.ended)
        count_replaced(report_.dump, scratch_.made_at(), process);
      else if (!process.still_running)
        repair(report_.dump, timestamp, scratch_.made_at(), process);
    }
    finish_topologies();
    finish_profiling(timestamp);
    list_all_files();
    if (report_.options.probe == Probe::kTorch) read_torch();
    judge(report_, plan_.program);
    for (const RecordedProcess& process : run.processes)
      if (process.counts.announced > 0 && earlier.contains(std::to_string(process.pid)))
        report_.notes.push_back(
            fmt::format("an earlier run had a process {} too: tensors/*_{} holds files of both",
                        process.pid, process.pid));
    if (somebody_records()) scratch_.keep();
    if (auto written = write_manifest(report_); !written) log_error(written.error().text());
    tell();
  }

  void read_torch() {
    const auto& processes = report_.end.run.processes;
    std::vector<uint64_t> pids(processes.size());
    std::transform(processes.begin(), processes.end(), pids.begin(),
                   [](const RecordedProcess& process) { return process.pid; });
    report_.torch = read_torch_run(report_.dump, pids, scratch_.made_at());
    append(report_.problems, report_.torch.problems);
    append(report_.notes, report_.torch.notes);
  }

  void finish_topologies() {
    const DumpOptions& options = report_.options;
    if (options.probe != Probe::kAtb || (!options.wants("layer") && !options.wants("model")))
      return;
    const auto finished = graph::finish_topologies(
        scratch_.path(), report_.dump,
        {options.wants("layer"), options.wants("model"), options.wants("onnx")});
    if (!finished) {
      report_.problems.push_back("topologies: " + finished.error().text());
      return;
    }
    std::map<std::string, size_t> problems;  // of a library that reports badly, hundreds are alike
    for (const Error& problem : finished->problems) ++problems[problem.message()];
    for (const auto& [message, count] : problems)
      report_.problems.push_back(
          fmt::format("{}: {}", count_text(count, "topology report"), report::visible(message)));
  }

  void finish_profiling(const std::string& timestamp) {
    if (!report_.options.wants("cpu_profiling")) return;
    std::vector<std::string> folders = {timestamp};
    for (const RecordedProcess& process : report_.end.run.processes)
      folders.push_back(timestamp + "_" + std::to_string(process.pid));
    for (const std::string& name : folders) {
      const std::string folder = record::kCpuProfilingFolder + ("/" + name);
      if (!somebody_records())
        if (auto done = rewrite_profiling(report_.dump + "/" + folder); !done)
          report_.problems.push_back(done.error().text());
      append(report_.files.cpu_profiling,
             list_files(report_.dump, folder, ".txt", scratch_.made_at()));
    }
  }

  void list_all_files() {
    const auto list = [&](const std::string& folder, std::string_view ending) {
      return list_files(report_.dump, folder, ending, scratch_.made_at());
    };
    DumpFiles& files = report_.files;
    for (const RecordedProcess& process : report_.end.run.processes) {
      const std::string pid = "/" + std::to_string(process.pid);
      append(files.layers, list(record::kLayerFolder + pid, ".json"));
      append(files.models, list(record::kModelFolder + pid, ".json"));
      append(files.onnx, list(record::kModelFolder + pid, ".onnx"));
      append(files.onnx, list(record::kLayerFolder + pid, ".onnx"));
      append(files.operation_tables, list(record::kOperationTablesFolder + pid, ".csv"));
      append(files.kernel_tables, list(record::kKernelTablesFolder + pid, ".csv"));
    }
  }

  void tell() { print(report_.options.json ? manifest_text(report_) : summary_text(report_)); }

  RecordingPlan plan_;
  std::string output_;
  ScratchFolder scratch_;
  DumpReport report_;
};

}  // namespace

int run_dump(const DumpOptions& options) {
  auto plan = plan_recording(options.command);
  if (!plan) return report_error(plan.error());
  const bool torch = options.probe == Probe::kTorch;
  if (auto placed = torch ? prepend_torch_startup(*plan) : preload_atb_probe(*plan); !placed)
    return report_error(placed.error());
  for (const std::string& sentence : idle_options(options)) log_warning(sentence);
  if (const std::string obstacle = launch::obstacle_text(plan->program);
      !torch && !obstacle.empty())
    log_warning(obstacle);

  MadeFolders made;
  int status = kCannot;
  {
    auto output = prepare_output(options.output, made);
    const std::string dump = output.value_or("") + "/" + record::kDumpFolder;
    std::error_code ignored;
    if (output && !options.dry_run && fs::exists(dump, ignored))
      log_warning(dump + " holds an earlier dump; this one is added to it");
    auto ready = output ? made.make(dump) : fail(output.error());
    auto scratch = ready ? ScratchFolder::at(fmt::format("{}/.run_{}", dump, ::getpid()))
                         : fail(ready.error());
    status = scratch ? Dump(options, std::move(*plan), *output, std::move(*scratch)).run()
                     : report_error(scratch.error());
  }
  // After a dry run, or where the command could not be started.
  made.remove_empty();
  return status;
}

}  // namespace ait::cli
