#include <fmt/format.h>

#include "cli/dump_report.h"
#include "record/dump_names.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

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

std::string next_command(const DumpReport& report, const Ledger& counts) {
  const std::string dump = shell_word(report.dump);
  if (report.end.run.processes.empty()) return "see what this machine has with: ait doctor";
  if (report.options.dry_run && counts.announced > 0)
    return "run the same command without --dry-run";
  const bool torch = report.options.probe == Probe::kTorch;
  if (counts.written > 0)
    return torch ? "ait llm compare -gp " + dump + " -mp MY"
                 : "ait llm compare -gp GOLDEN -mp " + dump;
  if (torch && report.torch.folders.empty()) return "see what this machine has with: ait doctor";
  if (torch && report.torch.only_statistics)
    return "look at the " + std::string(record::kStatisticsFile) + " files in " +
           shell_word(report.dump + "/" + report.torch.folders.front());
  if (torch)
    return "see which modules there are: " +
           shell_word(report.dump + "/" + report.torch.folders.front() + "/" +
                      record::kModelTreeFile);
  const DumpFiles& files = report.files;
  const auto first = [&](const std::vector<std::string>& list) {
    return shell_word(report.dump + "/" + list.front());
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

void add_forecast(const Forecast& f, report::Table& table) {
  table.add({"one round", fmt::format("{}, {}", count_text(f.round_tensors, "tensor"),
                                      bytes_text(f.round_bytes))});
  table.add({"rounds", fmt::format("{} asked for, {} of them reached", f.rounds_requested,
                                   f.rounds_reached)});
  table.add({"forecast", fmt::format("{}, {}, {} of writing", count_text(f.tensors, "tensor"),
                                     bytes_text(f.bytes), duration_text(f.seconds))});
  table.add({"free space", bytes_text(f.free_bytes)});
}

void add_counts(const DumpReport& report, const Ledger& counts, report::Table& table) {
  if (report.options.wants("tensor")) {
    const std::string share =
        counts.written == counts.announced ? "" : fmt::format(" of {} announced", counts.announced);
    table.add({"tensors",
               fmt::format("{}{}, {}", counts.written, share, bytes_text(counts.written_bytes))});
    const bool filtered = !report.options.ids.empty() || !report.options.operation_name.empty();
    if (filtered && report.options.probe == Probe::kAtb)
      table.add({"operations", fmt::format("{} of {} questions about operations matched the filter",
                                           counts.operations_wanted, counts.operations_asked)});
    if (counts.skipped > 0)
      table.add({"skipped", count_text(counts.skipped, "tensor") + " by -stp or -device"});
  }
  if (report.torch.modules_expected > 0)
    table.add({"modules", fmt::format("{} of {} were called in the rounds recorded",
                                      report.torch.modules_seen, report.torch.modules_expected)});
  const auto add = [&](const char* name, const std::vector<std::string>& files) {
    if (!files.empty()) table.add({name, count_text(files.size(), "file")});
  };
  add("layer topologies", report.files.layers);
  add("model topologies", report.files.models);
  add("onnx", report.files.onnx);
  add("operation tables", report.files.operation_tables);
  add("kernel tables", report.files.kernel_tables);
  add("cpu_profiling", report.files.cpu_profiling);
}

}  // namespace

std::string summary_text(const DumpReport& report) {
  const Ledger counts = report.end.run.totals();
  report::Table table({{}, {}});
  if (report.forecast)
    add_forecast(*report.forecast, table);
  else
    add_counts(report, counts, table);
  std::string pids;
  for (const RecordedProcess& process : report.end.run.processes)
    if (pids.size() < 40) pids += (pids.empty() ? "" : ", ") + std::to_string(process.pid);
  const size_t processes = report.end.run.processes.size();
  table.add({"processes", processes == 0 ? "0"
                                         : fmt::format("{} (pid {}{})", processes, pids,
                                                       pids.size() < 40 ? "" : ", …")});
  table.add(
      {"command", end_text(report.end.child) + " after " + duration_text(report.end.seconds)});
  if (!report.options.dry_run) {
    table.add({"capture", report.complete() ? "complete" : "not complete"});
    table.add({"output", report.dump});
  }
  std::string out = "\n" + table.text(false);
  if (report.forecast && report.forecast->round_tensors > 0)
    out +=
        "A forecast: it takes every round to be like the one that was counted, and this disk to "
        "stay as fast as it was just now.\n";
  if (report.forecast && !report.forecast->fits)
    out +=
        "It will not fit on this disk: ask for less (-ids, -opname, -er, -stp, -sd) or give -o "
        "another one.\n";
  for (const std::string& problem : report.problems) out += sentence("Not complete: ", problem);
  for (const std::string& note : report.notes) out += sentence("Note: ", note);
  return out + "Next: " + next_command(report, counts) + "\n";
}

}  // namespace ait::cli
