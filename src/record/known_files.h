// Files that were written lately, so that one with the same bytes need not be written again: it
// becomes a hard link of the first. Weights, masks and residuals come again and again in a run.
//
//   KnownFiles known;
//   if (known.link("dump/1/norm/output.pth", file)) return {};
//   if (auto status = file.write(path); !status.ok()) return status;
//   known.remember(path, file);
//
// A wrong link would be a wrong record, so that nothing is left to chance: what the headers of the
// file say (type, shape and, of a torch file, the checksum of its data) only finds a candidate, and
// every byte of it is compared before it is linked. Whoever reads the file sees an ordinary file.
//
// Holds a bounded number of paths; the oldest go first. All functions may be called from many
// threads at once. Files that have been removed or replaced meanwhile are just not found.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "record/file_image.h"

namespace ait::record {

class KnownFiles {
 public:
  // Smaller files are not looked up: they take a block of the disk and as long as a link.
  static constexpr uint64_t kMinFileBytes = 4096;

  KnownFiles() = default;
  ~KnownFiles();
  KnownFiles(const KnownFiles&) = delete;
  KnownFiles& operator=(const KnownFiles&) = delete;

  // Whether `path` is now a link to a file of exactly these bytes. False, and nothing has changed,
  // where none is known, where something has this name already, or where the file system cannot.
  bool link(const char* path, FileImage& file);

  // That `path` holds these bytes.
  void remember(const char* path, FileImage& file);

 private:
  // A file may be in one of kWays places, of which the oldest is given up.
  static constexpr size_t kSets = size_t{1} << 12;
  static constexpr size_t kWays = 4;

  struct Entry {
    char* path = nullptr;
    uint64_t key = 0;
    uint64_t file_bytes = 0;
    uint64_t when = 0;
  };

  char* copy_of_path(uint64_t key, uint64_t file_bytes, size_t way) const;

  mutable pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Entry* entries_ = nullptr;  // made when the first file is remembered
  uint64_t now_ = 0;
  bool cannot_link_ = false;  // on this file system
};

}  // namespace ait::record
