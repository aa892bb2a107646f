// The folders of a recording: where its output goes, and a private one for the run itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text_file.h"

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

// Makes the folder of the dump itself. kRefused where it belongs to another user, or a link to it
// does: whoever owns a folder decides where in the end its files go.
Result<void> make_dump_folder(const std::string& path, MadeFolders& made);

// The folder that -o names: `~` is the home folder, it is made where it is missing, and the result
// is absolute, because the command may change its current folder. kUnwritable where nothing can be
// written there.
Result<std::string> prepare_output(const std::string& typed, MadeFolders& made);

// A folder that lives as long as the run.
class ScratchFolder {
 public:
  // `.run_{pid}` in the dump, with a number behind it where a run in another container has that. It
  // is locked while the run lasts.
  static Result<ScratchFolder> in(const std::string& dump);
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
  ScratchFolder(std::string path, Descriptor lock);

  std::string path_;
  Descriptor lock_;
  std::filesystem::file_time_type made_at_;
  bool kept_ = false;
};

// Removes what launchers have left in the dump that were killed: their scratch folders, where nobody
// holds the lock and no process still runs that was started with it, and the claims of runs that
// have no such folder any more (record/claim.h).
void clear_leftovers(const std::string& dump);

// Removes the claims of a run, whose folders now show which names are taken.
void release_claims(const std::string& dump, const std::string& scratch);

}  // namespace ait::dump
