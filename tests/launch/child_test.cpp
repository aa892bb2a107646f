#include "launch/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "scratch_folder.h"

namespace ait::launch {
namespace {

using ::testing::HasSubstr;

ChildEnd shell(const std::string& script, Environment environment = {}) {
  environment.set("PATH", "/usr/bin:/bin");
  auto end = run_child("/bin/sh", {"sh", "-c", script}, environment);
  EXPECT_TRUE(end) << end.error().text();
  return end.value_or(ChildEnd{});
}

// Runs `body` in a process of its own, which a test may then kill, and returns its pid.
pid_t fork_process(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  return pid;
}

int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Waits until the file appears; the other process makes it when it is ready.
void wait_for_file(const std::string& path) {
  for (int i = 0; i < 1000 && ::access(path.c_str(), F_OK) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(RunChild, ReturnsTheExitStatus) {
  EXPECT_EQ(shell("exit 0").status(), 0);
  EXPECT_EQ(shell("exit 7").status(), 7);
  EXPECT_EQ(shell("exit 255").status(), 255);
}

TEST(RunChild, SaysWhichSignalKilledIt) {
  const ChildEnd end = shell("kill -9 $$");
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.status(), 137);
}

TEST(RunChild, GivesTheChildItsEnvironmentAndWords) {
  Environment environment;
  environment.set("WANTED", "x y");
  EXPECT_EQ(shell("test \"$WANTED\" = 'x y' && test -z \"$HOME\"", environment).status(), 0);
  const auto end = run_child(
      "/bin/sh", {"sh", "-c", "test $# = 2 && test \"$2\" = ''", "0", "a b", ""}, Environment());
  EXPECT_EQ(end->status(), 0);
}

TEST(RunChild, KeepsTheProcessGroupAndStandardInput) {
  const std::string group = std::to_string(::getpgrp());
  EXPECT_EQ(shell("test $(ps -o pgid= -p $$) = " + group).status(), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], "hello\n", 6), 6);
  ::close(ends[1]);
  EXPECT_EQ(shell("read line && test $line = hello").status(), 0);
  ::dup2(saved, STDIN_FILENO);
  for (const int descriptor : {saved, ends[0]}) ::close(descriptor);
}

// As it would find them without ait: handlers go when a program is started, what is ignored stays.
TEST(RunChild, LetsTheChildFindSignalsAsTheyWere) {
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    const std::string suicide = "kill -" + std::to_string(number) + " $$; exit 6";
    struct sigaction old{};
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(number, &action, &old);
    EXPECT_EQ(shell(suicide).signal, number);
    action.sa_handler = SIG_IGN;
    ::sigaction(number, &action, nullptr);
    EXPECT_EQ(shell(suicide).status(), 6);
    ::sigaction(number, &old, nullptr);
  }
}

TEST(RunChild, SendsItsOutputWhereMessagesGo) {
  const ScratchFolder folder;
  const std::string script = "echo to output; echo to error >&2";
  const auto run = [&](const char* messages) {
    const pid_t pid = fork_process([&] {
      ::dup2(::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
      ::close(STDERR_FILENO);
      if (messages != nullptr) ::open((folder / messages).c_str(), O_WRONLY | O_CREAT, 0600);
      return run_child("/bin/sh", {"sh", "-c", script}, Environment(), Output::kToStandardError)
          ->status();
    });
    return status_of(pid);
  };
  EXPECT_EQ(run("messages"), 0);
  EXPECT_EQ(content_of(folder / "messages"), "to output\nto error\n");
  run(nullptr);  // closed: nobody wants to hear it
  EXPECT_EQ(content_of(folder / "out"), "");
}

TEST(RunChild, GetsTheStatusThoughChildrenAreIgnored) {
  const pid_t pid = fork_process([] {
    ::signal(SIGCHLD, SIG_IGN);
    const int status = run_child("/bin/sh", {"sh", "-c", "exit 5"}, Environment())->status();
    struct sigaction action{};
    ::sigaction(SIGCHLD, nullptr, &action);
    return action.sa_handler == SIG_IGN ? status : 99;
  });
  EXPECT_EQ(status_of(pid), 5);
}

class PassedOn : public ::testing::TestWithParam<int> {};

TEST_P(PassedOn, ToTheChildOnceAndTheCallerLivesOn) {
  const ScratchFolder folder;
  const int number = GetParam();
  const std::string script = "n=0; trap 'n=$((n+1))' " + std::to_string(number) + "; : > " +
                             folder.path() + "/ready; while [ $n = 0 ]; do sleep 0.05; done; " +
                             "sleep 0.3; exit $((40+n))";
  const pid_t pid = fork_process([&] {
    Environment environment;
    environment.set("PATH", "/usr/bin:/bin");
    return run_child("/bin/sh", {"sh", "-c", script}, environment)->status();
  });
  wait_for_file(folder / "ready");
  ::kill(pid, number);
  EXPECT_EQ(status_of(pid), 41);
}

INSTANTIATE_TEST_SUITE_P(Signals, PassedOn, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT));

TEST(RunChild, LeavesSignalsAloneThatWereIgnoredBefore) {
  const ScratchFolder folder;
  const pid_t pid = fork_process([&] {
    ::signal(SIGHUP, SIG_IGN);  // as nohup does
    Environment environment;
    environment.set("PATH", "/usr/bin:/bin");
    return run_child("/bin/sh", {"sh", "-c", ": > " + folder.path() + "/ready; sleep 0.5; exit 6"},
                     environment)
        ->status();
  });
  wait_for_file(folder / "ready");
  ::kill(pid, SIGHUP);
  EXPECT_EQ(status_of(pid), 6);
}

TEST(RunChild, PutsHandlersAndMaskBack) {
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  shell("exit 0");
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD})
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
}

// Ctrl-C at a terminal goes to the whole group: the child must see it once.
TEST(RunChild, DoesNotDoubleTheTerminalsSignals) {
  const ScratchFolder folder;
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  const std::string name = ::ptsname(terminal);
  const std::string script = "n=0; trap 'n=$((n+1))' INT; : > " + folder.path() +
                             "/ready; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.3; "
                             "exit $((40+n))";
  const pid_t pid = fork_process([&] {
    ::setsid();
    const int side = ::open(name.c_str(), O_RDWR);  // becomes the controlling terminal
    ::dup2(side, STDIN_FILENO);
    Environment environment;
    environment.set("PATH", "/usr/bin:/bin");
    return run_child("/bin/sh", {"sh", "-c", script}, environment)->status();
  });
  wait_for_file(folder / "ready");
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  EXPECT_EQ(status_of(pid), 41);
  ::close(terminal);
}

TEST(RunChild, SaysWhyItCannotStart) {
  const ScratchFolder folder;
  const auto missing = run_child(folder / "nothing", {"nothing"}, Environment());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("No such file"));
  const std::string script = folder.file("script", "echo hello\n", 0750);
  const auto not_a_program = run_child(script, {"script"}, Environment());
  ASSERT_FALSE(not_a_program);
  EXPECT_THAT(not_a_program.error().text(), HasSubstr("start it with its shell"));
}

}  // namespace
}  // namespace ait::launch
