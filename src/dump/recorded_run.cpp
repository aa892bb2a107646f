#include "dump/recorded_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/text_file.h"
#include "dump/torch_run.h"
#include "formats/registry.h"
#include "launch/process.h"
#include "record/atomic_file.h"
#include "record/claim.h"
#include "record/dump_names.h"

namespace ait::dump {

namespace fs = std::filesystem;
using record::Ledger;

namespace {

// In the environment of every process of the run.
std::string mark_of(const std::string& scratch) {
  return record::kScratchVariable + ("=" + scratch);
}

// 4711 of "4711.0.ledger" and of "4711.0.28.no_ledger".
std::optional<uint64_t> pid_of_ledger(const std::string& name) {
  uint64_t pid = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool fits =
      read.ec == std::errc() && *read.ptr == '.' &&
      (name.ends_with(record::kLedgerSuffix) || name.ends_with(record::kNoLedgerSuffix));
  return fits ? std::optional(pid) : std::nullopt;
}

// 28 of the latter, 0 of the former.
int reason_for_no_ledger(std::string_view name) {
  if (!name.ends_with(record::kNoLedgerSuffix)) return 0;
  name.remove_suffix(std::string_view(record::kNoLedgerSuffix).size());
  name.remove_prefix(name.rfind('.') + 1);  // npos + 1 is 0
  int reason = 0;
  std::from_chars(name.data(), name.data() + name.size(), reason);
  return reason;
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

// Tiling and reported topologies have places of their own.
bool is_record_file(const fs::path& path) {
  const std::string name = path.filename().native();
  return name == record::kParamFile || name == record::kModelTreeFile ||
         name == record::kStatisticsFile;
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

// Calls visit(entry) for every entry of a folder; one that is missing has none. The first reason why
// a folder cannot be read goes to `problem`.
template <typename Visit>
void each_entry(const fs::path& folder, std::string& problem, Visit visit) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) visit(*at);
  if (error && error != std::errc::no_such_file_or_directory && problem.empty())
    problem = fmt::format("{}: {}", folder.native(), error.message());
}

// The same for every regular file below it, whatever cannot be read in between. Only one folder is
// open at a time: they may be nested deeper than files may be open.
template <typename Visit>
void each_file(const fs::path& folder, std::string& problem, Visit visit) {
  std::vector<fs::path> folders = {folder};
  while (!folders.empty()) {
    const fs::path next = std::move(folders.back());
    folders.pop_back();
    each_entry(next, problem, [&](const fs::directory_entry& entry) {
      std::error_code ignored;
      if (entry.is_symlink(ignored)) return;
      if (entry.is_directory(ignored)) folders.push_back(entry.path());
      if (entry.is_regular_file(ignored)) visit(entry);
    });
  }
}

// {device}_{process}
bool is_folder_of(const std::string& folder, const std::string& process) {
  const size_t underscore = folder.find('_');
  return underscore != std::string::npos && folder.substr(underscore + 1) == process;
}

// And for every file of the process below {root}/{kind}.
template <typename Visit>
void each_file_of(const fs::path& root, const std::string& kind, const RecordedProcess& process,
                  std::string& problem, Visit visit) {
  std::vector<fs::path> folders;
  each_entry(root / kind, problem, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().native();
    if (kind == record::kTorchTensorsFolder ? is_torch_folder_of(name, std::to_string(process.pid))
                                            : is_folder_of(name, process.name))
      folders.push_back(entry.path());
  });
  for (const fs::path& folder : folders) each_file(folder, problem, visit);
}

struct FileCount {
  uint64_t tensors = 0;
  uint64_t tensor_bytes = 0;
  uint64_t records = 0;  // the files beside them
  std::string problem;
};

FileCount files_of(const fs::path& root, const std::string& scratch, const RecordedProcess& process,
                   fs::file_time_type since, bool with_bytes) {
  FileCount out;
  for (const std::string kind : {record::kTensorsFolder, record::kTorchTensorsFolder})
    each_file_of(root, kind, process, out.problem, [&](const fs::directory_entry& file) {
      std::error_code error;
      if (kind == record::kTorchTensorsFolder && (file.last_write_time(error) < since || error))
        return;
      const fs::path& path = file.path();
      if (is_record_file(path)) ++out.records;
      // The library chooses the names of its tensors, the recorder of torch has other files, too.
      if (is_record_file(path) || path.filename().native().starts_with('.') ||
          (kind == record::kTorchTensorsFolder && path.extension() != ".pth"))
        return;
      ++out.tensors;
      if (with_bytes) out.tensor_bytes += counted_bytes(file);
    });
  each_file_of(root, record::kTilingFolder, process, out.problem,
               [&](const fs::directory_entry&) { ++out.records; });
  each_entry(scratch, out.problem, [&](const fs::directory_entry& file) {
    const std::string name = file.path().filename().native();
    out.records += name.starts_with(process.name + ".") && name.ends_with(".json") ? 1 : 0;
  });
  return out;
}

}  // namespace

