// What the processes of a command did, by the ledgers they left in the run's scratch folder.
//
//   RecordedRun run = read_run(scratch);
//   for (RecordedProcess& process : run.processes)
//     if (!process.ended) repair(…);
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "record/ledger.h"

namespace ait::dump {

struct RecordedProcess {
  uint64_t pid = 0;
  std::string name;    // of its folders: the pid, with a number behind it where that was taken
  bool ended = false;  // in order, with everything dealt with
  bool still_running = false;  // outlived the command
  // Of all programs that it was one after another. What was written without what was replaced
  // by later files of the same name; as the files on disk say it, once they have been counted.
  record::Ledger counts;
  std::string uncounted;  // why they could not be; "" where they could
  int no_ledger = 0;      // errno, where it could keep no counts

  // Announced, but neither failed nor there. Of a process that has ended in order: removed.
  uint64_t lost() const;
  uint64_t lost_records() const;
};

struct RecordedRun {
  std::vector<RecordedProcess> processes;  // in the order of their pids and names
  std::vector<uint64_t> still_running;     // of the command, whether they called the probe or not

  record::Ledger totals() const;
};

// Every process that called the probe. A ledger that cannot be read belongs to a process that was
// killed while it made it: it has called, and nothing else is known.
RecordedRun read_run(const std::string& scratch);

// Waits for processes of the command that outlive it, but not beyond the deadline.
void wait_for_processes(const std::string& scratch, std::chrono::steady_clock::time_point deadline);

// Adds the counts of one ledger to another; the first failure stays.
void add_counts(record::Ledger& sum, const record::Ledger& counts);

// After a process was killed: removes its half-written files and the half of a last line in its
// tables.
void repair(const std::string& dump, const std::string& timestamp, const RecordedProcess& process);

// Counts the files of a process that are really there instead of believing its ledger: tensors, and
// those beside them, of which topologies are in the scratch folder. `since` is when the run began:
// the torch folders of an earlier process with the same pid are not told apart by their names.
void count_files(const std::string& dump, const std::string& scratch,
                 std::filesystem::file_time_type since, RecordedProcess& process);

// Where below cpu_profiling its times may be, for a run that began at `timestamp`.
std::vector<std::string> times_folders(const std::string& timestamp,
                                       const RecordedProcess& process);

// Whether the file's last line had no end and was cut off. An empty file goes altogether.
bool cut_off_half_line(const std::string& path);

}  // namespace ait::dump
