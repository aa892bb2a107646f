// Remembers from one comparison to the next what lay below the folder of a rank, so that folders which have not
// changed need not be read again: a dump has hundreds of thousands of them.
//
//   FolderIndex index(rank_path);
//   const FolderIndex::Round round(index, "17");
//   auto listing = round.list("3_Layer", problems);      // listing.files as list_files gives them
//   index.keep("17", "3_Layer", std::move(listing));
//   index.save();                                        // for the next time
//
// Nothing is believed: every folder below a unit is asked for its times, and where a folder is another one, or was
// changed, the whole unit is listed anew. What is remembered lies in the user's cache, never in the dump.
//
// Only file systems of this machine are trusted with times: others (NFS, FUSE) may answer from a cache of their own,
// or with the clock of somebody else.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text_file.h"
#include "base/user_cache.h"
#include "capture/folder_index_file.h"
#include "capture/listing.h"

namespace ait::capture {

struct FolderIndexRules {
  UserCache cache = UserCache::of_user();
  // Reading as many folders takes some milliseconds, which nobody notices.
  size_t least_folders = 1000;
  // File systems keep times by a clock that ticks every few milliseconds, the oldest by one of seconds. A folder
  // that was changed within this time before it was listed may be changed again in the same tick.
  std::chrono::seconds settled_after{2};
};

class FolderIndex {
 public:
  explicit FolderIndex(const std::string& folder, FolderIndexRules rules = {});
  FolderIndex(const FolderIndex&) = delete;
  FolderIndex& operator=(const FolderIndex&) = delete;

  struct Listing {
    std::string files;
    const KnownUnit* known = nullptr;  // where nothing had changed
    FolderTrace trace;                 // where it was listed
    bool is_whole = true;              // nothing was a problem
  };

  // The folder of a round while it is listed.
  class Round {
   public:
    Round(const FolderIndex& index, const std::string& name);
    // As list_files of the unit. Thread-safe.
    Listing list(const std::string& unit, std::vector<Error>& problems) const;

   private:
    const KnownUnit* unchanged(const std::string& unit) const;

    const FolderIndex& index_;
    std::string name_;
    Descriptor folder_;
  };

  // Takes part in what save() writes. One thread at a time; the units of a round by name.
  void keep(const std::string& round, const std::string& unit, Listing&& listing);

  // Writes what was kept, unless that is what was read, or too little.
  void save() const;

 private:
  uint32_t shape_of(const std::string& unit, const Listing& listing);
  uint32_t add_shape(std::string folders, std::string_view files, size_t unit_bytes);
  void forget();

  std::string folder_;
  FolderIndexRules rules_;
  FolderIdentity identity_;
  std::string file_;  // in the cache; empty where nothing is remembered
  std::string bytes_;
  KnownFolders known_;

  // What is kept, as views of these texts and of what was known.
  std::deque<std::string> texts_;
  KnownFolders kept_;
  std::map<std::string, uint32_t, std::less<>> shapes_;
  std::vector<std::optional<uint32_t>> shape_again_;  // of each that was known
  size_t kept_bytes_ = 0;
  size_t folders_ = 0;
  size_t reused_ = 0;
  size_t fresh_ = 0;
  bool is_too_large_ = false;
};

}  // namespace ait::capture
