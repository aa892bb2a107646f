#include "capture/plain_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> kNoTensors = {".json", ".csv", ".txt", ".md",   ".log",
                                                         ".yaml", ".yml", ".py",  ".onnx", ".lock"};

bool is_candidate(const fs::path& path) {
  if (path.filename().native().starts_with('.')) return false;
  const std::string extension = path.extension().native();
  return std::find(kNoTensors.begin(), kNoTensors.end(), extension) == kNoTensors.end();
}

Error cannot_list(const fs::path& folder, const std::error_code& why) {
  return Error(ErrorCode::kUnreadable, folder.native()) << "cannot be listed: " << why.message();
}

// Folders behind symbolic links are not entered: they may lead in circles.
void list(const fs::path& folder, const std::string& below, Capture& capture) {
  std::error_code why;
  fs::directory_iterator entry(folder, why);
  for (; !why && entry != fs::directory_iterator(); entry.increment(why)) {
    std::error_code ignored;
    const fs::path& path = entry->path();
    const std::string name = below + path.filename().native();
    if (entry->is_directory(ignored)) {
      if (!entry->is_symlink(ignored)) list(path, name + "/", capture);
    } else if (is_candidate(path)) {
      TensorRecord record;
      record.path = path.native();
      record.operation = name;
      capture.records.push_back(std::move(record));
    }
  }
  if (why) capture.problems.push_back(cannot_list(folder, why));
}

}  // namespace

bool is_plain_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<Capture> read_plain_folder(const std::string& root) {
  std::error_code why;
  if (!fs::is_directory(root, why))
    return fail(Error(ErrorCode::kNotFound, root) << "is not a folder; check the path");
  if (fs::directory_iterator probe(root, why); why) return fail(cannot_list(root, why));
  Capture capture;
  capture.root = root;
  list(root, "", capture);
  std::sort(capture.records.begin(), capture.records.end(),
            [](const auto& a, const auto& b) { return natural_less(a.operation, b.operation); });
  return capture;
}

}  // namespace ait::capture
