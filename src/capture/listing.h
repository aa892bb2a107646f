// Lists folders with few system calls: a dump of a large model holds millions of files.
//
//   std::string files = list_files(folder_path, problems);   // "a/x.bin\0a/y.bin\0b/z.bin\0"
//
// Nothing is asked of a file but its name. Symbolic links count as files (dumps without duplicates
// use them), folders behind symbolic links are not entered: they may lead in circles.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::capture {

// An operation nests at most a few levels; deeper trees are not what any tool writes.
inline constexpr size_t kMaxFolderDepth = 64;

struct Entry {
  std::string name;
  bool is_folder = false;

  bool operator<(const Entry& other) const { return name < other.name; }
};

// The entries of one folder by name, hidden ones left out. Fails where it cannot be listed.
Result<std::vector<Entry>> list_folder(const std::string& path);

// Whether such a list has that name.
bool has_entry(const std::vector<Entry>& entries, const std::string& name);

// What tells whether a folder holds the same names as before: whoever adds, removes or renames one changes its
// times, and nobody can set the second.
struct FolderStamp {
  uint64_t inode = 0;
  uint64_t modified_ns = 0;
  uint64_t changed_ns = 0;

  bool operator==(const FolderStamp&) const = default;
};
FolderStamp stamp_of(const struct stat& status);

// Every folder that was listed, as it was just before that.
struct FolderTrace {
  std::string folders;  // each as its path below the first and a NUL; the first itself is ""
  std::vector<FolderStamp> stamps;
  uint64_t device = 0;
  // Set before listing. A folder that was changed later than this may be changed once more without a change of its
  // times, whose clock is coarser than the one of the program.
  timespec settled_before{};
  // All on one device, and none was changed later than that.
  bool is_settled = true;
};

// Every file below a folder, each as its path below it and a NUL, parents' files before those of
// sub-folders, both by name: two folders with the same content give the same text. What cannot be
// listed, and what lies too deep, is one of `problems`.
std::string list_files(const std::string& path, std::vector<Error>& problems,
                       FolderTrace* trace = nullptr);

// Calls visit(std::string_view path) for each file of such a text.
template <typename Visit>
void each_file(std::string_view files, Visit visit) {
  while (!files.empty()) {
    const size_t end = files.find('\0');
    visit(files.substr(0, end));
    files.remove_prefix(end + 1);
  }
}

}  // namespace ait::capture
