// Processes that a command has left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace ait::launch {

// Whether process `pid` runs and was started with `entry` ("NAME=value") in its environment. The
// pid alone would prove nothing: it may be used again, or come from inside a container.
bool runs_with(pid_t pid, const std::string& entry);

// All such processes that we may look at.
std::vector<pid_t> processes_with(const std::string& entry);

// Waits until the process ends, but not beyond the deadline. Whether it has ended.
bool wait_for_end(pid_t pid, std::chrono::steady_clock::time_point deadline);

}  // namespace ait::launch
