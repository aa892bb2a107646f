// Page-locked memory that a device copies into and the writer writes from, shared out in parts.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace ait::python {

// Parts of one block of memory, lent until the writer has written them. The block is its maker's.
class LentMemory {
 public:
  LentMemory(uintptr_t address, size_t bytes)
      : address_(address), bytes_(bytes / kAlignment * kAlignment) {
    free_[0] = bytes_;
  }

  // Where in the block `bytes` bytes are free, or nothing if they are not at the moment.
  std::optional<size_t> reserve(size_t bytes) {
    const size_t wanted = rounded(bytes);
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const auto& part) { return part.second >= wanted; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found == free_.end()) return std::nullopt;
    const auto [offset, size] = *found;
    free_.erase(found);
    if (size > wanted) free_[offset + wanted] = size - wanted;
    return offset;
  }

  void give_back(size_t offset, size_t bytes) {
    size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + size == after->first) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        free_.erase(before);
      }
    }
    free_[offset] = size;
    ++returns_;
    returned_.notify_all();
  }

  // Waits for `give_back`, unless the writer holds nothing of the block.
  void wait() {
    std::unique_lock lock(mutex_);
    const uint64_t before = returns_;
    returned_.wait(lock, [&] { return returns_ != before || with_writer_ == 0; });
  }

  void count_with_writer(int change) {
    const std::lock_guard lock(mutex_);
    with_writer_ += change;
    returned_.notify_all();
  }

  const void* at(size_t offset) const { return reinterpret_cast<const void*>(address_ + offset); }
  size_t bytes() const { return bytes_; }

  static constexpr size_t kAlignment = 256;  // what CUDA aligns its own memory to

 private:
  static size_t rounded(size_t bytes) {
    return (std::max(bytes, size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
  }

  const uintptr_t address_;
  const size_t bytes_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::map<size_t, size_t> free_;  // offset to size
  uint64_t returns_ = 0;
  int with_writer_ = 0;
};

}  // namespace ait::python
