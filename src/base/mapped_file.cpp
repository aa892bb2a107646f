#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ait {
namespace {

// Closes on every way out of a function.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

constexpr size_t kReadAheadBytes = size_t{16} << 20;

Error system_error(ErrorCode code, const std::string& path, std::string_view what) {
  return Error(code, path) << what << ": " << system_message(errno);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a fifo given by mistake must not hang the program before fstat can tell what it is.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return fail(Error(ErrorCode::kNotFound, path) << "no such file; check the path");
    return fail(system_error(ErrorCode::kUnreadable, path, "cannot be opened for reading"));
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    return fail(system_error(ErrorCode::kUnreadable, path, "cannot be examined"));
  if (S_ISDIR(status.st_mode))
    return fail(Error(ErrorCode::kUnreadable, path)
                << "is a folder where a tensor file is expected");
  if (!S_ISREG(status.st_mode))
    return fail(Error(ErrorCode::kUnreadable, path) << "is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
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
