// Files that grow line by line, one for each round: tables and statistics.
//
// A few are kept open, since operations of one round come together; one that was closed meanwhile
// is opened again and its lines are counted. So is one that the host has closed or somebody has
// deleted: the number may belong to a file of the host by now. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/atomic_file.h"
#include "record/file_image.h"

namespace ait::probe {

class LineFiles {
 public:
  struct File {
    uint64_t round = 0;
    uint64_t lines = 0;
    uint64_t used = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    int fd = -1;
  };

  // The file `{stem}{round}{suffix}`, with `header` as its first line if that is not null. Null where
  // the file cannot be had, with the reason in `status` and its name in `path`.
  File* open(const char* stem, uint64_t round, const char* suffix, const char* header,
             record::WriteStatus& status);
  record::WriteStatus append(File& file, const record::ByteBuffer& line);

  const char* path() const { return path_; }

 private:
  static constexpr size_t kOpenFiles = 16;
  static constexpr size_t kPathBytes = 4096;

  static void close(File& file);

  File files_[kOpenFiles];
  uint64_t clock_ = 0;
  char path_[kPathBytes] = "";
};

}  // namespace ait::probe
