// Files that a user names, opened without being held up by what they are not: a FIFO that nobody
// writes, a device without end, a folder.
//
//   const auto text = read_text(path, kMaxTreeBytes);
//   if (!text) return fail(text.error());
//   parser.parse(*text);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace ait {

// A file number that is closed on every way out of a function.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct RegularFile {
  Descriptor descriptor;
  size_t bytes;  // by its inode: some files of the system say 0 and hold something
};

// Fails on a missing path (kNotFound), and on everything that is not a regular file or may not be
// read (kUnreadable). `expected` is what a message says was meant: "program".
Result<RegularFile> open_regular(const std::string& path, std::string_view expected);

// A JSON parser may look at this many bytes behind its text; memory for them follows what read_text
// returns, so that no parser needs a copy.
inline constexpr size_t kTextPaddingBytes = 64;

// The whole file, for documents that are small by nature. Fails as open_regular does, and on more
// than `max_bytes`, which the message names (kUnsupported).
Result<std::string> read_text(const std::string& path, size_t max_bytes);

}  // namespace ait
