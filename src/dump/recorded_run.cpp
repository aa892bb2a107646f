#include "dump/recorded_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/mapped_file.h"
#include "dump/torch_run.h"
#include "formats/registry.h"
#include "launch/process.h"
#include "record/dump_names.h"

namespace ait::dump {

namespace fs = std::filesystem;
using record::Ledger;

namespace {

// In the environment of every process of the run.
std::string mark_of(const std::string& scratch) { return "AIT_PROBE_SCRATCH=" + scratch; }

// 4711 of "4711.0.ledger".
std::optional<uint64_t> pid_of_ledger(const std::string& name) {
  uint64_t pid = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool fits =
      read.ec == std::errc() && name.ends_with(record::kLedgerSuffix) && *read.ptr == '.';
  return fits ? std::optional(pid) : std::nullopt;
}

uint64_t left_of(uint64_t announced, uint64_t written, uint64_t failed) {
  const uint64_t done = written + failed;
  return announced > done ? announced - done : 0;
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ".NAME.{pid}-{n}.tmp", as record::write_file names what it has not finished.
bool is_temporary_of(std::string_view name, const std::string& pid) {
  constexpr std::string_view kSuffix = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || !all_digits(name.substr(dash + 1))) return false;
  return name.substr(0, dash).ends_with("." + pid);
}

bool is_tensor_file(const fs::path& path) {
  return path.extension() == ".bin" || path.extension() == ".pth";
}

// In the recorder's measure: of torch files only the tensor, of the others all.
uint64_t counted_bytes(const fs::directory_entry& file) {
  std::error_code error;
  if (file.path().extension() == ".pth")
    if (const auto tensor = formats::load_single(file.path().native()); tensor)
      return tensor->view().bytes();
  const uintmax_t bytes = file.file_size(error);
  return error ? 0 : bytes;
}

// Calls visit(entry) for every regular file below the folder. What cannot be read is passed over.
template <typename Visit>
void each_file(const fs::path& folder, Visit visit) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored) && !at->is_symlink(ignored)) visit(*at);
  }
}

// Folders directly below `parent` for which the name fits.
template <typename Fits>
std::vector<fs::path> folders_below(const fs::path& parent, Fits fits) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(parent, error); !error && at != fs::directory_iterator();
       at.increment(error))
    if (fits(at->path().filename().native())) out.push_back(at->path());
  return out;
}

// Calls visit(entry) for every file of the process below {root}/{kind}.
template <typename Visit>
void each_file_of(const fs::path& root, const std::string& kind, const std::string& pid,
                  Visit visit) {
  const auto is_of_process = [&](const std::string& name) {
    return kind == record::kTorchTensorsFolder ? is_torch_folder_of(name, pid)
                                               : name.ends_with("_" + pid);
  };
  for (const fs::path& folder : folders_below(root / kind, is_of_process)) each_file(folder, visit);
}

struct FileCount {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

constexpr const char* kTensorFolders[] = {record::kTensorsFolder, record::kTorchTensorsFolder};

// Those of this run: an earlier one may have had a process of the same pid.
FileCount tensors_of(const fs::path& root, const std::string& pid, fs::file_time_type since,
                     bool with_bytes) {
  FileCount out;
  for (const char* kind : kTensorFolders)
    each_file_of(root, kind, pid, [&](const fs::directory_entry& file) {
      std::error_code error;
      if (!is_tensor_file(file.path()) || file.last_write_time(error) < since || error) return;
      out.count += 1;
      if (with_bytes) out.bytes += counted_bytes(file);
    });
  return out;
}

}  // namespace

uint64_t RecordedProcess::lost() const {
  return left_of(counts.announced, counts.written + replaced, counts.failed);
}

uint64_t RecordedProcess::lost_records() const {
  return left_of(counts.records_announced, counts.records_written, counts.records_failed);
}

Ledger RecordedRun::totals() const {
  Ledger sum;
  for (const RecordedProcess& process : processes) add_counts(sum, process.counts);
  return sum;
}

