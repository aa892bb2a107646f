#include "launch/process.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

namespace ait::launch {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class ForeignProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* words[] = {"sleep", "60", nullptr};
    const char* environment[] = {"OTHER=1", "MARK=here", nullptr};
    ASSERT_EQ(::posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, const_cast<char**>(words),
                            const_cast<char**>(environment)),
              0);
    // The kernel lets the parent go on a moment before the new environment can be seen.
    for (int i = 0; i < 500 && !runs_with(pid_, "OTHER=1"); ++i)
      std::this_thread::sleep_for(milliseconds(10));
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid_ = 0;
};

TEST_F(ForeignProcess, IsRecognisedByItsEnvironment) {
  EXPECT_TRUE(runs_with(pid_, "MARK=here"));
  EXPECT_FALSE(runs_with(pid_, "MARK=her"));
  EXPECT_FALSE(runs_with(pid_, "MARK=there"));
}

TEST_F(ForeignProcess, IsFoundAmongAll) {
  const auto found = processes_with("MARK=here");
  EXPECT_NE(std::find(found.begin(), found.end(), pid_), found.end());
  EXPECT_TRUE(processes_with("MARK=no process has this").empty());
}

TEST_F(ForeignProcess, IsNotRunningOnceKilledEvenAsAZombie) {
  ::kill(pid_, SIGKILL);
  EXPECT_TRUE(wait_for_end(pid_, Clock::now() + milliseconds(5000)));
  EXPECT_FALSE(runs_with(pid_, "MARK=here"));
}

TEST_F(ForeignProcess, IsNotWaitedForBeyondTheDeadline) {
  const auto start = Clock::now();
  EXPECT_FALSE(wait_for_end(pid_, start + milliseconds(50)));
  EXPECT_LT(Clock::now() - start, milliseconds(5000));
}

TEST(WaitForEnd, IsDoneWithAProcessThatIsGone) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(wait_for_end(pid, Clock::now()));
}

}  // namespace
}  // namespace ait::launch
