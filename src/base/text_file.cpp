#include "base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/node_paths.h"

namespace ait {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

std::string bytes_text(size_t bytes) {
  return bytes % kMebibyte == 0 ? std::to_string(bytes / kMebibyte) + " MiB"
                                : std::to_string(bytes) + " bytes";
}

Error too_large(const std::string& path, size_t max_bytes) {
  return Error(ErrorCode::kUnsupported, path)
         << "is larger than " << bytes_text(max_bytes) << ", more than such a file can be";
}

// "a FIFO": what lies where a file is expected.
std::string_view kind_text(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error not_a_file(const std::string& path, mode_t mode, std::string_view expected) {
  return Error(ErrorCode::kUnreadable, path)
         << "is " << kind_text(mode) << " where a " << expected << " is expected";
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RegularFile> open_regular(const std::string& path, std::string_view expected) {
  // O_NONBLOCK: a fifo given by mistake must not hang the program before fstat can tell what it is.
  // O_NOCTTY: a terminal does not become that of the program.
  const char* where = path.c_str();
  Result<std::string> local;
  if (has_node_paths()) {
    local = local_path(path);
    if (!local) return fail(local.error());
    where = local->c_str();
  }
  Descriptor file(::open(where, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (file.get() < 0) {
    const int why = errno;
    if (why == ENOENT || why == ENOTDIR)
      return fail(Error(ErrorCode::kNotFound, path) << "no such file; check the path");
    if (::stat(where, &status) == 0 && S_ISSOCK(status.st_mode))
      return fail(not_a_file(path, status.st_mode, expected));  // none can be opened
    return fail(Error(ErrorCode::kUnreadable, path)
                << "cannot be opened for reading: " << system_message(why));
  }
  if (::fstat(file.get(), &status) != 0)
    return fail(Error(ErrorCode::kUnreadable, path)
                << "cannot be examined: " << system_message(errno));
  if (!S_ISREG(status.st_mode)) return fail(not_a_file(path, status.st_mode, expected));
  return RegularFile{std::move(file), static_cast<size_t>(status.st_size)};
}

Result<std::string> read_text(const std::string& path, size_t max_bytes) {
  const auto file = open_regular(path, "file");
  if (!file) return fail(file.error());
  if (file->bytes > max_bytes) return fail(too_large(path, max_bytes));
  // It may grow while it is read, or have said nothing of its size: read on until it ends.
  std::string text(file->bytes + kTextPaddingBytes, '\0');
  for (size_t used = 0;;) {
    if (used == text.size()) text.resize(2 * used);
    const ssize_t got = ::read(file->descriptor.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(Error(ErrorCode::kUnreadable, path)
                  << "cannot be read: " << system_message(errno));
    used += static_cast<size_t>(got);
    if (used > max_bytes) return fail(too_large(path, max_bytes));
    if (got > 0) continue;
    text.resize(used);
    text.reserve(used + kTextPaddingBytes);
    return text;
  }
}

}  // namespace ait
