#include "record/atomic_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace ait::record {
namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kFolderMode = 0750;
// Of the final name, so that the temporary one stays below NAME_MAX (255) with its affixes.
constexpr int kTemporaryStemBytes = 200;
// A temporary name is taken only by a crashed process that had our pid; it cannot have left many.
constexpr int kNameAttempts = 100;
constexpr size_t kPartsPerCall = 64;
constexpr size_t kCopyBytes = size_t{32} << 10;

std::atomic<uint32_t> next_temporary{0};

WriteStatus failed(const char* step, int error_number = errno) { return {error_number, step}; }

int moved_above_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error_number = errno;
  ::close(fd);
  errno = error_number;
  return higher;
}

// 0, or why what is open is no file to write to.
int kind_error(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) != 0) return errno;
  if (S_ISREG(status.stx_mode)) return 0;
  return S_ISDIR(status.stx_mode) ? EISDIR : EINVAL;
}

// 0 if a file may be put at `path`, and whether one is there. rename() would happily replace
// /dev/null.
int target_error(const char* path, bool& is_there) {
  // statx and not stat, whose symbol asks for glibc 2.33.
  struct statx existing{};
  is_there = ::statx(AT_FDCWD, path, 0, STATX_TYPE, &existing) == 0;
  if (!is_there) return 0;
  if (S_ISDIR(existing.stx_mode)) return EISDIR;
  return S_ISREG(existing.stx_mode) ? 0 : EINVAL;
}

int open_temporary(const char* path, char (&name)[PATH_MAX]) {
  const char* slash = std::strrchr(path, '/');
  const char* stem = slash == nullptr ? path : slash + 1;
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    const int length =
        std::snprintf(name, sizeof name, "%.*s.%.*s.%ld-%u.tmp", static_cast<int>(stem - path),
                      path, kTemporaryStemBytes, stem, static_cast<long>(::getpid()),
                      next_temporary.fetch_add(1, std::memory_order_relaxed));
    if (length < 0 || static_cast<size_t>(length) >= sizeof name) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int fd = open_regular_file(name, O_WRONLY | O_CREAT | O_EXCL);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// rename(), and whether that took the name from another file: exactly, also where several write it
// at once. Network file systems cannot tell, then `was_there` has to do. 0 or errno.
int rename_over(const char* from, const char* to, bool was_there, bool& replaced) {
  replaced = false;
  if (!was_there && ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  replaced = was_there || errno == EEXIST;
  return ::rename(from, to) == 0 ? 0 : errno;
}

// writev may stop anywhere (at 2 GiB, on a signal, when the disk fills up): go on from there.
WriteStatus write_parts(int fd, const iovec* parts, size_t count) {
  size_t done_in_first = 0;
  while (count > 0) {
    iovec batch[kPartsPerCall];
    const size_t batch_size = count < kPartsPerCall ? count : kPartsPerCall;
    std::memcpy(batch, parts, batch_size * sizeof(iovec));
    batch[0].iov_base = static_cast<char*>(batch[0].iov_base) + done_in_first;
    batch[0].iov_len -= done_in_first;
    const ssize_t written = ::writev(fd, batch, static_cast<int>(batch_size));
    if (written < 0) {
      if (errno == EINTR) continue;
      return failed("write the file");
    }
    const size_t before = count;
    size_t advanced = static_cast<size_t>(written) + done_in_first;
    while (count > 0 && advanced >= parts->iov_len) {
      advanced -= parts->iov_len;
      ++parts;
      --count;
    }
    if (written == 0 && count == before) return failed("write the file", EIO);
    done_in_first = advanced;
  }
  return {};
}

WriteStatus write_rest(int fd, int from) {
  char buffer[kCopyBytes];
  while (true) {
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read the file that is copied");
    if (got == 0) return {};
    const iovec part{buffer, static_cast<size_t>(got)};
    if (const WriteStatus status = write_parts(fd, &part, 1); !status.ok()) return status;
  }
}

// A whole file or none, of what `write` puts into it.
template <typename Write>
WriteStatus put_file(const char* path, const WriteOptions& options, Write write) {
  const size_t length = std::strlen(path);
  if (length == 0) return failed("use an empty path", ENOENT);
  if (length >= PATH_MAX) return failed("use the path", ENAMETOOLONG);
  bool is_there = false;
  if (const int error = target_error(path, is_there); error != 0)
    return failed("replace what is not a regular file", error);

  // Nearly always the folder is there: try before looking.
  char temporary[PATH_MAX];
  int fd = open_temporary(path, temporary);
  if (fd < 0 && errno == ENOENT) {
    if (const WriteStatus status = create_parents(path); !status.ok()) return status;
    fd = open_temporary(path, temporary);
  }
  if (fd < 0) return failed("create a file in the folder");
  WriteStatus status = write(fd);
  if (status.ok() && options.sync && ::fsync(fd) != 0)
    status = failed("bring the file to the disk");
  // Network file systems report a full disk only here.
  if (::close(fd) != 0 && status.ok()) status = failed("finish the file");
  if (status.ok())
    if (const int error = rename_over(temporary, path, is_there, status.replaced); error != 0)
      status = failed("rename the finished file", error);
  if (!status.ok()) ::unlink(temporary);
  return status;
}

}  // namespace

int open_regular_file(const char* path, int flags) {
  const int fd =
      moved_above_streams(::open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kFileMode));
  if (fd < 0 || (flags & O_EXCL) != 0) return fd;
  const int error = kind_error(fd);
  if (error == 0) return fd;
  ::close(fd);
  errno = error;
  return -1;
}

