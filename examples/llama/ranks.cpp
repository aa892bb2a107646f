#include "ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

namespace ait_llama {
namespace {

constexpr int kCannot = 2;

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

bool runs(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

[[noreturn]] void run_child(size_t rank, pid_t parent, atb::Communicator& communicator,
                            const std::function<int(size_t, atb::Communicator*)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
    dup2(nowhere, STDOUT_FILENO);
  communicator.join(rank);
  communicator.set_peer_check([parent] { return getppid() == parent; });
  const int status = work(rank, &communicator);
  if (status != 0) static_cast<void>(communicator.fail());
  // exit, not _exit: a probe in this process still has files to write.
  std::exit(status);
}

}  // namespace

int run_ranks(size_t ranks, const std::function<int(size_t, atb::Communicator*)>& work) {
  if (ranks == 1) return work(0, nullptr);
  const auto communicator = atb::Communicator::create(ranks);
  if (communicator == nullptr) {
    std::fprintf(stderr, "ait-llama: error: no shared memory for %zu processes\n", ranks);
    return kCannot;
  }
  std::vector<pid_t> children;
  const pid_t parent = getpid();
  for (size_t rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      std::perror("ait-llama: error: cannot start another process");
      static_cast<void>(communicator->fail());
      break;
    }
    if (child == 0) run_child(rank, parent, *communicator, work);
    children.push_back(child);
  }
  int status = kCannot;
  if (children.size() + 1 == ranks) {
    communicator->join(0);
    communicator->set_peer_check([&children] {
      for (const pid_t child : children)
        if (!runs(child)) return false;
      return true;
    });
    status = work(0, communicator.get());
    if (status != 0) static_cast<void>(communicator->fail());
  }
  for (const pid_t child : children) {
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) status = status_of(wait_status);
  }
  return status;
}

}  // namespace ait_llama
