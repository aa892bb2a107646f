#include "record/repeat_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ait::record {
namespace {

bool identity_of(int folder, const char* path, int flags, struct statx& found) {
  return ::statx(folder, path, flags, STATX_INO, &found) == 0;
}

}  // namespace

int link_open_file(int fd, const char* from, const char* to) {
  struct statx wanted{};
  if (!identity_of(fd, "", AT_EMPTY_PATH, wanted)) return errno;
  int error = ::link(from, to) == 0 ? 0 : errno;
  if (error == ENOENT && create_parents(to).ok()) error = ::link(from, to) == 0 ? 0 : errno;
  if (error != 0) return error;
  struct statx linked{};
  if (identity_of(AT_FDCWD, to, AT_SYMLINK_NOFOLLOW, linked) && linked.stx_ino == wanted.stx_ino &&
      linked.stx_dev_major == wanted.stx_dev_major && linked.stx_dev_minor == wanted.stx_dev_minor)
    return 0;
  ::unlink(to);
  return ENOENT;
}

WriteStatus repeat_file(const char* from, const char* to) {
  const int fd = open_regular_file(from, O_RDONLY);
  if (fd < 0) return {errno, "find the first file of the same tensor"};
  WriteStatus status;
  status.linked = link_open_file(fd, from, to) == 0;
  if (!status.linked) status = write_copy(to, fd);
  ::close(fd);
  return status;
}

}  // namespace ait::record