WriteStatus create_parents(const char* path) {
  char folder[PATH_MAX];
  const size_t length = std::strlen(path);
  if (length >= sizeof folder) return failed("use the path", ENAMETOOLONG);
  std::memcpy(folder, path, length + 1);
  const auto make = [&folder](size_t slash) {
    folder[slash] = '\0';
    const int error = ::mkdir(folder, kFolderMode) == 0 || errno == EEXIST ? 0 : errno;
    folder[slash] = '/';
    return error;
  };
  // Up to the deepest folder that is there, which is nearly always the next one, then down again.
  size_t slash = length;
  int error = ENOENT;
  while (error == ENOENT) {
    do {
      if (slash == 0) return {};
      --slash;
    } while (folder[slash] != '/');
    if (slash == 0) return {};
    error = make(slash);
  }
  while (error == 0 && ++slash < length)
    if (folder[slash] == '/') error = make(slash);
  return error == 0 ? WriteStatus{} : failed("create the parent folder", error);
}

int open_for_lines(const char* path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND;
  const int fd = open_regular_file(path, kFlags);
  if (fd >= 0 || errno != ENOENT || !create_parents(path).ok()) return fd;
  return open_regular_file(path, kFlags);
}

WriteStatus open_failure() {
  return failed(errno == EINVAL ? "append to what is not a regular file" : "open the file");
}

// A line that the disk has no room for is taken back as far as it got: readers would take it for
// a whole one once another follows.
WriteStatus append_line(int fd, const void* bytes, size_t count) {
  ssize_t written;
  do {
    written = ::write(fd, bytes, count);
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(count)) return {};
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0) {
    const off_t end = ::lseek(fd, 0, SEEK_END);
    if (end >= written && ::ftruncate(fd, end - written) != 0)
      return failed("take back half a line");
  }
  return failed("append a line to the file", error);
}

WriteStatus write_file(const char* path, const iovec* parts, size_t count,
                       const WriteOptions& options) {
  return put_file(path, options, [&](int fd) { return write_parts(fd, parts, count); });
}

WriteStatus write_copy(const char* path, int from) {
  return put_file(path, {}, [&](int fd) { return write_rest(fd, from); });
}

}  // namespace ait::record
