#include "launch/output_of.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace ait::launch {
namespace {

constexpr size_t kMaxOutputBytes = size_t{64} * 1024;

using Clock = std::chrono::steady_clock;

// Starts the command in a process group of its own, with `output` as its standard output. 0 or
// errno.
int start(const std::vector<std::string>& command, int output, pid_t& child) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

  const int error =
      ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// Reads until the end, the limit or the deadline. Whether the end was reached.
bool read_until(int input, Clock::time_point deadline, std::string& out) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{input, POLLIN, 0};
    const int polled = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return false;
    const ssize_t got = ::read(input, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    out.append(buffer.data(), static_cast<size_t>(got));
    if (out.size() > kMaxOutputBytes) return false;
  }
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command,
                              std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(Error(ErrorCode::kUnreadable, command[0])
                << "could not be run: " << system_message(errno));
  pid_t child = 0;
  const int error = start(command, ends[1], child);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(Error(ErrorCode::kNotFound, command[0])
                << "cannot be started: " << system_message(error));
  }
  std::string out;
  const bool ended = read_until(ends[0], deadline, out);
  ::close(ends[0]);
  if (!ended) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return fail(Error(ErrorCode::kUnreadable, command[0])
                << "gave no complete answer within " << limit.count() << " ms");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(Error(ErrorCode::kUnreadable, command[0]) << "failed");
  return out;
}

}  // namespace ait::launch