uint64_t RecordedProcess::lost() const {
  return left_of(counts.announced, counts.written + counts.replaced + counts.removed,
                 counts.failed);
}

uint64_t RecordedProcess::lost_records() const {
  return left_of(counts.records_announced, counts.records_written + counts.records_replaced,
                 counts.records_failed);
}

Ledger RecordedRun::totals() const {
  Ledger sum;
  for (const RecordedProcess& process : processes) add_counts(sum, process.counts);
  return sum;
}

void add_counts(Ledger& sum, const Ledger& counts) {
  static constexpr uint64_t Ledger::* kAdded[] = {
      &Ledger::announced,        &Ledger::announced_bytes,
      &Ledger::written,          &Ledger::written_bytes,
      &Ledger::replaced,         &Ledger::removed,
      &Ledger::failed,           &Ledger::failed_bytes,
      &Ledger::skipped,          &Ledger::records_announced,
      &Ledger::records_written,  &Ledger::records_replaced,
      &Ledger::records_failed,   &Ledger::lines_written,
      &Ledger::lines_failed,     &Ledger::overflows,
      &Ledger::operations_asked, &Ledger::operations_wanted,
      &Ledger::rounds_asked,     &Ledger::rounds_wanted};
  for (const auto member : kAdded) sum.*member += counts.*member;
  if (sum.place.host[0] == '\0') sum.place = counts.place;
  for (size_t i = 0; i < Ledger::kMatchWords; ++i) {
    sum.ids_matched[i] |= counts.ids_matched[i];
    sum.names_matched[i] |= counts.names_matched[i];
  }
  sum.owns_times = std::max(sum.owns_times, counts.owns_times);
  sum.highest_round = std::max(sum.highest_round, counts.highest_round);
  if (sum.failure_number != 0 || counts.failure_number == 0) return;
  sum.failure_number = counts.failure_number;
  std::copy(std::begin(counts.failure_step), std::end(counts.failure_step), sum.failure_step);
  std::copy(std::begin(counts.failure_path), std::end(counts.failure_path), sum.failure_path);
}

