// Making folders.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace ait {

// What keeps a folder from being made.
struct FolderObstacle {
  std::string path;  // the folder or the parent that cannot be had
  int error_number;  // as errno; ENOTDIR where something else has that name
};

// Makes a folder and its missing parents, as `mkdir -p -m` does, and adds those that it made to
// `made`, parents first. Nothing is returned when the folder is there.
std::optional<FolderObstacle> make_folders(const std::string& path, mode_t mode,
                                           std::vector<std::string>& made);

}  // namespace ait
