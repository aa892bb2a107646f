#include "launch/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace ait::launch {
namespace {

// Holds back the signals that would end us, and SIGCHLD, to be fetched one by one with next(). No
// handler is involved, so whatever the program has installed stays and nothing can happen in
// between.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      struct sigaction action{};
      ::sigaction(number, nullptr, &action);
      // nohup and background shells ignore some on purpose. Held back they would arrive.
      if (action.sa_handler != SIG_IGN) sigaddset(&set_, number);
    }
    // Where SIGCHLD is ignored, children vanish without leaving a status.
    struct sigaction standard{};
    sigemptyset(&standard.sa_mask);
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, &old_child_action_);
    ::pthread_sigmask(SIG_BLOCK, &set_, &old_mask_);
  }

  // What is still waiting was meant for the command, which is gone.
  ~HeldSignals() {
    const timespec now{};
    while (::sigtimedwait(&set_, nullptr, &now) > 0) {
    }
    ::sigaction(SIGCHLD, &old_child_action_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  siginfo_t next() const {
    siginfo_t info{};
    while (::sigwaitinfo(&set_, &info) < 0 && errno == EINTR) {
    }
    return info;
  }

  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t set_{};
  sigset_t old_mask_{};
  struct sigaction old_child_action_{};
};

int start(const std::string& path, const std::vector<std::string>& words,
          const Environment& environment, Output output, const sigset_t& mask, pid_t& child) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (output == Output::kToStandardError) {
    if (::fcntl(STDERR_FILENO, F_GETFD) >= 0)
      posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    else  // whoever closed it wants to hear nothing
      posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  const int error = ::posix_spawn(&child, path.c_str(), &files, &attributes, arguments.data(),
                                  environment.pointers().data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// By kill and its relatives; the kernel's own (a key at the terminal) have a positive code.
bool sent_by_a_process(const siginfo_t& info) { return info.si_code <= 0; }

}  // namespace

Result<ChildEnd> run_child(const std::string& path, const std::vector<std::string>& words,
                           const Environment& environment, Output output) {
  const HeldSignals signals;
  pid_t child = 0;
  if (const int error = start(path, words, environment, output, signals.old_mask(), child);
      error != 0) {
    Error cannot(ErrorCode::kUnreadable, path);
    cannot << "cannot be started: " << system_message(error);
    if (error == ENOEXEC) cannot << "; if it is a script, start it with its shell (bash FILE)";
    return fail(std::move(cannot));
  }
  while (true) {
    const siginfo_t info = signals.next();
    if (info.si_signo != SIGCHLD) {
      if (sent_by_a_process(info)) ::kill(child, info.si_signo);
      continue;
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child) continue;  // stopped or continued
    if (WIFSIGNALED(status)) return ChildEnd{0, WTERMSIG(status)};
    return ChildEnd{WEXITSTATUS(status), 0};
  }
}

}  // namespace ait::launch
