// The probe is a guest in its process: what the host does to files, threads and signals must harm
// neither, and the host must find everything as it was. Each test is a host of its own, a child
// that has not met the probe before.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "../launch/scratch_folder.h"
#include "probe.h"
#include "process.h"

namespace ait::probe {
namespace {

namespace fs = std::filesystem;

constexpr useconds_t kLookMicroseconds = 5'000;
constexpr int kMostLooks = 6'000;  // then a host that hangs is killed: it may block all else
constexpr int kMostFiles = 256;

void report_row(uint64_t round) {
  const RowTensors none = {nullptr, 0, nullptr};
  add_row(Table::kOperations, round, "Operation_0", "{}", none, none);
}

class ProbeGuest : public testing::Test {
 protected:
  // Runs the host; it is content if it returns true.
  template <typename Host>
  void expect_content(Host host) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("ATB_DUMP_TYPE", "tensor|op", 1);
      ::setenv("ATB_SAVE_TENSOR", "1", 1);
      ::setenv("ATB_OUTPUT_DIR", folder_.c_str(), 1);
      ::setenv("AIT_PROBE_SCRATCH", (folder_ / "run").c_str(), 1);
      ::_exit(host() ? 0 : 1);
    }
    int status = 0;
    int looks = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (++looks == kMostLooks) ::kill(child, SIGKILL);
      ::usleep(kLookMicroseconds);
    }
    pid_ = child;
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }

  fs::path table(uint64_t round, pid_t pid) const {
    return folder_ / "ait_dump" / "operation_io_tensors" / std::to_string(pid) /
           ("operation_tensors_" + std::to_string(round) + ".csv");
  }

  size_t lines(uint64_t round) const {
    std::ifstream in(table(round, pid_));
    size_t count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  }

  const ScratchFolder scratch_;
  const fs::path folder_{scratch_.path()};
  pid_t pid_ = 0;
};

TEST_F(ProbeGuest, WritesNoTableIntoAFileOfAHostThatClosedAllOthers) {
  const fs::path own = folder_ / "own";
  expect_content([&] {
    report_row(0);
    for (int fd = 3; fd < kMostFiles; ++fd) ::close(fd);
    if (::open(own.c_str(), O_WRONLY | O_CREAT, 0600) < 0) return false;
    report_row(0);
    for (uint64_t round = 1; round < 40; ++round) report_row(round);  // more than are kept open
    return ::write(3, "x", 1) == 1;
  });
  EXPECT_EQ(fs::file_size(own), 1u);
  EXPECT_EQ(lines(0), 3u);
}

TEST_F(ProbeGuest, StartsATableThatWasDeletedAgain) {
  expect_content([&] {
    report_row(0);
    fs::remove_all(folder_ / "ait_dump");
    report_row(0);
    return true;
  });
  EXPECT_EQ(lines(0), 2u);
}

TEST_F(ProbeGuest, GoesOnWithATableThatItHadToClose) {
  expect_content([] {
    for (int pass = 0; pass < 3; ++pass)
      for (uint64_t round = 0; round < 9; ++round) report_row(round);
    return true;
  });
  EXPECT_EQ(lines(0), 4u);
}

TEST_F(ProbeGuest, LeavesTheFoldersOfAnEarlierProcessWithItsPidAlone) {
  const fs::path dump = folder_ / "ait_dump";
  expect_content([&] {
    const std::string pid = std::to_string(::getpid());
    fs::create_directories(dump / "tensors" / ("0_" + pid) / "0");
    const char data[4] = {};
    const RowTensors inputs = {&pid, 1, [](const void* context, size_t) -> RowTensor {
                                 static const std::string path =
                                     "0_" + *static_cast<const std::string*>(context) + "/0/x.bin";
                                 return {"float", "nd", "1", path};
                               }};
    save_tensor({"2", "2", "4"}, data, sizeof data, "0_" + pid + "/0/1_Op/after/outtensor0.bin");
    save_parameter("{}", "0_" + pid + "/0/1_Op/op_param.json");
    add_row(Table::kOperations, 0, "Operation_0", "{}", inputs, {nullptr, 0, nullptr});
    writer().flush();
    return true;
  });
  const std::string pid = std::to_string(pid_);
  const fs::path mine = dump / "tensors" / ("0_" + pid + "_1") / "0" / "1_Op";
  EXPECT_TRUE(fs::is_empty(dump / "tensors" / ("0_" + pid) / "0"));
  EXPECT_TRUE(fs::exists(mine / "after" / "outtensor0.bin"));
  EXPECT_TRUE(fs::exists(mine / "op_param.json"));
  std::ifstream table(dump / "operation_io_tensors" / (pid + "_1") / "operation_tensors_0.csv");
  const std::string text((std::istreambuf_iterator<char>(table)), {});
  EXPECT_NE(text.find("|tensors/0_" + pid + "_1/0/x.bin|"), std::string::npos) << text;
}

