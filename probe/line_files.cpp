#include "line_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ait::probe {
namespace {

// Which file is open under a number; all zero where none is.
struct Identity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t names = 0;  // 0: deleted
};

Identity identify(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_NLINK, &status) != 0)
    return {};
  return {uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor, status.stx_ino,
          status.stx_nlink};
}

bool is_ours(const LineFiles::File& file, const Identity& now) {
  return now.device == file.device && now.inode == file.inode;
}

uint64_t count_lines(int fd) {
  uint64_t lines = 0;
  off_t at = 0;
  char buffer[4096];
  for (ssize_t got; (got = ::pread(fd, buffer, sizeof buffer, at)) > 0; at += got)
    for (ssize_t i = 0; i < got; ++i) lines += buffer[i] == '\n' ? 1 : 0;
  return lines;
}

}  // namespace

LineFiles::File* LineFiles::open(const char* stem, uint64_t round, const char* suffix,
                                 const char* header, record::WriteStatus& status) {
  File* oldest = &files_[0];
  for (File& file : files_) {
    if (file.fd >= 0 && file.round == round) {
      if (const Identity now = identify(file.fd); is_ours(file, now) && now.names > 0) {
        file.used = ++clock_;
        return &file;
      }
      close(file);
    }
    if (file.used < oldest->used) oldest = &file;
  }
  close(*oldest);

  const int length = std::snprintf(path_, sizeof path_, "%s%llu%s", stem,
                                   static_cast<unsigned long long>(round), suffix);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path_) {
    status = {ENAMETOOLONG, "use the path"};
    return nullptr;
  }
  oldest->fd = record::open_for_lines(path_);
  if (oldest->fd < 0) {
    status = record::open_failure();
    return nullptr;
  }
  const Identity identity = identify(oldest->fd);
  oldest->device = identity.device;
  oldest->inode = identity.inode;
  oldest->round = round;
  oldest->used = ++clock_;
  oldest->lines = count_lines(oldest->fd);
  if (oldest->lines == 0 && header != nullptr) {
    record::ByteBuffer line;
    line.add_text(header);
    status = append(*oldest, line);
  }
  return status.ok() ? oldest : nullptr;
}

void LineFiles::close(File& file) {
  if (file.fd >= 0 && is_ours(file, identify(file.fd))) ::close(file.fd);
  file = {};
}

record::WriteStatus LineFiles::append(File& file, const record::ByteBuffer& line) {
  if (line.out_of_memory()) return {ENOMEM, "set memory aside"};
  const record::WriteStatus status = record::append_line(file.fd, line.data(), line.size());
  if (status.ok()) ++file.lines;
  return status;
}

}  // namespace ait::probe
