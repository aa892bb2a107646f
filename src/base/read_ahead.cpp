#include "base/read_ahead.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text_file.h"

namespace ait {
namespace {

// Opening a file has to wait for the disk, too: a thread can ask for one file at a time only.
constexpr size_t kThreads = 4;

// Of a larger file the beginning; the kernel sees by itself that it is read from front to back.
constexpr uint64_t kMostOfAFile = uint64_t{16} << 20;

// Once so many in a row were in memory, one of so many is looked at.
constexpr size_t kAllInMemory = 16;
constexpr size_t kLookedAt = 8;

// Files of tmpfs always are; other file systems that cannot tell (NFS, FUSE) are asked.
bool is_in_memory(int file, uint64_t bytes) {
  for (const uint64_t at : {uint64_t{0}, bytes / 2, bytes - 1}) {
    char byte = 0;
    iovec into{&byte, 1};
    if (::preadv2(file, &into, 1, static_cast<off_t>(at), RWF_NOWAIT) == 1) continue;
    struct statfs status{};
    return errno == EOPNOTSUPP && ::fstatfs(file, &status) == 0 && status.f_type == TMPFS_MAGIC;
  }
  return true;
}

// How many bytes were asked for.
uint64_t ask_for(const std::string& path) {
  const auto file = open_regular(path, "file");
  if (!file || file->bytes == 0) return 0;
  const int descriptor = file->descriptor.get();
  const uint64_t bytes = std::min<uint64_t>(file->bytes, kMostOfAFile);
  if (is_in_memory(descriptor, bytes)) return 0;
  ::posix_fadvise(descriptor, 0, static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  return bytes;
}

}  // namespace

ReadAhead::ReadAhead(uint64_t most_bytes) : most_bytes_(most_bytes) {
  for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { read(); });
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void ReadAhead::want(std::vector<std::string> paths) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back({std::move(paths)});
    if (is_passed_over(first_ + wanted_.size() - 1)) return;
  }
  changed_.notify_one();
}

bool ReadAhead::is_passed_over(uint64_t number) const {
  return in_memory_ >= kAllInMemory && number % kLookedAt != 0;
}

void ReadAhead::take() {
  bool was_full = false;
  {
    const std::lock_guard lock(mutex_);
    was_full = bytes_ >= most_bytes_;
    bytes_ -= wanted_.front().bytes;
    wanted_.pop_front();
    next_ = std::max(next_, ++first_);
  }
  if (was_full) changed_.notify_all();
}

void ReadAhead::read() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(
        lock, [&] { return ends_ || (next_ < first_ + wanted_.size() && bytes_ < most_bytes_); });
    if (ends_) return;
    const uint64_t number = next_++;
    if (is_passed_over(number)) continue;
    // A copy: it may be taken in the meantime.
    const std::vector<std::string> paths = wanted_[number - first_].paths;
    lock.unlock();
    uint64_t bytes = 0;
    for (const std::string& path : paths) bytes += ask_for(path);
    lock.lock();
    if (!paths.empty()) in_memory_ = bytes == 0 ? in_memory_ + 1 : 0;
    if (number < first_) continue;  // taken
    wanted_[number - first_].bytes = bytes;
    bytes_ += bytes;
  }
}

}  // namespace ait
