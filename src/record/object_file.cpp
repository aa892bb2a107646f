#include "record/object_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace ait::record {
namespace {

constexpr char kOpening[] = "{";
constexpr char kSeparator[] = ",";
constexpr char kLineEnd[] = "\n";
constexpr char kClosing[] = "\n}";

template <size_t N>
iovec part(const char (&text)[N]) {
  return {const_cast<char*>(text), N - 1};
}

// All parts in one call. What it returns otherwise than the sum of their lengths is a failure.
ssize_t write_at(int fd, const iovec* parts, int count, off_t offset) {
  ssize_t written;
  do {
    written = ::pwritev(fd, parts, count, offset);
  } while (written < 0 && errno == EINTR);
  return written;
}

}  // namespace

ObjectFile::~ObjectFile() {
  if (fd_ >= 0) ::close(fd_);
}

WriteStatus ObjectFile::create(const char* path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL;
  int fd = open_regular_file(path, kFlags);
  if (fd < 0 && errno == ENOENT) {
    if (const WriteStatus status = create_parents(path); !status.ok()) return status;
    fd = open_regular_file(path, kFlags);
  }
  if (fd < 0) return {errno, "create the file"};
  const iovec parts[] = {part(kOpening), part(kClosing)};
  if (write_at(fd, parts, 2, 0) != static_cast<ssize_t>(parts[0].iov_len + parts[1].iov_len)) {
    const int error = errno == 0 ? ENOSPC : errno;
    ::close(fd);
    ::unlink(path);
    return {error, "write the file"};
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  end_ = static_cast<off_t>(parts[0].iov_len);
  empty_ = true;
  return {};
}

WriteStatus ObjectFile::add(const void* member, size_t bytes) {
  iovec separator = part(kSeparator);
  if (empty_) separator.iov_len = 0;
  const iovec parts[] = {
      separator, part(kLineEnd), {const_cast<void*>(member), bytes}, part(kClosing)};
  const off_t more = static_cast<off_t>(separator.iov_len + parts[1].iov_len + bytes);
  const auto wanted = static_cast<ssize_t>(more) + static_cast<ssize_t>(parts[3].iov_len);
  const ssize_t written = write_at(fd_, parts, 4, end_);
  if (written == wanted) {
    end_ += more;
    empty_ = false;
    return {};
  }
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0) {
    const iovec closing = part(kClosing);
    const off_t whole = end_ + static_cast<off_t>(closing.iov_len);
    if (write_at(fd_, &closing, 1, end_) != static_cast<ssize_t>(closing.iov_len) ||
        ::ftruncate(fd_, whole) != 0)
      return {errno, "take back half a member"};
  }
  return {error, "add to the file"};
}

}  // namespace ait::record
