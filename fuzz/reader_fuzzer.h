// What every fuzz target does with its input: open it as a file, load the tensors, read their
// bytes. The replay of the corpora (tests/attacks) includes it too, so both see the same accesses.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "formats/registry.h"

#if defined(__SANITIZE_ADDRESS__)
#define AIT_FUZZ_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AIT_FUZZ_WITH_ASAN 1
#endif
#endif
#ifdef AIT_FUZZ_WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ait::fuzz {

using Opener = Result<std::unique_ptr<formats::TensorFile>> (*)(std::shared_ptr<const MappedFile>);

// Enough to reach every way of describing a tensor, few enough that an input stays fast.
inline constexpr size_t kMaxTensors = 64;
inline constexpr size_t kMaxElementsRead = 256;

// The input as a file in memory. A mapping ends at a page, not at the last byte, so an over-read of
// less than a page would go unseen: what lies behind the last byte is poisoned for
// AddressSanitizer. Small files are read into memory that it watches anyway.
class InputFile {
 public:
  explicit InputFile(std::span<const std::byte> input) {
    const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) return;
    const ssize_t written = ::write(fd, input.data(), input.size());
    if (written == static_cast<ssize_t>(input.size())) {
      auto opened = MappedFile::open("/proc/self/fd/" + std::to_string(fd));
      if (opened) file_ = std::move(*opened);
    }
    ::close(fd);
    poison_tail(true);
  }
  // Before the mapping goes: its addresses will serve others.
  ~InputFile() { poison_tail(false); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::shared_ptr<const MappedFile>& file() const { return file_; }  // null: no memory for it

 private:
  void poison_tail([[maybe_unused]] bool poison) const {
#ifdef AIT_FUZZ_WITH_ASAN
    constexpr size_t kMostRead = size_t{64} << 10;  // by MappedFile, in place of being mapped
    if (!file_ || file_->bytes().size() <= kMostRead) return;
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto bytes = file_->bytes();
    const size_t tail = (page - bytes.size() % page) % page;
    if (poison)
      ASAN_POISON_MEMORY_REGION(bytes.data() + bytes.size(), tail);
    else
      ASAN_UNPOISON_MEMORY_REGION(bytes.data() + bytes.size(), tail);
#endif
  }

  std::shared_ptr<const MappedFile> file_;
};

// Reads the first and the last elements.
inline void touch(const TensorView& view) {
  const size_t count = std::min(view.elements, kMaxElementsRead);
  std::vector<std::byte> copy(count * size_bytes(view.dtype));
  gather(view, 0, count, copy.data());
  gather(view, view.elements - count, count, copy.data());
}

inline void exercise(const formats::TensorFile& file) {
  for (size_t i = 0; i < std::min(file.size(), kMaxTensors); ++i) {
    const std::string name = file.name(i);
    if (const auto tensor = file.load(i)) touch(tensor->view());
    static_cast<void>(file.describe(i));
  }
  const std::string note = file.note();
}

// Always 0, which tells libFuzzer that any input may join the corpus.
inline int read_as_file(Opener open, const uint8_t* data, size_t size) {
  const InputFile input(std::as_bytes(std::span(data, size)));
  if (!input.file()) return 0;
  if (const auto opened = open(input.file())) exercise(**opened);
  return 0;
}

}  // namespace ait::fuzz
