#include "record/claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

namespace ait::record {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPid = 4711;

class Claim : public testing::Test {
 protected:
  Claim() {
    std::string pattern = (fs::temp_directory_path() / "ait_claim_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    dump_ = folder_ / "out" / "ait_dump";
  }
  ~Claim() override { fs::remove_all(folder_); }

  std::string claim(const char* run = ".run_1") const {
    return claim_name(dump_.c_str(), kPid, run).text;
  }

  // By another process, which starts later than this one.
  std::string claim_elsewhere(const char* run = ".run_1") const {
    const fs::path answer = folder_ / "answer";
    const pid_t child = ::fork();
    if (child == 0) {
      ::usleep(20'000);  // a tick of the clock that dates processes is a hundredth of a second
      std::ofstream(answer) << claim(run);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    std::string name;
    std::ifstream(answer) >> name;
    return name;
  }

  fs::path folder_;
  fs::path dump_;
};

TEST_F(Claim, IsThePidWhereNobodyElseHasIt) {
  EXPECT_EQ(claim(), "4711");
  EXPECT_TRUE(fs::is_symlink(dump_ / ".claims" / "4711"));
}

TEST_F(Claim, StaysWithTheProcessWhoeverAsksForIt) {
  EXPECT_EQ(claim(), "4711");
  fs::create_directories(dump_ / "tensors" / "0_4711");
  EXPECT_EQ(claim(), "4711");
}

TEST_F(Claim, IsAnotherForEveryProcessWithThisPid) {
  ::usleep(20'000);
  EXPECT_EQ(claim_elsewhere(), "4711");
  EXPECT_EQ(claim_elsewhere(), "4711_1");
  EXPECT_EQ(claim(), "4711_2");
}

TEST_F(Claim, IsAnotherForEveryRun) {
  EXPECT_EQ(claim(".run_1"), "4711");
  EXPECT_EQ(claim(".run_2"), "4711_1");
}

TEST_F(Claim, AvoidsTheFoldersOfAnEarlierRun) {
  for (const char* folder : {"tensors/0_4711", "tiling/12_4711_1", "operation_io_tensors/4711_2",
                             "kernel_io_tensors/4711_3", "layer/4711_4", "model/4711_5"})
    fs::create_directories(dump_ / folder);
  fs::create_directories(dump_ / "tensors" / "0_4711_6_1");  // of a process that had another pid
  fs::create_directories(dump_ / "tensors" / "0_14711_6");
  EXPECT_EQ(claim(), "4711_6");
  EXPECT_FALSE(fs::is_symlink(dump_ / ".claims" / "4711"));
}

TEST_F(Claim, IsMadeByOneOfManyThatTryAtOnce) {
  constexpr int kProcesses = 20;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (int i = 0; i < kProcesses; ++i)
    if (::fork() == 0) {
      char gate;
      ::close(ends[1]);
      [[maybe_unused]] const auto opened = ::read(ends[0], &gate, 1);
      const std::string run = ".run_" + std::to_string(i);
      std::ofstream(folder_ / run) << claim(run.c_str());
      ::_exit(0);
    }
  for (const int end : ends) ::close(end);  // opens the gate
  while (::wait(nullptr) > 0) {
  }
  std::set<std::string> names;
  for (int i = 0; i < kProcesses; ++i) {
    std::string name;
    std::ifstream(folder_ / (".run_" + std::to_string(i))) >> name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), size_t{kProcesses});
}

TEST_F(Claim, LooksForANameWithoutFoldersWhereItCannotClaim) {
  fs::create_directories(dump_ / "layer" / "4711");
  std::ofstream(dump_ / ".claims") << "in the way";
  EXPECT_EQ(claim(), "4711_1");
}

}  // namespace
}  // namespace ait::record
