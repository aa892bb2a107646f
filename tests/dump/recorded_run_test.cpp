#include "dump/recorded_run.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
namespace fs = std::filesystem;
using record::Ledger;

// A process that cannot exist: pids end at 2^22.
constexpr uint64_t kNobody = 99'000'001;

std::string bytes_of(const Ledger& ledger) {
  return {reinterpret_cast<const char*>(&ledger), sizeof ledger};
}

Ledger ledger(uint64_t announced, uint64_t written, uint64_t ended) {
  Ledger out;
  out.magic = Ledger::kMagic;
  out.announced = announced;
  out.written = written;
  out.ended = ended;
  return out;
}

void put(const ScratchFolder& folder, uint64_t pid, int n, const Ledger& content) {
  folder.file(std::to_string(pid) + "." + std::to_string(n) + ".ledger", bytes_of(content));
}

TEST(ReadRun, WhatWasTakenAwayAsAskedForIsNotLost) {
  const ScratchFolder folder;
  Ledger counts = ledger(10, 10, 1);
  counts.removed = 7;
  put(folder, kNobody, 0, counts);
  const RecordedRun run = read_run(folder.path());
  EXPECT_EQ(run.processes[0].counts.written, 3U);
  EXPECT_EQ(run.processes[0].lost(), 0U);
  EXPECT_EQ(run.totals().removed, 7U);
}

TEST(ReadRun, AddsUpTheProgramsOfAProcessAndTheProcesses) {
  const ScratchFolder folder;
  Ledger first = ledger(10, 9, 1);
  first.highest_round = 7;
  Ledger second = ledger(5, 5, 1);
  second.failure_number = 28;
  std::snprintf(second.failure_path, sizeof second.failure_path, "/x");
  put(folder, kNobody, 0, first);
  put(folder, kNobody, 1, second);
  put(folder, kNobody + 1, 0, ledger(1, 1, 0));
  folder.file(std::to_string(kNobody) + ".graph.000000.json", "not a ledger");
  const RecordedRun run = read_run(folder.path());
  ASSERT_EQ(run.processes.size(), 2U);
  EXPECT_EQ(run.processes[0].pid, kNobody);
  EXPECT_EQ(run.processes[0].name, std::to_string(kNobody));
  EXPECT_TRUE(run.processes[0].ended);
  EXPECT_EQ(run.processes[0].counts.announced, 15U);
  EXPECT_EQ(run.processes[0].lost(), 1U);
  EXPECT_FALSE(run.processes[1].ended);
  EXPECT_FALSE(run.processes[1].still_running);
  EXPECT_EQ(run.totals().announced, 16U);
  EXPECT_EQ(run.totals().highest_round, 7U);
  EXPECT_EQ(run.totals().failure_number, 28U);
  EXPECT_STREQ(run.totals().failure_path, "/x");
}

TEST(ReadRun, CountsAProcessWhoseLedgerIsHalfMade) {
  const ScratchFolder folder;
  folder.file(std::to_string(kNobody) + ".0.ledger", "");
  const RecordedRun run = read_run(folder.path());
  ASSERT_EQ(run.processes.size(), 1U);
  EXPECT_FALSE(run.processes[0].ended);
}

TEST(ReadRun, KeepsProcessesApartThatHaveTheSamePidInTheirContainers) {
  const ScratchFolder folder;
  Ledger other = ledger(5, 5, 0);
  other.name_number = 2;
  put(folder, kNobody, 0, ledger(1, 1, 1));
  put(folder, kNobody, 1, other);
  const RecordedRun run = read_run(folder.path());
  ASSERT_EQ(run.processes.size(), 2U);
  EXPECT_TRUE(run.processes[0].ended);
  EXPECT_EQ(run.processes[1].name, std::to_string(kNobody) + "_2");
  EXPECT_EQ(run.processes[1].counts.announced, 5U);
  EXPECT_FALSE(run.processes[1].ended);
}

TEST(ReadRun, KnowsWhyAProcessHasNoLedger) {
  const ScratchFolder folder;
  folder.file(std::to_string(kNobody) + ".0.28.no_ledger", "");
  const RecordedRun run = read_run(folder.path());
  ASSERT_EQ(run.processes.size(), 1U);
  EXPECT_EQ(run.processes[0].pid, kNobody);
  EXPECT_EQ(run.processes[0].no_ledger, 28);
  EXPECT_FALSE(run.processes[0].ended);
}

