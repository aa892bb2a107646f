#include "capture/checkpoint.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text_file.h"
#include "formats/registry.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".index.json";
constexpr std::string_view kShardExtension = ".safetensors";
// A hundred thousand weights take about ten.
constexpr size_t kMaxIndexBytes = size_t{256} << 20;

std::vector<fs::path> files_in(const std::string& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  std::error_code why;
  for (fs::directory_iterator entry(folder, why); !why && entry != fs::directory_iterator();
       entry.increment(why)) {
    const std::string name = entry->path().filename().native();
    if (name.ends_with(suffix) && !name.starts_with('.')) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return natural_less(a.native(), b.native()); });
  return found;
}

void add(Capture& capture, const std::string& file, const std::string& name) {
  TensorRecord record;
  record.path = file;
  record.member = name;
  record.operation = name;
  capture.records.push_back(std::move(record));
}

// Everything a file holds. A name that another shard had already is a problem, not a second record.
void add_all(Capture& capture, const std::string& file, std::set<std::string>& seen) {
  const auto opened = formats::open_tensor_file(file);
  if (!opened) {
    capture.problems.push_back(opened.error());
    return;
  }
  for (size_t i = 0; i < (*opened)->size(); ++i) {
    const std::string name = (*opened)->name(i);
    if (seen.insert(name).second) {
      add(capture, file, name);
    } else {
      capture.problems.push_back(Error(ErrorCode::kCorrupt, file)
                                 << "holds " << printable(name)
                                 << ", which an earlier shard holds too");
    }
  }
}

// A shard named by an index lies beside it: anything else could point at any file of the machine.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

Result<void> read_index(Capture& capture, const fs::path& index) {
  const std::string& path = index.native();
  const auto text = read_text(path, kMaxIndexBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  if (const auto code = parser.parse(*text)["weight_map"].get(map); code != simdjson::SUCCESS)
    return fail(
        Error(ErrorCode::kCorrupt, path)
        << "is not an index of weights: it needs an object \"weight_map\" of names and files");
  for (const auto [key, value] : map) {
    std::string_view file;
    if (value.get(file) != simdjson::SUCCESS || !is_plain_name(std::string(file)))
      return fail(Error(ErrorCode::kCorrupt, path)
                  << "names no file beside it for " << printable(key));
    add(capture, (index.parent_path() / file).native(), std::string(key));
  }
  return {};
}

}  // namespace

bool is_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return !files_in(path, kIndexSuffix).empty() || !files_in(path, kShardExtension).empty();
  const auto file = formats::open_tensor_file(path);
  return file && (*file)->size() > 1;
}

Result<Capture> read_checkpoint(const std::string& path) {
  Capture capture;
  capture.root = path;
  std::set<std::string> seen;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    add_all(capture, path, seen);
    if (!capture.problems.empty()) return fail(capture.problems.front());
  } else if (const auto indices = files_in(path, kIndexSuffix); !indices.empty()) {
    // safetensors and torch often lie side by side with the same weights: one index is enough.
    const auto preferred = std::find_if(indices.begin(), indices.end(), [](const fs::path& index) {
      return index.filename().native().ends_with(".safetensors.index.json");
    });
    if (auto ok = read_index(capture, preferred != indices.end() ? *preferred : indices.front());
        !ok)
      return fail(ok.error());
  } else {
    for (const fs::path& file : files_in(path, kShardExtension))
      add_all(capture, file.native(), seen);
  }
  std::sort(capture.records.begin(), capture.records.end(),
            [](const auto& a, const auto& b) { return natural_less(a.operation, b.operation); });
  return capture;
}

}  // namespace ait::capture
