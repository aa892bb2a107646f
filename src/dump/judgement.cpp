#include "dump/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "dump/texts.h"
#include "report/utf8.h"

namespace ait::dump {
namespace {

using record::Ledger;

std::string relative_to(const std::string& path, const std::string& folder) {
  const bool inside = path.starts_with(folder + "/");
  return report::visible(inside ? path.substr(folder.size() + 1) : path);
}

std::string failure_text(const Ledger& counts, const std::string& dump) {
  if (counts.failure_number == 0) return "the reason was not recorded";
  return fmt::format("cannot {}: {} ({})", printable(counts.failure_step),
                     system_message(static_cast<int>(counts.failure_number)),
                     relative_to(counts.failure_path, dump));
}

std::string filters_text(const Options& options) {
  std::string out;
  if (!options.ids.empty())
    out += "-ids " + options.ids + (options.children ? "" : " -child False");
  if (!options.operation_name.empty())
    out += (out.empty() ? "" : " and ") + ("-opname " + report::visible(options.operation_name));
  return out;
}

// The elements of a comma list that have matched no operation.
std::string unmatched(const std::string& list, const uint64_t (&matched)[Ledger::kMatchWords]) {
  std::string out;
  std::istringstream elements(list);
  size_t at = 0;
  for (std::string element; std::getline(elements, element, ','); ++at)
    if (at / 64 < Ledger::kMatchWords && (matched[at / 64] >> at % 64 & 1) == 0)
      out += (out.empty() ? "" : ", ") + report::visible(element);
  return out;
}

// Some of the filters matched something.
void judge_filters(const Options& options, const Ledger& counts,
                   std::vector<std::string>& problems) {
  if (const std::string ids = unmatched(options.ids, counts.ids_matched); !ids.empty())
    problems.push_back(
        fmt::format("no operation has the id {} of -ids {}; --type model shows the ids there are",
                    ids, options.ids));
  if (const std::string names = unmatched(options.operation_name, counts.names_matched);
      !names.empty())
    problems.push_back(
        fmt::format("no operation's name begins with {}, as -opname asks; --type model shows the "
                    "names there are",
                    names));
}

// Processes have called, but none offered a tensor that was wanted.
std::string why_no_tensor(const Options& options, const Ledger& counts) {
  if (counts.operations_asked == 0)
    return "the acceleration library was loaded but set up no operation";
  if (counts.operations_wanted == 0)
    return fmt::format(
        "none of the operations matches {}; --type model shows the ids and names there are",
        filters_text(options));
  if (counts.rounds_asked == 0) return "operations were set up, but none was executed";
  if (counts.rounds_wanted == 0)
    return fmt::format("no operation was executed in the rounds -er {}; the highest was round {}",
                       rounds_text(options.rounds), counts.highest_round);
  if (counts.skipped > 0)
    return fmt::format("{} came, and all of them were left out by {}{}{}",
                       count_text(counts.skipped, "tensor"),
                       options.device ? fmt::format("-device {}", *options.device) : "",
                       options.device && options.part != 2 ? " and " : "",
                       options.part != 2 ? fmt::format("-stp {}", options.part) : "");
  // Newer libraries ask first and then don't offer them.
  if (options.device)
    return fmt::format(
        "-device {}: no operation ran on that device; without -device all devices are recorded",
        *options.device);
  return fmt::format(
      "the operations that were asked for did not run in the rounds -er {}, or the library "
      "replayed "
      "them as part of a captured graph, of which it shows no tensors; try other rounds, or switch "
      "graphs off in the program",
      rounds_text(options.rounds));
}

std::string why_no_torch_tensor(const Options& options, const Ledger& counts) {
  if (counts.rounds_wanted == 0 && counts.rounds_asked > 0)
    return fmt::format("no {} was called in the rounds -er {}; the highest was round {}",
                       options.probe == Probe::kFx ? "compiled graph" : "model",
                       rounds_text(options.rounds), counts.highest_round);
  if (options.probe == Probe::kFx)
    return "graphs were called, but no tensor of theirs could be recorded; the manifest.json of "
           "each rank in msit_fx_dump says more";
  if (!options.operation_name.empty())
    return fmt::format(
        "no module's class begins with {} (-opname); model_tree.json lists the classes",
        report::visible(options.operation_name));
  if (options.device) return fmt::format("no model was on -device {}", *options.device);
  return "models were called, but no tensor of theirs could be recorded; the manifest.json of each "
         "folder in torch_tensors says more";
}

std::string why_nobody_called_torch(const Options& options, const RecordingEnd& recording) {
  const bool fx = options.probe == Probe::kFx;
  if (!recording.run.still_running.empty())
    return fmt::format(
        "the command has ended, but process {} that it started still runs and has called no {} "
        "yet; "
        "start what is to be recorded in the foreground",
        recording.run.still_running.front(), fx ? "compiled graph" : "torch module");
  std::string out = std::string("no process of the command called a ") +
                    (fx ? "graph of torch.compile" : "torch module");
  if (recording.child.status() != 0)
    out += ", and it " + end_text(recording.child) + " (see its own messages above)";
  return out +
         (fx ? ": does it run Python and call torch.compile? Python"
             : ": does it run Python and import torch? Python") +
         " started with -I, -E or -S ignores the recorder; a Python that cannot import ait_llm has "
         "printed a message above";
}

std::string lost_text(const RecordedProcess& process) {
  std::string out;
  if (const uint64_t lost = process.lost(); lost > 0) out += count_text(lost, "tensor");
  if (const uint64_t lost = process.lost_records(); lost > 0)
    out += (out.empty() ? "" : " and ") + count_text(lost, "other file");
  return out;
}

void judge_process(const RecordedProcess& process, Outcome& outcome) {
  auto& problems = outcome.problems;
  const std::string lost = outcome.options.dry_run ? "" : lost_text(process);
  if (!process.uncounted.empty())
    problems.push_back(
        fmt::format("the files of process {} cannot be counted, so it is not known "
                    "whether all are there: {}",
                    process.name, report::visible(process.uncounted)));
  if (process.no_ledger != 0) {
    problems.push_back(fmt::format(
        "process {} called the probe and could not keep its counts ({}), so it is not known "
        "what it should have recorded",
        process.name, system_message(process.no_ledger)));
    return;
  }
  if (process.ended) {
    if (!lost.empty())
      problems.push_back(fmt::format(
          "process {} had written {} more than are there now: somebody has removed or moved them",
          process.name, lost));
    return;
  }
  if (process.still_running) {
    problems.push_back(fmt::format(
        "process {} outlived the command and still runs; what it writes from now on is not counted",
        process.name));
    return;
  }
  std::string what = fmt::format(
      "process {} did not end in order (killed, crashed, or left by _exit)", process.name);
  if (!lost.empty()) what += fmt::format("; {} it had announced did not arrive", lost);
  // Forked workers of Python leave by _exit: the command is content, and nothing is missing.
  const bool harmless =
      outcome.end.child.status() == 0 && process.lost() == 0 && process.lost_records() == 0;
  (harmless ? outcome.notes : problems)
      .push_back(harmless ? what + "; all it had announced is there" : what);
}

void judge_failures(const Outcome& outcome, const Ledger& counts,
                    std::vector<std::string>& problems) {
  std::string what;
  const auto add = [&](uint64_t count, const std::string& name) {
    if (count > 0) what += (what.empty() ? "" : ", ") + count_text(count, name);
  };
  add(counts.failed, "tensor");
  add(counts.records_failed, "other file");
  add(counts.lines_failed, "line");
  if (!what.empty())
    problems.push_back(
        what + " could not be stored; the first time: " + failure_text(counts, outcome.dump));
}

}  // namespace

std::string why_nobody_called(const launch::Program& program, const RecordingEnd& recording,
                              const std::optional<launch::AtbLibrary>& atb) {
  const launch::ChildEnd& end = recording.child;
  if (!recording.run.still_running.empty())
    return fmt::format(
        "the command has ended, but process {} that it started still runs and has not called the "
        "probe yet; start what is to be recorded in the foreground",
        recording.run.still_running.front());
  if (program.obstacle != launch::Obstacle::kNone)
    return launch::obstacle_text(program) + "; no process of the command could be recorded";
  std::string out = "no process of the command called the probe";
  if (end.status() != 0) out += ", and it " + end_text(end) + " (see its own messages above)";
  if (!atb)
    return out +
           ": libatb was not found; is ATB_HOME_PATH set (source the acceleration library's "
           "set_env.sh), and does the command use it at all?";
  if (!atb->probe) return out + ": " + atb->path + " cannot be read (" + atb->problem + ")";
  if (!atb->probe->any())
    return out + ": " + atb->path +
           " has no probe interface, so that this version cannot be recorded";
  return out +
         ": does it use the acceleration library? Programs started through setuid or static "
         "launchers, in containers, or that load libatb with RTLD_DEEPBIND are out of reach";
}

void judge(Outcome& outcome, const launch::Program& program,
           std::optional<launch::AtbLibrary> (*atb)()) {
  const Options& options = outcome.options;
  const RecordedRun& run = outcome.end.run;
  const Ledger counts = run.totals();
  const bool torch = is_python(options.probe);
  const bool counted =
      std::none_of(run.processes.begin(), run.processes.end(),
                   [](const RecordedProcess& each) { return each.no_ledger != 0; });
  auto& problems = outcome.problems;
  if (run.processes.empty() && !problems.empty()) return;
  if (!torch && options.types == std::vector<std::string>{"onnx"}) {
    problems.emplace_back(
        "--type onnx alone records nothing: it turns topologies into onnx files, so ask for "
        "--type model onnx or layer onnx");
    return;
  }
  if (run.processes.empty()) {
    problems.push_back(torch ? why_nobody_called_torch(options, outcome.end)
                             : why_nobody_called(program, outcome.end, atb()));
    return;
  }
  for (const RecordedProcess& process : run.processes) judge_process(process, outcome);
  judge_failures(outcome, counts, problems);
  for (const RecordedProcess& process : run.processes)
    if (process.counts.replaced > 0 && !options.dry_run)
      outcome.notes.push_back(
          fmt::format("process {} wrote {} over earlier ones of the same name, because operations "
                      "were executed "
                      "more than once for each set-up; the last of each name is kept",
                      process.name, count_text(process.counts.replaced, "tensor")));
  if (options.wants("tensor") && counts.announced == 0 && counted && !outcome.torch.only_statistics)
    problems.push_back(torch ? why_no_torch_tensor(options, counts)
                             : why_no_tensor(options, counts));
  if (counts.lines_written > 0 && !outcome.files.lines() && !options.dry_run)
    problems.push_back(fmt::format(
        "{} of tables or times had been written, and no file of them is there any more: somebody "
        "has removed or moved them",
        count_text(counts.lines_written, "line")));
  if (options.wants("tensor") && !torch && counts.operations_wanted > 0)
    judge_filters(options, counts, problems);
  const bool trees =
      (options.wants("model") || options.wants("layer")) && !outcome.torch.folders.empty();
  if (!options.wants("tensor") && !outcome.files.any() && !trees && !options.dry_run && counted &&
      counts.lines_written == 0)
    problems.push_back("the command reported nothing of what --type asks for");

  uint64_t last = 0;
  for (const Rounds& range : options.rounds)
    if (range != kAllRounds) last = std::max(last, range.second);
  if (options.wants("tensor") && counts.rounds_wanted > 0 && counts.highest_round < last)
    outcome.notes.push_back(fmt::format(
        "-er asks for rounds up to {}, the command ended in round {}", last, counts.highest_round));
}

}  // namespace ait::dump
