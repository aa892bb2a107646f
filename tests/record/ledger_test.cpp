#include "record/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../launch/scratch_folder.h"
#include "record/atomic_file.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;

class LedgerTest : public testing::Test {
 protected:
  const ScratchFolder scratch_;
  const fs::path folder_{scratch_.path()};
};

TEST_F(LedgerTest, KeepsItsNumbersWhenTheProcessIsKilled) {
  const fs::path scratch = folder_ / "made" / "on the way";
  const pid_t child = ::fork();
  if (child == 0) {
    Ledger* ledger = open_ledger(scratch.c_str(), 77);
    add(ledger->announced, 5);
    add(ledger->written_bytes, 1000);
    raise_to(ledger->highest_round, 3);
    raise_to(ledger->highest_round, 2);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  Ledger read;
  ASSERT_TRUE(read_ledger((scratch / "77.0.ledger").c_str(), read));
  EXPECT_EQ(read.pid, 77u);
  EXPECT_EQ(read.announced, 5u);
  EXPECT_EQ(read.written_bytes, 1000u);
  EXPECT_EQ(read.highest_round, 3u);
  EXPECT_EQ(read.ended, 0u);
  EXPECT_EQ(read.shared, 1u);
}

TEST_F(LedgerTest, GivesAProgramThatReplacedItselfASecondFile) {
  EXPECT_EQ(open_ledger(folder_.c_str(), 5)->incarnation, 0u);
  EXPECT_EQ(open_ledger(folder_.c_str(), 5)->incarnation, 1u);
  EXPECT_TRUE(fs::exists(folder_ / "5.1.ledger"));
}

TEST_F(LedgerTest, LeavesWordWhereItMayNotGrow) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing = {0, 0};
    ::setrlimit(RLIMIT_FSIZE, &nothing);
    ::_exit(open_ledger(folder_.c_str(), 5)->shared == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(fs::exists(folder_ / ("5.0." + std::to_string(EFBIG) + ".no_ledger")));
  EXPECT_FALSE(fs::exists(folder_ / "5.0.ledger"));
}

TEST_F(LedgerTest, LivesInMemoryWhereNoFileCanBeMade) {
  std::ofstream(folder_ / "file") << "in the way";
  Ledger* ledger = open_ledger((folder_ / "file" / "x").c_str(), 9);
  add(ledger->announced, 1);
  EXPECT_EQ(ledger->announced, 1u);
  EXPECT_EQ(ledger->shared, 0u);
}

TEST_F(LedgerTest, KeepsTheFirstFailureOnly) {
  Ledger* ledger = open_ledger(folder_.c_str(), 5);
  EXPECT_TRUE(note_failure(*ledger, ENOSPC, "write the file", "/a"));
  EXPECT_FALSE(note_failure(*ledger, EACCES, "open the file", "/b"));
  Ledger read;
  ASSERT_TRUE(read_ledger((folder_ / "5.0.ledger").c_str(), read));
  EXPECT_EQ(read.failure_number, static_cast<uint64_t>(ENOSPC));
  EXPECT_STREQ(read.failure_path, "/a");
}

TEST_F(LedgerTest, IsNotReadFromAnythingElse) {
  std::ofstream(folder_ / "short") << "Aledgr01";
  std::ofstream(folder_ / "foreign") << std::string(sizeof(Ledger), 'x');
  Ledger read;
  EXPECT_FALSE(read_ledger((folder_ / "short").c_str(), read));
  EXPECT_FALSE(read_ledger((folder_ / "foreign").c_str(), read));
  EXPECT_FALSE(read_ledger((folder_ / "missing").c_str(), read));
}

TEST_F(LedgerTest, LinesOfManyThreadsStayWhole) {
  const std::string path = folder_ / "table" / "x.csv";
  std::vector<std::thread> threads;
  for (char letter = 'a'; letter < 'e'; ++letter)
    threads.emplace_back([&path, letter] {
      const int fd = open_for_lines(path.c_str());
      const std::string line = std::string(100, letter) + "\n";
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(append_line(fd, line.data(), line.size()).ok());
      ::close(fd);
    });
  for (std::thread& thread : threads) thread.join();
  std::ifstream in(path);
  size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    EXPECT_EQ(line, std::string(100, line.empty() ? '-' : line.front()));
  EXPECT_EQ(lines, 800u);
}

TEST_F(LedgerTest, AFullDiskLeavesNoHalfLine) {
  const int fd = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(fd, 0);
  const WriteStatus status = append_line(fd, "x\n", 2);
  ::close(fd);
  EXPECT_EQ(status.error_number, ENOSPC);
}

}  // namespace
}  // namespace ait::record
