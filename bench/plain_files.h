// What the recording benchmarks share: the plain loop that they are measured against, and the
// clock.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace ait::bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline double spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return (*high - *low) / median(values);
}

[[noreturn]] inline void give_up(const std::string& path) {
  std::perror(path.c_str());
  std::exit(2);
}

inline void create_write_rename(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (fd < 0) give_up(temporary);
  for (size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(fd, content.data() + done, content.size() - done);
    if (written < 0) give_up(temporary);
    done += static_cast<size_t>(written);
  }
  ::close(fd);
  if (::rename(temporary.c_str(), path.c_str()) != 0) give_up(path);
}

}  // namespace ait::bench
