#include "formats/file_cache.h"

namespace ait::formats {
namespace {

// Of the files together: a name takes some 200 bytes, a table of a round may have 100 000 of them.
constexpr size_t kMostTensors = 400'000;

size_t tensors_of(const SharedFile& file) { return *file ? (*file)->file->size() : 0; }

}  // namespace

std::optional<size_t> IndexedFile::find(const std::string& name) const {
  if (file->size() == 1) return file->name(0) == name ? std::optional<size_t>(0) : std::nullopt;
  const auto found = index_of.find(name);
  return found != index_of.end() ? std::optional(found->second) : std::nullopt;
}

SharedFile open_indexed(const std::string& path, const ReadBuffers* buffers) {
  auto opened = open_tensor_file(path, std::nullopt, buffers);
  if (!opened) return std::make_shared<const Result<IndexedFile>>(fail(opened.error()));
  IndexedFile file{std::move(*opened), {}};
  if (const size_t count = file.file->size(); count > 1)
    for (size_t i = 0; i < count; ++i) file.index_of.emplace(file.file->name(i), i);
  return std::make_shared<const Result<IndexedFile>>(std::move(file));
}

SharedFile FileCache::get(const std::string& path) {
  for (const auto& [known, file] : recent_)
    if (known == path) return file;
  recent_.emplace_front(path, open_indexed(path));
  tensors_ += tensors_of(recent_.front().second);
  while (recent_.size() > 1 && (recent_.size() > most_files_ || tensors_ > kMostTensors)) {
    tensors_ -= tensors_of(recent_.back().second);
    recent_.pop_back();
  }
  return recent_.front().second;
}

}  // namespace ait::formats
