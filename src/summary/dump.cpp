#include "summary/dump.h"

#include <fmt/format.h>

#include "dump/texts.h"
#include "record/dump_names.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::summary {
namespace {

using dump::bytes_text;
using dump::count_text;
using dump::Outcome;
using dump::Probe;
using dump::shell_word;
using record::Ledger;

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string sentence(const std::string& opening, const std::string& text) {
  return opening + text + (text.ends_with('?') || text.ends_with('.') ? "\n" : ".\n");
}

std::string next_command(const Outcome& outcome, const Ledger& counts) {
  const std::string folder = shell_word(outcome.dump);
  if (outcome.end.run.processes.empty()) return "see what this machine has with: ait doctor";
  if (outcome.options.dry_run && counts.announced > 0)
    return "run the same command without --dry-run";
  if (outcome.options.probe == Probe::kFx && counts.written > 0)
    return "ait llm compare -gp " + shell_word(outcome.options.output + "/msit_fx_dump") +
           " -mp MY";
  const bool torch = dump::is_python(outcome.options.probe);
  if (counts.written > 0)
    return torch ? "ait llm compare -gp " + folder + " -mp MY"
                 : "ait llm compare -gp GOLDEN -mp " + folder;
  if (torch && outcome.torch.folders.empty()) return "see what this machine has with: ait doctor";
  if (torch && outcome.torch.is_watched) return "ait llm watch --once " + folder;
  if (torch && outcome.torch.only_statistics)
    return "look at the statistics.csv files in " +
           shell_word(outcome.dump + "/" + outcome.torch.folders.front());
  if (torch)
    return "see which modules there are: " +
           shell_word(outcome.dump + "/" + outcome.torch.folders.front() + "/" +
                      record::kModelTreeFile);
  const dump::Files& files = outcome.files;
  const auto first = [&](const std::vector<std::string>& list) {
    return shell_word(outcome.dump + "/" + list.front());
  };
  if (!files.models.empty() && files.onnx.empty())
    return "look at " + first(files.models) + ", or record again with --type model onnx for Netron";
  if (!files.onnx.empty()) return "open in Netron: " + first(files.onnx);
  if (!files.layers.empty())
    return "look at " + first(files.layers) + ", or record again with --type layer onnx for Netron";
  if (!files.operation_tables.empty()) return "look at " + first(files.operation_tables);
  if (!files.kernel_tables.empty()) return "look at " + first(files.kernel_tables);
  if (!files.cpu_profiling.empty()) return "look at " + first(files.cpu_profiling);
  return "see which operations there are: ait llm dump --exec \"…\" --type model";
}

void add_forecast(const dump::Forecast& f, report::Table& table) {
  table.add({"one round", fmt::format("{}, {}", count_text(f.round_tensors, "tensor"),
                                      bytes_text(f.round_bytes))});
  table.add({"rounds", fmt::format("{} asked for, {} of them reached", f.rounds_requested,
                                   f.rounds_reached)});
  table.add({"forecast", fmt::format("{}, {}, {} of writing", count_text(f.tensors, "tensor"),
                                     bytes_text(f.bytes), duration_text(f.seconds))});
  table.add({"free space", bytes_text(f.free_bytes)});
}

void add_counts(const Outcome& outcome, const Ledger& counts, report::Table& table) {
  if (outcome.options.wants("tensor")) {
    const std::string share =
        counts.written == counts.announced ? "" : fmt::format(" of {} announced", counts.announced);
    table.add({"tensors",
               fmt::format("{}{}, {}", counts.written, share, bytes_text(counts.written_bytes))});
    const bool filtered = !outcome.options.ids.empty() || !outcome.options.operation_name.empty();
    if (filtered && outcome.options.probe == Probe::kAtb)
      table.add(
          {"operations", fmt::format("{} of {} set up, the others are left out by -ids or -opname",
                                     counts.operations_wanted, counts.operations_asked)});
    if (counts.skipped > 0)
      table.add({"left out", count_text(counts.skipped, "tensor") + " by -stp or -device"});
  }
  if (outcome.torch.modules_expected > 0)
    table.add({"modules", fmt::format("{} of {} were called in the rounds recorded",
                                      outcome.torch.modules_seen, outcome.torch.modules_expected)});
  const auto add = [&](const char* name, const std::vector<std::string>& files) {
    if (!files.empty()) table.add({name, count_text(files.size(), "file")});
  };
  add("layer topologies", outcome.files.layers);
  add("model topologies", outcome.files.models);
  add("onnx", outcome.files.onnx);
  add("operation tables", outcome.files.operation_tables);
  add("kernel tables", outcome.files.kernel_tables);
  add("cpu_profiling", outcome.files.cpu_profiling);
}

}  // namespace

std::string dump_text(const Outcome& outcome) {
  const Ledger counts = outcome.end.run.totals();
  report::Table table({{}, {}});
  if (outcome.forecast)
    add_forecast(*outcome.forecast, table);
  else
    add_counts(outcome, counts, table);
  std::string pids;
  for (const dump::RecordedProcess& process : outcome.end.run.processes)
    if (pids.size() < 40) pids += (pids.empty() ? "" : ", ") + std::to_string(process.pid);
  const size_t processes = outcome.end.run.processes.size();
  table.add({"processes", processes == 0 ? "0"
                                         : fmt::format("{} (pid {}{})", processes, pids,
                                                       pids.size() < 40 ? "" : ", …")});
  table.add({"command",
             dump::end_text(outcome.end.child) + " after " + duration_text(outcome.end.seconds)});
  if (!outcome.options.dry_run) {
    table.add({"capture", outcome.complete() ? "complete" : "not complete"});
    table.add({"output", outcome.dump});
  }
  std::string out = "\n" + table.text(false);
  if (outcome.forecast && outcome.forecast->round_tensors > 0)
    out +=
        "A forecast: it takes every round to be like the one that was counted, and this disk to "
        "stay as fast as it was just now.\n";
  if (outcome.forecast && !outcome.forecast->fits)
    out +=
        "It will not fit on this disk: ask for less (-ids, -opname, -er, -stp, -sd) or give -o "
        "another one.\n";
  for (const std::string& problem : outcome.problems) out += sentence("Not complete: ", problem);
  for (const std::string& note : outcome.notes) out += sentence("Note: ", note);
  return out + "Next: " + next_command(outcome, counts) + "\n";
}

std::string api_dump_text(const dump::ApiDump& dump) {
  std::string out = "\n";
  for (const std::string& path : dump.forward_files)
    out += fmt::format("Recorded: {}\n", dump::shell_word(path));
  out += fmt::format("The command {}.\n", dump::end_text(dump.child));
  if (dump.forward_files.empty())
    return out +
           "Nothing was recorded: no process of the command imported torch and came as far as the "
           "iteration.\nNext: try an earlier one with --iteration, or see what this machine has "
           "with: ait doctor\n";
  std::string backward = dump.forward_files.front();
  constexpr std::string_view kForward = "forward_info_";
  backward.replace(backward.rfind(kForward), kForward.size(), "backward_info_");
  return out + fmt::format("Next: ait api check -forward {} -backward {}\n",
                           dump::shell_word(dump.forward_files.front()),
                           dump::shell_word(backward));
}

}  // namespace ait::summary
