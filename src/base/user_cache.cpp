#include "base/user_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/folders.h"
#include "base/text_file.h"

namespace ait {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr std::string_view kTemporary = ".tmp";
// What a process that was killed left behind.
constexpr time_t kStaleSeconds = 86400;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Somebody else's file could say anything.
bool is_ours(const struct stat& status, mode_t kind) {
  return (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_our_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && is_ours(status, S_IFDIR);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

UserCache UserCache::of_user() {
  if (variable("AIT_CACHE") == "0") return UserCache({});
  // A path that is not absolute would be another one in each folder; the standard says to ignore it.
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return UserCache(cache + "/ait");
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return UserCache(home + "/.cache/ait");
  return UserCache({});
}

std::optional<std::string> UserCache::read(const std::string& name, size_t max_bytes) const {
  if (!is_usable() || !is_our_folder(folder_)) return std::nullopt;
  const std::string path = folder_ + "/" + name;
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !is_ours(status, S_IFREG)) return std::nullopt;
  auto bytes = read_text(path, max_bytes);
  if (!bytes) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return std::move(*bytes);
}

bool UserCache::write(const std::string& name, std::string_view bytes) const {
  if (!is_usable() || bytes.size() > most_bytes_) return false;
  std::vector<std::string> made;
  if (make_folders(folder_, kFolderMode, made) || !is_our_folder(folder_)) return false;
  static std::atomic<unsigned> counter{0};
  const std::string path = folder_ + "/" + name;
  const std::string temporary = path + "." + std::to_string(::getpid()) + "." +
                                std::to_string(counter++) + std::string(kTemporary);
  bool is_written = false;
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (file.get() < 0) return false;
    // Not synced: after a crash a checksum tells that it is not whole.
    is_written = write_all(file.get(), bytes);
  }
  if (!is_written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  remove_oldest(name);
  return true;
}

void UserCache::remove_oldest(const std::string& but) const {
  struct File {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_.c_str()), ::closedir);
  if (folder == nullptr) return;
  std::vector<File> files;
  uint64_t bytes = 0;
  const time_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    struct stat status{};
    if (::fstatat(::dirfd(folder.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (name.ends_with(kTemporary)) {
      if (now - status.st_mtim.tv_sec > kStaleSeconds)
        ::unlinkat(::dirfd(folder.get()), name.c_str(), 0);
      continue;
    }
    bytes += static_cast<uint64_t>(status.st_size);
    if (name != but) files.push_back({status.st_mtim, static_cast<uint64_t>(status.st_size), name});
  }
  std::ranges::sort(files, [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const File& file : files) {
    if (bytes <= most_bytes_) return;
    ::unlinkat(::dirfd(folder.get()), file.name.c_str(), 0);
    bytes -= file.bytes;
  }
}

}  // namespace ait
