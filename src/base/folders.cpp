#include "base/folders.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace ait {

std::optional<FolderObstacle> make_folders(const std::string& path, mode_t mode,
                                           std::vector<std::string>& made) {
  std::filesystem::path so_far;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    so_far /= part;
    if (::mkdir(so_far.c_str(), mode) == 0) {
      made.push_back(so_far.native());
      continue;
    }
    // A read-only parent that already has the folder answers EROFS or EACCES rather than EEXIST.
    const int why = errno;
    struct stat status{};
    if (::stat(so_far.c_str(), &status) != 0) return FolderObstacle{so_far.native(), why};
    if (!S_ISDIR(status.st_mode)) return FolderObstacle{so_far.native(), ENOTDIR};
  }
  return std::nullopt;
}

}  // namespace ait
