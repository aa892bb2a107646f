// The folders of a recording: where its output goes, and a private one for the run itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::dump {

// Folders that were made, so that those which stay empty can be taken away again.
class MadeFolders {
 public:
  // Makes the folder and its missing parents (0750). kUnwritable where that fails or something else
  // is in the place.
  Result<void> make(const std::string& path);

  // Removes what make() made, as far as it is empty.
  void remove_empty() const;

 private:
  std::vector<std::string> made_;  // parents first
};

// The folder that -o names: `~` is the home folder, it is made where it is missing, and the result
// is absolute, because the command may change its current folder. kUnwritable where nothing can be
// written there.
Result<std::string> prepare_output(const std::string& typed, MadeFolders& made);

// A folder that lives as long as the run.
class ScratchFolder {
 public:
  // What lies there already is left over from a process that had our pid, and is removed.
  static Result<ScratchFolder> at(const std::string& path);
  static Result<ScratchFolder> temporary();

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }
  // By the clock that its disk dates files with, which need not be ours.
  std::filesystem::file_time_type made_at() const { return made_at_; }
  // Somebody still uses it.
  void keep() { kept_ = true; }

 private:
  explicit ScratchFolder(std::string path);

  std::string path_;
  std::filesystem::file_time_type made_at_;
  bool kept_ = false;
};

}  // namespace ait::dump
