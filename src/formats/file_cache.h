// Files of many tensors, opened once for all of them.
//
//   FileCache files(256);
//   const SharedFile file = files.get(path);
//   if (!*file) return fail(file->error());
//   const auto found = (*file)->find("layers.0.weight");
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "formats/registry.h"

namespace ait::formats {

// A file and where each of its tensors is.
struct IndexedFile {
  std::unique_ptr<TensorFile> file;
  std::unordered_map<std::string, size_t> index_of;  // of several; one needs none

  // Nothing where no tensor is called so.
  std::optional<size_t> find(const std::string& name) const;
};

using SharedFile = std::shared_ptr<const Result<IndexedFile>>;

SharedFile open_indexed(const std::string& path, const ReadBuffers* buffers = nullptr);

// Keeps the files that were opened last: so many, and fewer where they hold more than a few hundred
// thousand tensors together. Not thread-safe.
class FileCache {
 public:
  explicit FileCache(size_t most_files) : most_files_(most_files) {}
  SharedFile get(const std::string& path);

 private:
  size_t most_files_;
  size_t tensors_ = 0;
  std::deque<std::pair<std::string, SharedFile>> recent_;
};

}  // namespace ait::formats
