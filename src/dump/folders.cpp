#include "dump/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/folders.h"

namespace ait::dump {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kFolderMode = 0750;

Error cannot_make(const std::string& path, int error_number) {
  return Error(ErrorCode::kUnwritable, path)
         << "the folder cannot be made: " << system_message(error_number);
}

std::string with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  const bool starts_at_home = path == "~" || path.starts_with("~/");
  return starts_at_home && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

Result<void> MadeFolders::make(const std::string& path) {
  const auto obstacle = make_folders(path, kFolderMode, made_);
  if (!obstacle) return {};
  if (obstacle->error_number == ENOTDIR)
    return fail(Error(ErrorCode::kUnwritable, obstacle->path)
                << "is not a folder, so that nothing can be written below it");
  return fail(cannot_make(path, obstacle->error_number));
}

void MadeFolders::remove_empty() const {
  std::for_each(made_.rbegin(), made_.rend(),
                [](const std::string& path) { ::rmdir(path.c_str()); });
}

Result<std::string> prepare_output(const std::string& typed, MadeFolders& made) {
  const std::string path = with_home(typed);
  if (path.empty()) return fail(Error(ErrorCode::kUsage) << "-o names no folder");
  if (auto ok = made.make(path); !ok) return fail(ok.error());
  std::error_code error;
  const fs::path absolute = fs::canonical(path, error);
  if (error)
    return fail(Error(ErrorCode::kUnwritable, path) << "cannot be used: " << error.message());
  if (::access(absolute.c_str(), W_OK | X_OK) != 0)
    return fail(Error(ErrorCode::kUnwritable, path)
                << "nothing can be written there: " << system_message(errno)
                << "; give -o another folder");
  return absolute.native();
}

ScratchFolder::ScratchFolder(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  made_at_ = fs::last_write_time(path_, ignored);
}

Result<ScratchFolder> ScratchFolder::at(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (::mkdir(path.c_str(), kFolderMode) != 0) return fail(cannot_make(path, errno));
  return ScratchFolder(path);
}

Result<ScratchFolder> ScratchFolder::temporary() {
  std::error_code error;
  std::string path = fs::temp_directory_path(error) / "ait_run_XXXXXX";
  if (error || ::mkdtemp(path.data()) == nullptr)
    return fail(cannot_make(path, error ? error.value() : errno));
  return ScratchFolder(path);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::move(other.path_)), made_at_(other.made_at_), kept_(other.kept_) {
  other.path_.clear();
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty() || kept_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace ait::dump
