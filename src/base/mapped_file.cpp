#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/text_file.h"

namespace ait {
namespace {

constexpr size_t kReadAheadBytes = size_t{16} << 20;
constexpr size_t kSmallBytes = size_t{64} << 10;

Error system_error(ErrorCode code, const std::string& path, std::string_view what) {
  return Error(code, path) << what << ": " << system_message(errno);
}

// The most that one temporary file may take, in bytes; without it half of what is free. A few
// megabytes of a compressed file can ask for any amount, and others need the disk, too.
constexpr const char* kMaxTemporaryBytes = "AIT_MAX_TEMPORARY_BYTES";

Result<void> check_room(int file, const std::string& where, uint64_t size) {
  Error error(ErrorCode::kUnwritable, where);
  error << "is not used for " << size << " temporary bytes";
  if (const char* given = std::getenv(kMaxTemporaryBytes); given != nullptr && *given != '\0') {
    const char* last = given + std::strlen(given);
    uint64_t limit = 0;
    const auto [end, bad] = std::from_chars(given, last, limit);
    const std::string setting = kMaxTemporaryBytes + ("=" + printable(given));
    if (bad != std::errc() || end != last)
      return fail(error << ": " << setting << " is not a number of bytes");
    if (size > limit) return fail(error << ", which is more than " << setting << " allows");
    return {};
  }
  struct statvfs disk{};
  if (::fstatvfs(file, &disk) != 0) return {};  // posix_fallocate will say what is wrong
  const uint64_t free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (size <= free_bytes / 2) return {};
  return fail(error << ", which is more than half of the " << free_bytes
                    << " that are free; point TMPDIR at a larger disk or set "
                    << kMaxTemporaryBytes);
}

// How much there was: a file may have become shorter since it was asked for its size. Nothing on
// failure, with the reason in errno.
std::optional<size_t> read_whole(int file, std::span<std::byte> into) {
  size_t used = 0;
  while (used < into.size()) {
    const ssize_t got = ::read(file, into.data() + used, into.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  return used;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path,
                                                           const ReadBuffers* buffers) {
  const auto file = open_regular(path, "file");
  if (!file) return fail(file.error());
  const size_t size = file->bytes;
  const std::byte* data = nullptr;
  std::shared_ptr<std::byte[]> bytes;
  if (size > 0 && size <= kSmallBytes) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  } else if (size > 0 && buffers != nullptr) {
    bytes = buffers->take(size);
  }
  if (bytes != nullptr) {
    const auto got = read_whole(file->descriptor.get(), {bytes.get(), size});
    if (!got) return fail(system_error(ErrorCode::kUnreadable, path, "cannot be read"));
    return std::shared_ptr<const MappedFile>(new MappedFile(path, std::move(bytes), *got));
  }
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor.get(), 0);
    if (mapping == MAP_FAILED)
      return fail(system_error(ErrorCode::kUnreadable, path, "cannot be mapped"));
    data = static_cast<const std::byte*>(mapping);
    // Small files are wanted whole and soon, large ones from front to back: either way the disk can
    // begin before the first byte is touched. Only a hint, so a refusal does not matter.
    ::madvise(mapping, size, size <= kReadAheadBytes ? MADV_WILLNEED : MADV_SEQUENTIAL);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::temporary(
    size_t size, const std::function<Result<void>(std::span<std::byte>)>& fill) {
  const char* folder = std::getenv("TMPDIR");
  const std::string where = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  const Descriptor file(::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0)
    return fail(system_error(ErrorCode::kUnwritable, where, "cannot hold a temporary file"));
  if (auto fits = check_room(file.get(), where, size); !fits) return fail(fits.error());
  // posix_fallocate, not ftruncate: a full disk must be an error here, not a SIGBUS at the first
  // write.
  if (size > 0) {
    if (const int failure = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size));
        failure != 0)
      return fail(Error(ErrorCode::kUnwritable, where)
                  << "has no room for " << size << " temporary bytes (" << system_message(failure)
                  << "); point TMPDIR at a larger disk");
  }
  std::byte* data = nullptr;
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapping == MAP_FAILED)
      return fail(system_error(ErrorCode::kUnwritable, where, "cannot map a temporary file"));
    data = static_cast<std::byte*>(mapping);
  }
  std::shared_ptr<const MappedFile> owner(new MappedFile(where, data, size));
  if (auto filled = fill({data, size}); !filled) return fail(filled.error());
  return owner;
}

MappedFile::~MappedFile() {
  if (size_ > 0 && read_ == nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ait