void add_counts(Ledger& sum, const Ledger& counts) {
  static constexpr uint64_t Ledger::* kAdded[] = {&Ledger::announced,
                                                  &Ledger::announced_bytes,
                                                  &Ledger::written,
                                                  &Ledger::written_bytes,
                                                  &Ledger::failed,
                                                  &Ledger::failed_bytes,
                                                  &Ledger::skipped,
                                                  &Ledger::records_announced,
                                                  &Ledger::records_written,
                                                  &Ledger::records_failed,
                                                  &Ledger::lines_written,
                                                  &Ledger::lines_failed,
                                                  &Ledger::overflows,
                                                  &Ledger::operations_asked,
                                                  &Ledger::operations_wanted,
                                                  &Ledger::rounds_asked,
                                                  &Ledger::rounds_wanted};
  for (const auto member : kAdded) sum.*member += counts.*member;
  sum.highest_round = std::max(sum.highest_round, counts.highest_round);
  if (sum.failure_number != 0 || counts.failure_number == 0) return;
  sum.failure_number = counts.failure_number;
  std::copy(std::begin(counts.failure_step), std::end(counts.failure_step), sum.failure_step);
  std::copy(std::begin(counts.failure_path), std::end(counts.failure_path), sum.failure_path);
}

RecordedRun read_run(const std::string& scratch) {
  std::map<uint64_t, RecordedProcess> by_pid;
  std::error_code error;
  for (fs::directory_iterator at(scratch, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const auto pid = pid_of_ledger(at->path().filename().native());
    if (!pid) continue;
    Ledger ledger;
    const bool readable = record::read_ledger(at->path().c_str(), ledger);
    auto [process, is_new] = by_pid.try_emplace(*pid);
    process->second.pid = *pid;
    process->second.ended = (is_new || process->second.ended) && readable && ledger.ended == 1;
    if (readable) add_counts(process->second.counts, ledger);
  }
  RecordedRun run;
  for (const pid_t pid : launch::processes_with(mark_of(scratch)))
    run.still_running.push_back(static_cast<uint64_t>(pid));
  for (auto& [pid, process] : by_pid) {
    process.still_running = !process.ended && std::binary_search(run.still_running.begin(),
                                                                 run.still_running.end(), pid);
    run.processes.push_back(process);
  }
  return run;
}

void wait_for_processes(const std::string& scratch,
                        std::chrono::steady_clock::time_point deadline) {
  for (const pid_t pid : launch::processes_with(mark_of(scratch)))
    if (!launch::wait_for_end(pid, deadline)) return;
}

void repair(const std::string& dump, const std::string& timestamp, fs::file_time_type since,
            RecordedProcess& process) {
  const std::string pid = std::to_string(process.pid);
  const fs::path root(dump);
  for (const char* kind :
       {record::kTensorsFolder, record::kTorchTensorsFolder, record::kTilingFolder})
    each_file_of(root, kind, pid, [&](const fs::directory_entry& file) {
      std::error_code error;
      if (is_temporary_of(file.path().filename().native(), pid)) fs::remove(file.path(), error);
    });
  const FileCount there = tensors_of(root, pid, since, true);
  process.counts.written = there.count;
  process.counts.written_bytes = there.bytes;
  for (const fs::path& folder :
       {root / record::kOperationTablesFolder / pid, root / record::kKernelTablesFolder / pid,
        root / record::kCpuProfilingFolder / timestamp,
        root / record::kCpuProfilingFolder / fmt::format("{}_{}", timestamp, pid)})
    each_file(folder,
              [](const fs::directory_entry& file) { cut_off_half_line(file.path().native()); });
}

void count_replaced(const std::string& dump, fs::file_time_type since, RecordedProcess& process) {
  const std::string pid = std::to_string(process.pid);
  const uint64_t written = process.counts.written;
  if (tensors_of(dump, pid, since, false).count >= written) return;
  const FileCount there = tensors_of(dump, pid, since, true);
  process.replaced = written - std::min(written, there.count);
  process.counts.written = there.count;
  process.counts.written_bytes = there.bytes;
}

bool cut_off_half_line(const std::string& path) {
  size_t whole = 0;
  {
    const auto file = MappedFile::open(path);
    if (!file) return false;
    const auto bytes = (*file)->bytes();
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const size_t last = std::string_view(text, bytes.size()).rfind('\n');
    whole = last == std::string_view::npos ? 0 : last + 1;
    if (whole == bytes.size() && whole > 0) return false;
  }
  return whole == 0 ? ::unlink(path.c_str()) == 0
                    : ::truncate(path.c_str(), static_cast<off_t>(whole)) == 0;
}

}  // namespace ait::dump
