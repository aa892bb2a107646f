#include "record/known_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "record/lock.h"
#include "record/repeat_file.h"

namespace ait::record {
namespace {

constexpr size_t kCompareBytes = size_t{32} << 10;

// FNV-1a. It only has to tell files apart that are not alike; bytes decide.
uint64_t key_of(FileImage& file) {
  uint64_t key = 0xcbf29ce484222325;
  const iovec* parts = file.parts();
  for (size_t i = 0; i < file.part_count(); ++i) {
    // The headers, which hold the checksum of the data; the data itself has been read for it.
    if (file.is_reference(i)) continue;
    const auto* bytes = static_cast<const unsigned char*>(parts[i].iov_base);
    for (size_t at = 0; at < parts[i].iov_len; ++at) key = (key ^ bytes[at]) * 0x100000001b3;
  }
  return key;
}

// Reads the file a piece at a time: it could be cut short meanwhile, which a mapping does not
// survive.
bool has_bytes(int fd, const iovec* parts, size_t count) {
  alignas(64) char buffer[kCompareBytes];
  off_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const char* wanted = static_cast<const char*>(parts[i].iov_base);
    for (size_t left = parts[i].iov_len; left > 0;) {
      const ssize_t got = ::pread(fd, buffer, left < sizeof buffer ? left : sizeof buffer, at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || std::memcmp(buffer, wanted, static_cast<size_t>(got)) != 0) return false;
      wanted += got;
      left -= static_cast<size_t>(got);
      at += got;
    }
  }
  return true;
}

// Links `from` as `to` if it is `file`; else an errno.
int link_if_same(const char* from, const char* to, FileImage& file) {
  const int fd = open_regular_file(from, O_RDONLY);
  if (fd < 0) return errno;
  struct statx known{};
  const bool same = ::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &known) == 0 &&
                    known.stx_size == file.size_bytes() &&
                    has_bytes(fd, file.parts(), file.part_count());
  const int error = same ? link_open_file(fd, from, to) : ENOENT;
  ::close(fd);
  return error;
}

}  // namespace

KnownFiles::~KnownFiles() {
  if (entries_ != nullptr)
    for (size_t i = 0; i < kSets * kWays; ++i) std::free(entries_[i].path);
  std::free(entries_);
  ::pthread_mutex_destroy(&mutex_);
}

// The path in that place if it fits, for the caller to free: nobody compares files under a lock.
char* KnownFiles::copy_of_path(uint64_t key, uint64_t file_bytes, size_t way) const {
  const Lock lock(mutex_);
  if (entries_ == nullptr || cannot_link_) return nullptr;
  const Entry& entry = entries_[key % kSets * kWays + way];
  const bool fits = entry.path != nullptr && entry.key == key && entry.file_bytes == file_bytes;
  return fits ? ::strdup(entry.path) : nullptr;
}

bool KnownFiles::link(const char* path, FileImage& file) {
  if (file.size_bytes() < kMinFileBytes || file.out_of_memory()) return false;
  const uint64_t key = key_of(file);
  for (size_t way = 0; way < kWays; ++way) {
    char* known = copy_of_path(key, file.size_bytes(), way);
    if (known == nullptr) continue;
    const int error = link_if_same(known, path, file);
    std::free(known);
    if (error == 0) return true;
    if (error == EPERM || error == EOPNOTSUPP) {
      const Lock lock(mutex_);
      cannot_link_ = true;
    }
    if (error == EEXIST) return false;
  }
  return false;
}

void KnownFiles::remember(const char* path, FileImage& file) {
  if (file.size_bytes() < kMinFileBytes || file.out_of_memory()) return;
  const uint64_t key = key_of(file);
  char* copy = ::strdup(path);
  if (copy == nullptr) return;
  const Lock lock(mutex_);
  if (entries_ == nullptr)
    entries_ = static_cast<Entry*>(std::calloc(kSets * kWays, sizeof(Entry)));
  if (entries_ == nullptr || cannot_link_) return std::free(copy);
  Entry* set = entries_ + key % kSets * kWays;
  Entry* place = set;
  // The same content again is a file that could not be linked, perhaps because it has too many
  // links: from now on the new one serves.
  for (size_t way = 0; way < kWays; ++way) {
    const bool same = set[way].key == key && set[way].file_bytes == file.size_bytes();
    if (set[way].when < place->when || same) place = set + way;
    if (same) break;
  }
  std::free(place->path);
  *place = {copy, key, file.size_bytes(), ++now_};
}

}  // namespace ait::record
