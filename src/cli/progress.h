// A line on stderr that tells how far long work is: bar, share, rate, time left. Only on a
// terminal, only after a second, and gone when the work ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ait::cli {

class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Not thread-safe; cheap enough to be called for every row.
  void advance(size_t done, uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  void clear();

  bool enabled_;
  bool drawn_ = false;
  size_t total_;
  uint64_t bytes_ = 0;
  Clock::time_point start_;
  Clock::time_point next_;
};

// The line itself: "[######----]  60%  1200/2000 rows  4.2 GB/s  12 s left".
std::string progress_line(size_t done, size_t total, uint64_t bytes, double seconds);

}  // namespace ait::cli
