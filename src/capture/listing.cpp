#include "capture/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "base/text_file.h"

namespace ait::capture {
namespace {

constexpr size_t kBufferBytes = 32768;

// The kernel's record, which glibc does not declare under a stable name.
struct KernelEntry {
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t type;
  char name[1];
};

bool is_folder(int parent, const char* name, uint8_t type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status{};
  return ::fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

// File systems of this machine fill the buffer as far as it goes, so that a call which left room
// for another name was the last. Others (NFS, FUSE) may stop anywhere.
bool fills_buffers(int folder) {
  struct statfs status{};
  if (::fstatfs(folder, &status) != 0) return false;
  const auto type = static_cast<uint64_t>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || type == XFS_SUPER_MAGIC;
}

// False, with errno, where the folder cannot be read to its end.
bool read_entries(int folder, bool full_buffers, std::vector<Entry>& out) {
  alignas(KernelEntry) std::array<char, kBufferBytes> buffer;
  while (true) {
    const long bytes = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
    if (bytes == 0) return true;
    if (bytes < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    for (long at = 0; at < bytes;) {
      uint16_t length;
      std::memcpy(&length, buffer.data() + at + offsetof(KernelEntry, bytes), sizeof length);
      const auto type =
          static_cast<uint8_t>(buffer[static_cast<size_t>(at) + offsetof(KernelEntry, type)]);
      const char* name = buffer.data() + at + offsetof(KernelEntry, name);
      if (name[0] != '.') out.push_back({name, is_folder(folder, name, type)});
      at += length;
    }
    if (full_buffers && static_cast<size_t>(bytes) + sizeof(KernelEntry) + NAME_MAX < buffer.size())
      return true;
  }
}

// Access times of folders stay as they are: writing them costs a tenth of the time, and what is
// written has to go to the disk. Of other people's folders they cannot be kept; `keep_times` then
// becomes false.
int open_folder(int parent, const char* name, int flags, bool& keep_times) {
  const int all = O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags;
  if (keep_times) {
    const int folder = ::openat(parent, name, all | O_NOATIME);
    if (folder >= 0 || errno != EPERM) return folder;
    keep_times = false;
  }
  return ::openat(parent, name, all);
}

Error cannot_list(const std::string& path) {
  return Error(ErrorCode::kUnreadable, path) << "cannot be listed: " << system_message(errno);
}

bool is_before(const timespec& time, const timespec& limit) {
  return time.tv_sec != limit.tv_sec ? time.tv_sec < limit.tv_sec : time.tv_nsec < limit.tv_nsec;
}

struct Walk {
  std::string root;
  std::string below;  // "a/b/", where the walk stands
  std::string files;
  std::vector<Error>& problems;
  FolderTrace* trace = nullptr;
  bool full_buffers = false;
  bool keep_times = true;

  void enter(int parent, const char* name, size_t depth) {
    if (depth > kMaxFolderDepth) {
      problems.push_back(Error(ErrorCode::kUnsupported, root + "/" + below)
                         << "is nested deeper than any dump; it is not used");
      return;
    }
    const Descriptor folder(open_folder(parent, name, depth > 0 ? O_NOFOLLOW : 0, keep_times));
    if (depth == 0 && folder.get() >= 0) full_buffers = fills_buffers(folder.get());
    // Before its entries are read: what changes in the meantime shows the next time.
    if (trace != nullptr && folder.get() >= 0) note(folder.get());
    std::vector<Entry> entries;
    if (folder.get() < 0 || !read_entries(folder.get(), full_buffers, entries)) {
      problems.push_back(cannot_list(root + "/" + below));
      return;
    }
    std::sort(entries.begin(), entries.end());
    for (const Entry& entry : entries) {
      if (entry.is_folder) continue;
      files += below;
      files += entry.name;
      files += '\0';
    }
    const size_t length = below.size();
    for (const Entry& entry : entries) {
      if (!entry.is_folder) continue;
      below += entry.name;
      below += '/';
      enter(folder.get(), entry.name.c_str(), depth + 1);
      below.resize(length);
    }
  }

  void note(int folder) {
    struct stat status{};
    if (::fstat(folder, &status) != 0) {
      trace->is_settled = false;
      return;
    }
    if (trace->stamps.empty()) trace->device = status.st_dev;
    trace->is_settled &= status.st_dev == trace->device &&
                         is_before(status.st_mtim, trace->settled_before) &&
                         is_before(status.st_ctim, trace->settled_before);
    trace->folders.append(below, 0, below.empty() ? 0 : below.size() - 1);
    trace->folders += '\0';
    trace->stamps.push_back(stamp_of(status));
  }
};

}  // namespace

Result<std::vector<Entry>> list_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<Entry> entries;
  if (folder.get() < 0 || !read_entries(folder.get(), false, entries))
    return fail(cannot_list(path));
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool has_entry(const std::vector<Entry>& entries, const std::string& name) {
  const auto found = std::lower_bound(entries.begin(), entries.end(), Entry{name, false});
  return found != entries.end() && found->name == name;
}

FolderStamp stamp_of(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  };
  return {status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

std::string list_files(const std::string& path, std::vector<Error>& problems, FolderTrace* trace) {
  Walk walk{path, {}, {}, problems, trace};
  walk.enter(AT_FDCWD, path.c_str(), 0);
  return std::move(walk.files);
}

}  // namespace ait::capture