// A folder that others can write to may hold anything under the name of a table.
TEST_F(ProbeGuest, IsNotHeldUpByWhatIsNoFile) {
  const fs::path target = folder_ / "target";
  std::ofstream(target) << "untouched";
  expect_content([&] {
    report_row(0);
    ::mkfifo(table(1, ::getpid()).c_str(), 0600);
    fs::create_symlink(target, table(2, ::getpid()));
    fs::create_directory(table(3, ::getpid()));
    for (uint64_t round = 0; round < 5; ++round) report_row(round);
    return true;
  });
  EXPECT_EQ(lines(0), 3u);
  EXPECT_EQ(lines(4), 2u);
  EXPECT_EQ(fs::file_size(target), 9u);
}

TEST_F(ProbeGuest, IsNotHeldUpByAFifoInThePlaceOfItsReport) {
  expect_content([&] {
    ::setenv("ATB_CHECK_TYPE", "1", 1);
    const fs::path report = folder_ / ("ait_overflow_res_" + std::to_string(::getpid()) + ".txt");
    ::mkfifo(report.c_str(), 0600);
    report_overflow("Operation_0:Kernel");
    return true;
  });
}

TEST_F(ProbeGuest, KeepsNoLockForAThreadThatIsCancelled) {
  expect_content([] {
    const auto cancelled = [](void*) -> void* {
      ::pthread_cancel(::pthread_self());
      report_row(0);
      ::pthread_testcancel();
      return nullptr;
    };
    pthread_t thread;
    void* end = nullptr;
    ::pthread_create(&thread, nullptr, cancelled, nullptr);
    ::pthread_join(thread, &end);
    report_row(0);
    return end == PTHREAD_CANCELED;
  });
  EXPECT_EQ(lines(0), 3u);
}

TEST_F(ProbeGuest, LeavesErrnoAlone) {
  expect_content([] {
    errno = ERANGE;
    report_row(0);
    const char data[4] = {};
    save_tensor({"2", "2", "4"}, data, sizeof data, "../refused");
    return errno == ERANGE;
  });
}

TEST_F(ProbeGuest, DoesNotLetAFileSizeLimitKillTheHost) {
  expect_content([] {
    report_row(0);
    const rlimit nothing = {0, 0};
    ::setrlimit(RLIMIT_FSIZE, &nothing);
    report_row(0);
    return true;
  });
  EXPECT_EQ(lines(0), 2u);
}

TEST_F(ProbeGuest, DoesNotLetABrokenStderrKillTheHost) {
  expect_content([] {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    ::close(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    const char data[4] = {};
    save_tensor({"2", "2", "4"}, data, sizeof data, "../refused");  // which it says there
    return true;
  });
}

TEST_F(ProbeGuest, RecordsWhatAHandlerReportsThatHadToWait) {
  expect_content([] {
    struct sigaction action{};
    action.sa_handler = [](int) { report_row(1); };
    ::sigaction(SIGUSR1, &action, nullptr);
    // Raised inside the probe: by the first string it reads.
    const auto raise_inside = [](const void*, size_t) -> RowTensor {
      ::raise(SIGUSR1);
      return {};
    };
    const RowTensors one = {nullptr, 1, raise_inside};
    add_row(Table::kOperations, 0, "Operation_0", "{}", one, {nullptr, 0, nullptr});
    return true;
  });
  EXPECT_EQ(lines(0), 2u);
  EXPECT_EQ(lines(1), 2u);
}

TEST_F(ProbeGuest, LeavesTheHostsOwnSignalsPending) {
  expect_content([] {
    sigset_t own;
    ::sigemptyset(&own);
    ::sigaddset(&own, SIGPIPE);
    ::sigprocmask(SIG_BLOCK, &own, nullptr);
    ::raise(SIGPIPE);
    const char data[4] = {};
    save_tensor({"2", "2", "4"}, data, sizeof data, "../refused");
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGPIPE) == 1;
  });
}

}  // namespace
}  // namespace ait::probe
