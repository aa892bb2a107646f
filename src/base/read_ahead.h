// Asks the disk for files before they are opened, so that several are on their way at any time while
// those that have come are worked on.
//
//   ReadAhead ahead;
//   for (const Batch& batch : next_ones) ahead.want(batch.paths);
//   ahead.take();                 // the first of those that are wanted is worked on from now on
//
// What comes lies in the page cache, which is not memory of ours; no more than `most_bytes` of it
// are asked for before they are needed. Files that cannot be opened are passed over: whoever works
// on them says so.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ait {

inline constexpr uint64_t kReadAheadBytes = uint64_t{64} << 20;

class ReadAhead {
 public:
  explicit ReadAhead(uint64_t most_bytes = kReadAheadBytes);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Files that are worked on together, after all those before. Not worth it for small files that may
  // be in memory: to wake a thread takes as long as reading one. Where many in a row were in memory,
  // only some are looked at until one is not.
  void want(std::vector<std::string> paths);
  void take();

 private:
  struct Wanted {
    std::vector<std::string> paths;
    uint64_t bytes = 0;  // that were asked for
  };

  void read();
  bool is_passed_over(uint64_t number) const;

  const uint64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Wanted> wanted_;
  uint64_t first_ = 0;    // number of wanted_.front()
  uint64_t next_ = 0;     // to be asked for
  uint64_t bytes_ = 0;    // asked for and not taken yet
  size_t in_memory_ = 0;  // of those that were looked at last, in a row
  bool ends_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace ait
