#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

#include "base/text_file.h"

namespace ait {
namespace {

constexpr size_t kReadAheadBytes = size_t{16} << 20;

Error system_error(ErrorCode code, const std::string& path, std::string_view what) {
  return Error(code, path) << what << ": " << system_message(errno);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const auto file = open_regular(path, "file");
  if (!file) return fail(file.error());
  const size_t size = file->bytes;
  const std::byte* data = nullptr;
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
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ait