RecordedRun read_run(const std::string& scratch) {
  std::map<std::pair<uint64_t, uint64_t>, RecordedProcess> by_name;
  std::error_code error;
  for (fs::directory_iterator at(scratch, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const auto pid = pid_of_ledger(at->path().filename().native());
    if (!pid) continue;
    Ledger ledger;
    const bool readable = record::read_ledger(at->path().c_str(), ledger);
    const uint64_t number = readable ? ledger.name_number : 0;
    auto [process, is_new] = by_name.try_emplace({*pid, number});
    process->second.pid = *pid;
    process->second.name = record::process_name(*pid, number).text;
    if (const int reason = reason_for_no_ledger(at->path().filename().native()); reason != 0)
      process->second.no_ledger = reason;
    process->second.ended = (is_new || process->second.ended) && readable && ledger.ended == 1;
    if (readable) add_counts(process->second.counts, ledger);
  }
  RecordedRun run;
  for (const pid_t pid : launch::processes_with(mark_of(scratch)))
    run.still_running.push_back(static_cast<uint64_t>(pid));
  for (auto& [name, process] : by_name) {
    process.still_running =
        !process.ended &&
        std::binary_search(run.still_running.begin(), run.still_running.end(), process.pid);
    Ledger& counts = process.counts;
    counts.written -= std::min(counts.written, counts.replaced + counts.removed);
    counts.records_written -= std::min(counts.records_written, counts.records_replaced);
    run.processes.push_back(process);
  }
  return run;
}

void wait_for_processes(const std::string& scratch,
                        std::chrono::steady_clock::time_point deadline) {
  for (const pid_t pid : launch::processes_with(mark_of(scratch)))
    if (!launch::wait_for_end(pid, deadline)) return;
}

void repair(const std::string& dump, const std::string& timestamp, const RecordedProcess& process) {
  const std::string pid = std::to_string(process.pid);
  const fs::path root(dump);
  std::string ignored;  // what cannot be read cannot be repaired, and is said when it is counted
  for (const char* kind :
       {record::kTensorsFolder, record::kTorchTensorsFolder, record::kTilingFolder})
    each_file_of(root, kind, process, ignored, [&](const fs::directory_entry& file) {
      std::error_code error;
      if (is_temporary_of(file.path().filename().native(), pid)) fs::remove(file.path(), error);
    });
  std::vector<fs::path> folders = {root / record::kOperationTablesFolder / process.name,
                                   root / record::kKernelTablesFolder / process.name};
  for (const std::string& times : times_folders(timestamp, process))
    folders.push_back(root / record::kCpuProfilingFolder / times);
  for (const fs::path& folder : folders)
    each_file(folder, ignored,
              [](const fs::directory_entry& file) { cut_off_half_line(file.path().native()); });
}

void count_files(const std::string& dump, const std::string& scratch, fs::file_time_type since,
                 RecordedProcess& process) {
  Ledger& counts = process.counts;
  FileCount there = files_of(dump, scratch, process, since, false);
  process.uncounted = there.problem;
  if (!there.problem.empty()) return;
  const bool as_said =
      there.tensors == counts.written && counts.replaced == 0 && counts.removed == 0;
  // Torch folders of a process in another container.
  const bool others_too = process.ended && there.tensors > counts.written;
  if (!as_said && !others_too) {
    there = files_of(dump, scratch, process, since, true);
    counts.written = there.tensors;
    counts.written_bytes = there.tensor_bytes;
  }
  counts.records_written = std::min(counts.records_written, there.records);
}

std::vector<std::string> times_folders(const std::string& timestamp,
                                       const RecordedProcess& process) {
  std::vector<std::string> out = {fmt::format("{}_{}", timestamp, process.name)};
  if (process.counts.owns_times != 0) out.push_back(timestamp);
  return out;
}

bool cut_off_half_line(const std::string& path) {
  const Descriptor file(record::open_regular_file(path.c_str(), O_RDWR));
  const off_t size = file.get() < 0 ? -1 : ::lseek(file.get(), 0, SEEK_END);
  if (size < 0) return false;
  off_t whole = 0;  // bytes up to the last line end
  std::array<char, 4096> block;
  for (off_t end = size; end > 0 && whole == 0;) {
    const off_t begin = std::max<off_t>(end - static_cast<off_t>(block.size()), 0);
    const ssize_t got = ::pread(file.get(), block.data(), static_cast<size_t>(end - begin), begin);
    if (got <= 0) return false;
    const size_t last = std::string_view(block.data(), static_cast<size_t>(got)).rfind('\n');
    if (last != std::string_view::npos) whole = begin + static_cast<off_t>(last) + 1;
    end = begin;
  }
  if (whole == size && size > 0) return false;
  return whole == 0 ? ::unlink(path.c_str()) == 0 : ::ftruncate(file.get(), whole) == 0;
}

}  // namespace ait::dump
