// Files of the user that make a later run faster and that nobody misses. Nothing here ever fails: what cannot be
// read is not there, and what cannot be written is not kept.
//
//   const UserCache cache = UserCache::of_user();
//   if (auto bytes = cache.read("3f2a.folders", kMaxBytes)) use(*bytes);
//   cache.write("3f2a.folders", bytes);
//
// A file appears whole or not at all, whoever else writes it at the same time. Only files and folders that belong
// to the user and that nobody else can write to are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ait {

inline constexpr uint64_t kMostCacheBytes = uint64_t{256} << 20;

class UserCache {
 public:
  // $XDG_CACHE_HOME/ait, else $HOME/.cache/ait; none where AIT_CACHE is 0 or neither is known.
  static UserCache of_user();

  // An empty `folder` is none. Of more than `most_bytes` in it, the files that were not used for longest go.
  explicit UserCache(std::string folder, uint64_t most_bytes = kMostCacheBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  bool is_usable() const { return !folder_.empty(); }

  // Notes that the file was used.
  std::optional<std::string> read(const std::string& name, size_t max_bytes) const;
  // Makes the folder if it has to. Whether the file is there now.
  bool write(const std::string& name, std::string_view bytes) const;

 private:
  void remove_oldest(const std::string& but) const;

  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace ait
