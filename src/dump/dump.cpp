#include "dump/dump.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "dump/cpu_profiling.h"
#include "dump/folders.h"
#include "dump/judgement.h"
#include "dump/manifest.h"
#include "dump/probes.h"
#include "dump/texts.h"
#include "graph/finish.h"
#include "record/atomic_file.h"
#include "record/dump_names.h"
#include "report/utf8.h"

namespace ait::dump {
namespace {

namespace fs = std::filesystem;

// Files in a folder of the dump, relative to it and in order.
std::vector<std::string> list_files(const std::string& dump, const std::string& folder,
                                    std::string_view ending) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(fs::path(dump) / folder, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (name.ends_with(ending) && !name.starts_with('.'))
      out.push_back(fmt::format("{}/{}", folder, name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// One dump from its folders to its manifest.
class Dump {
 public:
  Dump(const Options& options, RecordingPlan plan, std::string output, ScratchFolder scratch)
      : plan_(std::move(plan)), output_(std::move(output)), scratch_(std::move(scratch)) {
    outcome_.options = options;
    outcome_.dump = output_ + "/" + record::kDumpFolder;
  }

  Result<Outcome> run() {
    const std::time_t start = std::time(nullptr);
    ask_probe(start);
    ask_for_determinism(outcome_.options, plan_.environment);
    auto end = run_recording(plan_, scratch_.path(), start);
    if (!end) return fail(end.error());
    outcome_.end = std::move(*end);
    if (std::error_code error; !fs::exists(scratch_.path(), error))
      outcome_.problems.push_back("the output folder was removed while the command ran");
    else if (outcome_.end.run.processes.empty())
      find_room();
    if (outcome_.options.dry_run)
      predict();
    else
      finish();
    return std::move(outcome_);
  }

 private:
  void ask_probe(std::time_t start) {
    const Options& options = outcome_.options;
    switch (options.probe) {
      case Probe::kAtb:
        return ask_atb_probe(options, output_, start, plan_.environment);
      case Probe::kTorch:
        return ask_torch_probe(options, output_, plan_.environment);
      case Probe::kFx:
        return ask_fx_probe(options, output_, plan_.environment);
    }
  }

  // Processes that outlive the command and have not finished.
  bool somebody_records() const {
    const auto& processes = outcome_.end.run.processes;
    return std::any_of(processes.begin(), processes.end(),
                       [](const RecordedProcess& process) { return process.still_running; });
  }

  // Processes that can write nothing at all leave no sign that they called the probe.
  void find_room() {
    record::Ledger ledger;
    const iovec part{&ledger, sizeof ledger};
    const std::string path = scratch_.path() + "/trial";
    const auto status = record::write_file(path.c_str(), &part, 1);
    ::unlink(path.c_str());
    if (status.ok()) return;
    outcome_.problems.push_back(
        fmt::format("{} cannot be written to: {}; so nothing could be recorded",
                    report::visible(outcome_.dump), system_message(status.error_number)));
  }

  void predict() {
    judge(outcome_, plan_.program);
    const record::Ledger counts = outcome_.end.run.totals();
    auto predicted = forecast(outcome_.options, counts.announced, counts.announced_bytes,
                              counts.highest_round, scratch_.path());
    if (predicted)
      outcome_.forecast = *predicted;
    else
      log_error(predicted.error().text());
  }

  void finish() {
    RecordedRun& run = outcome_.end.run;
    const std::string timestamp = stamp_text(outcome_.end.start);
    for (RecordedProcess& process : run.processes) {
      if (process.still_running) continue;
      if (!process.ended) repair(outcome_.dump, timestamp, process);
      // Files of compiled graphs do not tell which process wrote them.
      if (outcome_.options.probe != Probe::kFx)
        count_files(outcome_.dump, scratch_.path(), scratch_.made_at(), process);
    }
    finish_topologies();
    finish_profiling(timestamp);
    list_all_files();
    if (outcome_.options.probe == Probe::kTorch) read_torch();
    judge(outcome_, plan_.program);
    if (somebody_records())
      scratch_.keep();
    else
      release_claims(outcome_.dump, scratch_.path());
    if (auto written = write_manifest(outcome_); !written) log_error(written.error().text());
  }

  void read_torch() {
    const auto& processes = outcome_.end.run.processes;
    std::vector<uint64_t> pids(processes.size());
    std::transform(processes.begin(), processes.end(), pids.begin(),
                   [](const RecordedProcess& process) { return process.pid; });
    outcome_.torch = read_torch_run(outcome_.dump, pids, scratch_.made_at());
    append(outcome_.problems, outcome_.torch.problems);
    append(outcome_.notes, outcome_.torch.notes);
  }

  void finish_topologies() {
    const Options& options = outcome_.options;
    if (options.probe != Probe::kAtb || (!options.wants("layer") && !options.wants("model")))
      return;
    const auto finished = graph::finish_topologies(
        scratch_.path(), outcome_.dump,
        {options.wants("layer"), options.wants("model"), options.wants("onnx")});
    if (!finished) {
      outcome_.problems.push_back("topologies: " + finished.error().text());
      return;
    }
    std::map<std::string, size_t> problems;  // of a library that reports badly, hundreds are alike
    for (const Error& problem : finished->problems) ++problems[problem.message()];
    for (const auto& [message, count] : problems)
      outcome_.problems.push_back(
          fmt::format("{}: {}", count_text(count, "topology report"), report::visible(message)));
  }

  void finish_profiling(const std::string& timestamp) {
    if (!outcome_.options.wants("cpu_profiling")) return;
    std::vector<std::string> folders;
    for (const RecordedProcess& process : outcome_.end.run.processes)
      append(folders, times_folders(timestamp, process));
    std::sort(folders.begin(), folders.end());
    for (const std::string& name : folders) {
      const std::string folder = record::kCpuProfilingFolder + ("/" + name);
      if (!somebody_records())
        if (auto done = rewrite_profiling(outcome_.dump + "/" + folder); !done)
          outcome_.problems.push_back(done.error().text());
      append(outcome_.files.cpu_profiling, list_files(outcome_.dump, folder, ".txt"));
    }
  }

  void list_all_files() {
    const auto list = [&](const std::string& folder, std::string_view ending) {
      return list_files(outcome_.dump, folder, ending);
    };
    Files& files = outcome_.files;
    for (const RecordedProcess& process : outcome_.end.run.processes) {
      const std::string name = "/" + process.name;
      append(files.layers, list(record::kLayerFolder + name, ".json"));
      append(files.models, list(record::kModelFolder + name, ".json"));
      append(files.onnx, list(record::kModelFolder + name, ".onnx"));
      append(files.onnx, list(record::kLayerFolder + name, ".onnx"));
      append(files.operation_tables, list(record::kOperationTablesFolder + name, ".csv"));
      append(files.kernel_tables, list(record::kKernelTablesFolder + name, ".csv"));
    }
  }

  RecordingPlan plan_;
  std::string output_;
  ScratchFolder scratch_;
  Outcome outcome_;
};

}  // namespace

Result<RecordingPlan> plan(const Options& options) {
  auto plan = plan_recording(options.command);
  if (!plan) return plan;
  if (auto placed =
          is_python(options.probe) ? prepend_torch_startup(*plan) : preload_atb_probe(*plan);
      !placed)
    return fail(placed.error());
  return plan;
}

Result<Outcome> run(const Options& options, RecordingPlan plan) {
  MadeFolders made;
  const auto attempt = [&]() -> Result<Outcome> {
    const auto output = prepare_output(options.output, made);
    if (!output) return fail(output.error());
    const std::string dump = *output + "/" + record::kDumpFolder;
    std::error_code ignored;
    const bool is_there = fs::exists(dump, ignored);
    if (auto ready = make_dump_folder(dump, made); !ready) return fail(ready.error());
    if (is_there && !options.dry_run)
      log_warning(dump + " holds an earlier dump; this one is added to it");
    clear_leftovers(dump);
    auto scratch = ScratchFolder::in(dump);
    if (!scratch) return fail(scratch.error());
    return Dump(options, std::move(plan), *output, std::move(*scratch)).run();
  };
  auto outcome = attempt();
  // After a dry run, or where the command could not be started.
  made.remove_empty();
  return outcome;
}

}  // namespace ait::dump
