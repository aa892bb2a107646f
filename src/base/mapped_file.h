// Read-only bytes of a file, mapped rather than read, so that a tensor of any size costs no memory
// of ours. Small files are read: mapping takes longer, and threads that map wait for each other.
// Larger ones are, too, where their reader has memory that it uses again (read_buffers.h).
//
//   auto file = MappedFile::open(path);
//   if (!file) return fail(file.error());
//   std::span<const std::byte> bytes = (*file)->bytes();
//
// Shared by every tensor that lies in the file; the mapping goes when the last of them does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/read_buffers.h"

namespace ait {

class MappedFile {
 public:
  // Fails on a missing path, a folder, anything that is not a regular file, and on lack of
  // permission. An empty file maps to no bytes.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path,
                                                        const ReadBuffers* buffers = nullptr);

  // Bytes of our own making (a decompressed member) in an unlinked temporary file: page cache that
  // the kernel can write out, not anonymous memory. `fill` gets exactly `size` writable bytes.
  // Refuses more than half of what is free in TMPDIR, or than AIT_MAX_TEMPORARY_BYTES where that is
  // set (kUnwritable).
  static Result<std::shared_ptr<const MappedFile>> temporary(
      size_t size, const std::function<Result<void>(std::span<std::byte>)>& fill);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  MappedFile(std::string path, std::shared_ptr<const std::byte[]> bytes, size_t size)
      : path_(std::move(path)), read_(std::move(bytes)), data_(read_.get()), size_(size) {}

  std::string path_;
  std::shared_ptr<const std::byte[]> read_;  // null: mapped
  const std::byte* data_;
  size_t size_;
};

}  // namespace ait
