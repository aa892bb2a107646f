#include "base/read_buffers.h"

#include <mutex>
#include <vector>

namespace ait {
namespace {

// So that files of nearly the same size fit into the same buffers.
constexpr size_t kStepBytes = size_t{256} << 10;

}  // namespace

class ReadBuffers::Pool {
 public:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };

  explicit Pool(size_t most_bytes) : most_bytes_(most_bytes) {}

  Buffer take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    // Of those that are large enough the smallest, and of these the one whose bytes were used last.
    size_t best = idle_.size();
    for (size_t i = idle_.size(); i-- > 0;)
      if (idle_[i].size >= bytes && (best == idle_.size() || idle_[i].size < idle_[best].size))
        best = i;
    if (best < idle_.size()) {
      Buffer found = std::move(idle_[best]);
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
      return found;
    }
    const size_t size = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
    while (!idle_.empty() && bytes_ + size > most_bytes_) {
      bytes_ -= idle_.front().size;
      idle_.erase(idle_.begin());
    }
    if (bytes_ + size > most_bytes_) return {};
    bytes_ += size;
    return {std::make_unique_for_overwrite<std::byte[]>(size), size};
  }

  void give_back(Buffer buffer) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(buffer));
  }

 private:
  const size_t most_bytes_;
  std::mutex mutex_;
  std::vector<Buffer> idle_;  // the one that was used last at the end
  size_t bytes_ = 0;          // of all buffers, in use or not
};

ReadBuffers::ReadBuffers(size_t most_bytes) : pool_(std::make_shared<Pool>(most_bytes)) {}

std::shared_ptr<std::byte[]> ReadBuffers::take(size_t bytes) const {
  if (bytes > kMostOfAFile) return nullptr;
  Pool::Buffer buffer = pool_->take(bytes);
  if (buffer.bytes == nullptr) return nullptr;
  const size_t size = buffer.size;
  return {buffer.bytes.release(), [pool = pool_, size](std::byte* at) {
            pool->give_back({std::unique_ptr<std::byte[]>(at), size});
          }};
}

}  // namespace ait
