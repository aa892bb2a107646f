#include "launch/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace ait::launch {

bool runs_with(pid_t pid, const std::string& entry) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string found; std::getline(file, found, '\0');)
    if (found == entry) return true;
  return false;  // gone, a zombie, or not ours
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().native();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    const bool is_pid = read.ec == std::errc() && read.ptr == name.data() + name.size();
    if (is_pid && runs_with(pid, entry)) out.push_back(pid);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool wait_for_end(pid_t pid, std::chrono::steady_clock::time_point deadline) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return errno == ESRCH;
  int ready = 0;
  do {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{descriptor, POLLIN, 0};
    ready = ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  ::close(descriptor);
  return ready > 0;
}

}  // namespace ait::launch