TEST(ReadRun, IsNotEndedIfAnyOfItsProgramsIsNot) {
  const ScratchFolder folder;
  put(folder, kNobody, 0, ledger(1, 1, 0));
  put(folder, kNobody, 1, ledger(1, 1, 1));
  EXPECT_FALSE(read_run(folder.path()).processes[0].ended);
}

TEST(ReadRun, DoesNotTakeAnotherProcessWithThatPidForARunningOne) {
  const ScratchFolder folder;
  put(folder, static_cast<uint64_t>(::getpid()), 0, ledger(1, 1, 0));
  EXPECT_FALSE(read_run(folder.path()).processes[0].still_running);
}

TEST(Repair, RemovesHalvesAndCountsWhatIsThere) {
  const ScratchFolder folder;
  const std::string pid = std::to_string(kNobody);
  const std::string mine = "tensors/0_" + pid + "/0/1_Op/after/";
  folder.file(mine + "intensor0.bin", "12345");
  folder.file(mine + "outtensor0.bin", "123");
  folder.file(mine + "op_param.json", "{}");
  const std::string half = folder.file(mine + ".outtensor1.bin." + pid + "-7.tmp", "1");
  const std::string foreign = folder.file(mine + ".outtensor1.bin.1" + pid + "-7.tmp", "1");
  folder.file("tensors/0_1/0/1_Op/after/intensor0.bin", "other process");
  const std::string table = folder.file("operation_io_tensors/" + pid + "/operation_tensors_0.csv",
                                        "header\nrow\nhalf a r");
  const std::string text =
      folder.file("cpu_profiling/20250102_030405/operation_statistic_0.txt", "[a]:b\n[c]");
  RecordedProcess process;
  process.pid = kNobody;
  process.name = pid;
  process.counts = ledger(9, 8, 0);
  process.counts.owns_times = 1;
  repair(folder.path(), "20250102_030405", process);
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_EQ(process.counts.written, 2U);
  EXPECT_EQ(process.counts.written_bytes, 8U);
  EXPECT_EQ(process.lost(), 7U);
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_EQ(content_of(table), "header\nrow\n");
  EXPECT_EQ(content_of(text), "[a]:b\n");
}

TEST(Repair, LeavesTheTimesOfAnotherRunAlone) {
  const ScratchFolder folder;
  const std::string text =
      folder.file("cpu_profiling/20250102_030405/operation_statistic_0.txt", "[a]:b\n[c]");
  RecordedProcess process;
  process.pid = kNobody;
  process.name = std::to_string(kNobody);
  repair(folder.path(), "20250102_030405", process);
  EXPECT_EQ(content_of(text), "[a]:b\n[c]");
}

TEST(CountFiles, CountsUnderTheNameOfTheProcess) {
  const ScratchFolder folder;
  const std::string pid = std::to_string(kNobody);
  folder.file("tensors/0_" + pid + "/0/1_A/after/outtensor0.bin", "of a process before");
  folder.file("tensors/0_" + pid + "_1/0/1_A/after/outtensor0.bin", "1");
  folder.file("tensors/1_" + pid + "_1/0/1_A/after/outtensor0.bin", "1");
  folder.file("tensors/0_1_" + pid + "_1/0/1_A/after/outtensor0.bin", "of another");
  RecordedProcess process;
  process.pid = kNobody;
  process.name = pid + "_1";
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_EQ(process.counts.written, 2U);
}

TEST(CountFiles, LeavesAnEarlierRunsTorchTensorsOut) {
  const ScratchFolder folder;
  const std::string mine = "torch_tensors/cpu_" + std::to_string(kNobody) + "/0/";
  const std::string old = folder.file(mine + "old.pth", "1");
  folder.file(mine + "new.pth", "1");
  const auto now = fs::last_write_time(folder / (mine + "new.pth"));
  fs::last_write_time(old, now - std::chrono::seconds(10));
  RecordedProcess process;
  process.pid = kNobody;
  process.name = std::to_string(kNobody);
  count_files(folder.path(), folder / "none", now - std::chrono::seconds(5), process);
  EXPECT_EQ(process.counts.written, 1U);
}

