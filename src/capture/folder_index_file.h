// What an index of folders says, as bytes: which folders and files lay below the units of each round, and what the
// folders looked like then.
//
//   KnownFolders known;
//   if (!known.read(bytes, where)) known.clear();   // cut short, damaged, of another folder or version
//
// Integers are little-endian, a text is its length as 4 bytes and its bytes:
//
//   1. "ait tree", the version and a crc32 of all that follows (4 bytes each)
//   2. the folder's path as a text, its device and its inode (8 bytes each)
//   3. the number of shapes (4 bytes), then each: the number of its folders (4 bytes), their paths as a text, the paths
//      of its files as a text. Paths of folders begin with the unit, those of files lie below it; each ends with a NUL.
//      What lies in a unit is the same in most rounds, and stored once.
//   4. the number of rounds (4 bytes), then each: its name as a text, the number of units (4 bytes), and each of them by
//      name: the number of its shape (4 bytes), and of each folder its inode and both times in ns (8 bytes each)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capture/listing.h"

namespace ait::capture {

// Which folder an index is of.
struct FolderIdentity {
  std::string path;  // without links
  uint64_t device = 0;
  uint64_t inode = 0;
};

struct KnownShape {
  std::string_view unit;  // "3_Layer", the first of its folders
  std::string_view folders;
  size_t folder_count = 0;
  std::string_view files;
};

struct KnownUnit {
  uint32_t shape = 0;
  std::string_view stamps;  // as they are stored
};

inline constexpr size_t kStampBytes = 24;
FolderStamp stamp_at(std::string_view stamps, size_t index);
void append_stamp(std::string& out, const FolderStamp& stamp);

// Views of the bytes that were read.
struct KnownFolders {
  std::vector<KnownShape> shapes;
  std::map<std::string_view, std::vector<KnownUnit>> rounds;  // units by name

  // False, with nothing known, where they are not the whole of an index of this folder.
  bool read(std::string_view bytes, const FolderIdentity& of);
  // nullptr where there is none.
  const KnownUnit* find(std::string_view round, std::string_view unit) const;
  size_t units() const;
  void clear() { *this = {}; }

 private:
  bool read_all(std::string_view bytes, const FolderIdentity& of);
};

std::string folder_index_bytes(const KnownFolders& known, const FolderIdentity& of);

}  // namespace ait::capture
