#include "capture/manual_mapping.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "capture/listing.h"
#include "record/atomic_file.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

using record::kGoldenTensorFolder;
using record::kMetadataFile;

// An entry is a few hundred bytes: a million of them.
constexpr size_t kMaxMetadataBytes = size_t{256} << 20;

// Of entries that are no pair of paths, so many are named.
constexpr size_t kMaxBadEntries = 1000;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Whatever it is: that a FIFO cannot be read is said by who reads it.
bool is_metadata(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

// `path` as the json means it, absolute where it was found.
std::string resolve(const std::string& path, const fs::path& json_folder) {
  if (path.empty() || fs::path(path).is_absolute() || is_file(path)) return path;
  const fs::path beside = json_folder / path;
  return is_file(beside) ? beside.native() : path;
}

// The longest tail of `path` that exists below `root`: a dump that has travelled keeps its inner
// folders. No tail climbs out of `root`, or is deeper than any dump.
std::string find_below(const fs::path& root, std::string_view path) {
  std::vector<std::string_view> tails;  // longer and longer
  for (size_t end = path.size(); end > 0 && tails.size() < kMaxFolderDepth;) {
    const size_t slash = path.rfind('/', end - 1);
    const size_t first = slash == std::string_view::npos ? 0 : slash + 1;
    const std::string_view part = path.substr(first, end - first);
    if (part == ".." || path.size() - first > PATH_MAX) break;
    if (!part.empty()) tails.push_back(path.substr(first));
    end = first == 0 ? 0 : slash;
  }
  for (auto tail = tails.rbegin(); tail != tails.rend(); ++tail)
    if (is_file(root / *tail)) return (root / *tail).native();
  return {};
}

// The golden files of a dump that was moved as a whole still lie beside its json.
std::string golden_file(const std::string& path, const fs::path& json_folder) {
  std::string resolved = resolve(path, json_folder);
  if (is_file(resolved)) return resolved;
  std::string found = find_below(json_folder, path);
  return found.empty() ? resolved : found;
}

Error bad_entry(const std::string& path, std::string_view data_id, std::string_view token_id) {
  return Error(ErrorCode::kCorrupt, path)
         << "Invalid data in golden metadata.json, data_id: " << printable(data_id)
         << ", token_id: " << printable(token_id);
}

// Calls visit(data_id, token_id, golden, my) for every entry that is a pair of paths.
template <typename Visit>
Result<void> each_entry(const std::string& path, std::vector<Error>& problems, Visit visit) {
  const auto text = read_text(path, kMaxMetadataBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::object data_ids;
  if (parser.parse(*text).get(data_ids) != simdjson::SUCCESS)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "is not the JSON object that dump_data writes; was it edited or cut short?");
  const auto complain = [&](std::string_view data_id, std::string_view token_id) {
    if (problems.size() < kMaxBadEntries)
      problems.push_back(bad_entry(path, data_id, token_id));
    else if (problems.size() == kMaxBadEntries)
      problems.push_back(Error(ErrorCode::kCorrupt, path)
                         << "has more entries that are not pairs of paths; only the first "
                         << kMaxBadEntries << " are reported");
  };
  for (const auto [data_id, tokens_value] : data_ids) {
    simdjson::dom::object tokens;
    if (tokens_value.get(tokens) != simdjson::SUCCESS) {
      complain(data_id, "");
      continue;
    }
    for (const auto [token_id, value] : tokens) {
      simdjson::dom::array paths;
      std::string_view golden;
      std::string_view actual;
      if (value.get(paths) != simdjson::SUCCESS || paths.at(0).get(golden) != simdjson::SUCCESS ||
          paths.at(1).get(actual) != simdjson::SUCCESS) {
        complain(data_id, token_id);
        continue;
      }
      visit(data_id, token_id, golden, actual);
    }
  }
  return {};
}

// Holds the lock of a golden_tensor folder for as long as it lives.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : descriptor_(
            record::open_regular_file((folder + "/.metadata.lock").c_str(), O_RDWR | O_CREAT)) {
    if (descriptor_ < 0) return;
    int locked;
    do locked = ::flock(descriptor_, LOCK_EX);
    while (locked != 0 && errno == EINTR);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool held() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

}  // namespace

std::string find_metadata(const std::string& path) {
  const fs::path given(path);
  if (given.filename() == kMetadataFile && is_metadata(given)) return path;
  for (const fs::path& candidate :
       {given / kMetadataFile, given / kGoldenTensorFolder / kMetadataFile})
    if (candidate.parent_path().filename() == kGoldenTensorFolder && is_metadata(candidate))
      return candidate.native();
  // "golden_tensor/" has an empty last component.
  if (given.filename().empty() && given.parent_path().filename() == kGoldenTensorFolder &&
      is_metadata(given / kMetadataFile))
    return (given / kMetadataFile).native();
  return {};
}

bool is_manual_mapping(const std::string& path) { return !find_metadata(path).empty(); }

Result<ManualMapping> read_manual_mapping(const std::string& path) {
  const std::string found = find_metadata(path);
  const std::string& metadata_path = found.empty() ? path : found;
  ManualMapping mapping;
  mapping.metadata_path = metadata_path;
  const fs::path folder = fs::path(metadata_path).parent_path();
  auto read = each_entry(metadata_path, mapping.problems,
                         [&](std::string_view data_id, std::string_view token_id,
                             std::string_view golden, std::string_view actual) {
                           mapping.pairs.push_back({std::string(data_id), std::string(token_id),
                                                    golden_file(std::string(golden), folder),
                                                    resolve(std::string(actual), folder)});
                         });
  if (!read) return fail(read.error());
  std::sort(mapping.pairs.begin(), mapping.pairs.end(),
            [](const MappedPair& a, const MappedPair& b) {
              if (a.data_id != b.data_id) return natural_less(a.data_id, b.data_id);
              return natural_less(a.token_id, b.token_id);
            });
  return mapping;
}

void find_moved_files(ManualMapping& mapping, const std::string& actual_root) {
  std::error_code ignored;
  const bool root_is_folder = fs::is_directory(actual_root, ignored);
  for (MappedPair& pair : mapping.pairs) {
    if (is_file(pair.actual_path)) continue;
    if (root_is_folder) {
      if (auto found = find_below(actual_root, pair.actual_path); !found.empty())
        pair.actual_path = found;
    } else if (mapping.pairs.size() == 1 && is_file(actual_root)) {
      pair.actual_path = actual_root;
    }
  }
}

Result<void> add_to_metadata(const std::string& golden_tensor, std::span<const MappedPair> pairs) {
  const std::string path = golden_tensor + "/" + kMetadataFile;
  const FolderLock lock(golden_tensor);
  if (!lock.held())
    return fail(Error(ErrorCode::kUnwritable, golden_tensor)
                << "cannot be locked: " << system_message(errno));
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    std::vector<Error> problems;
    auto read = each_entry(path, problems,
                           [&](std::string_view data_id, std::string_view token_id,
                               std::string_view golden, std::string_view actual) {
                             root[std::string(data_id)][std::string(token_id)] = {golden, actual};
                           });
    if (!read) return fail(read.error());
  }
  for (const MappedPair& pair : pairs)
    root[pair.data_id][pair.token_id] = {pair.golden_path, pair.actual_path};
  // Ids and paths need not be UTF-8; what is not is replaced rather than refused.
  std::string text =
      root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const iovec part = {text.data(), text.size()};
  if (const auto status = record::write_file(path.c_str(), &part, 1); !status.ok())
    return fail(unwritable(path, status.step, status.error_number));
  return {};
}

}  // namespace ait::capture