class LimitedFiles {
 public:
  // Files that may be open beside those that are.
  explicit LimitedFiles(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit limit = {static_cast<rlim_t>(next) + more, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~LimitedFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  LimitedFiles(const LimitedFiles&) = delete;
  LimitedFiles& operator=(const LimitedFiles&) = delete;

 private:
  rlimit before_{};
};

// A process that wrote `written` tensors, `replaced` of them over others, and ended.
RecordedProcess ended_process(uint64_t written, uint64_t replaced) {
  const ScratchFolder scratch;
  Ledger counts = ledger(written, written, 1);
  counts.replaced = replaced;
  counts.records_announced = counts.records_written = 1;
  put(scratch, kNobody, 0, counts);
  return read_run(scratch.path()).processes.at(0);
}

TEST(CountFiles, TellsWhatWasReplacedFromWhatIsGone) {
  const ScratchFolder folder;
  const std::string mine = "tensors/0_" + std::to_string(kNobody) + "/0/1_Op/after/";
  folder.file(mine + "intensor0.bin", "12345");
  folder.file(mine + "outtensor0.bin", "123");
  folder.file(mine + "../op_param.json", "{}");
  RecordedProcess process = ended_process(5, 3);
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_EQ(process.counts.written, 2U);
  EXPECT_EQ(process.counts.written_bytes, 8U);
  EXPECT_EQ(process.lost(), 0U);
  EXPECT_EQ(process.lost_records(), 0U);

  fs::remove_all(folder / "tensors");
  process = ended_process(5, 3);
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_EQ(process.counts.written, 0U);
  EXPECT_EQ(process.lost(), 2U);
  EXPECT_EQ(process.lost_records(), 1U);
}

TEST(CountFiles, ReadsDeepFoldersWithFewOpenFiles) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan looks at memory through files of its own, for which there are none left";
#endif
  const ScratchFolder folder;
  const std::string mine = "tensors/0_" + std::to_string(kNobody) + "/0/";
  folder.file(mine + "1_A/2_B/3_C/4_D/5_E/6_F/after/outtensor0.bin", "1");
  folder.file(mine + "2_A/after/outtensor0.bin", "1");
  RecordedProcess process = ended_process(2, 0);
  const LimitedFiles one(1);
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_EQ(process.uncounted, "");
  EXPECT_EQ(process.counts.written, 2U);
}

TEST(CountFiles, BelievesTheLedgerAndSaysSoWhereNothingCanBeRead) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan looks at memory through files of its own, for which there are none left";
#endif
  const ScratchFolder folder;
  folder.file("tensors/0_" + std::to_string(kNobody) + "/0/1_A/after/outtensor0.bin", "1");
  RecordedProcess process = ended_process(2, 0);
  const LimitedFiles none(0);
  count_files(folder.path(), folder / "none", fs::file_time_type::min(), process);
  EXPECT_NE(process.uncounted.find("Too many open files"), std::string::npos) << process.uncounted;
  EXPECT_EQ(process.counts.written, 2U);
}

TEST(CutOffHalfLine, LeavesWholeLinesAlone) {
  const ScratchFolder folder;
  EXPECT_FALSE(cut_off_half_line(folder.file("whole", "a\nb\n")));
  EXPECT_EQ(content_of(folder / "whole"), "a\nb\n");
  EXPECT_TRUE(cut_off_half_line(folder.file("none", "half")));
  EXPECT_FALSE(fs::exists(folder / "none"));
  EXPECT_FALSE(cut_off_half_line(folder / "missing"));
}

TEST(CutOffHalfLine, FindsTheLastLineEndFarFromTheEnd) {
  const ScratchFolder folder;
  const std::string path = folder.file("long", "a\n" + std::string(100'000, 'x'));
  EXPECT_TRUE(cut_off_half_line(path));
  EXPECT_EQ(content_of(path), "a\n");
}

TEST(CutOffHalfLine, TouchesNothingThatIsNoFileOfItsOwn) {
  const ScratchFolder folder;
  const std::string target = folder.file("target", "a\nhalf");
  fs::create_symlink(target, folder / "link");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(cut_off_half_line(folder / "link"));
  EXPECT_FALSE(cut_off_half_line(folder / "fifo"));
  EXPECT_EQ(content_of(target), "a\nhalf");
}

}  // namespace
}  // namespace ait::dump
