#include "capture/labels.h"

#include <simdjson.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "base/text_file.h"
#include "capture/capture.h"
#include "capture/listing.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = record::kLabelsSuffix;
constexpr size_t kMaxBytes = size_t{1} << 30;

bool same_but_case(const std::string& a, const std::string& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

// Versions of the library differ in the case of "outTensor0.bin".
std::string existing_spelling(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || fs::exists(path, ignored)) return path;
  const fs::path wanted(path);
  if (const auto entries = list_folder(wanted.parent_path().native()))
    for (const Entry& entry : *entries)
      if (!entry.is_folder && same_but_case(entry.name, wanted.filename().native()))
        return (wanted.parent_path() / entry.name).native();
  return path;
}

struct Label {
  std::string_view data_id;
  std::string_view source;
  std::string_view path;
  std::string_view problem;
  bool waits = false;   // for the library to save the file anew
  int64_t seen_ns = 0;  // the time of the file while it did
};

bool parse(simdjson::dom::parser& parser, std::string_view line, Label& label) {
  simdjson::dom::element element;
  if (parser.parse(line.data(), line.size()).get(element) != simdjson::SUCCESS) return false;
  // Only labels of saved files have these.
  if (element["problem"].get(label.problem) != simdjson::SUCCESS) label.problem = {};
  if (element["waits"].get(label.waits) != simdjson::SUCCESS) label.waits = false;
  if (element["seen_ns"].get(label.seen_ns) != simdjson::SUCCESS) label.seen_ns = 0;
  return element["data_id"].get(label.data_id) == simdjson::SUCCESS &&
         element["source"].get(label.source) == simdjson::SUCCESS &&
         element["path"].get(label.path) == simdjson::SUCCESS &&
         (label.source == "pta" || label.source == "acl");
}

bool is_still(const std::string& path, int64_t time_ns) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0 &&
         int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec == time_ns;
}

// What a process that was killed could not say any more.
std::string problem_of(const Label& label) {
  if (label.waits && is_still(existing_spelling(std::string(label.path)), label.seen_ns))
    return "the process ended before the library saved this file for the call of this label.";
  return std::string(label.problem);
}

void read_file(Labels& labels) {
  const auto text = read_text(labels.path, kMaxBytes);
  if (!text) {
    labels.problems.push_back(text.error());
    return;
  }
  std::map<std::string, size_t, std::less<>> known;
  simdjson::dom::parser parser;
  std::string_view rest(*text);
  for (uint64_t offset = 0; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    Label label;
    if (parse(parser, line, label)) {
      const auto [place, is_new] =
          known.try_emplace(std::string(label.data_id), labels.pairs.size());
      if (is_new) labels.pairs.push_back({std::string(label.data_id), {}, {}, {}});
      LabelledPair& pair = labels.pairs[place->second];
      (label.source == "pta" ? pair.pta_path : pair.acl_path) = label.path;
      if (label.source == "acl") pair.acl_problem = problem_of(label);
    } else if (!line.empty()) {
      labels.problems.push_back(
          Error(ErrorCode::kCorrupt, labels.path, offset)
          << "has a line that is not a label; its process was probably killed");
    }
    const size_t taken = std::min(line.size() + 1, rest.size());
    offset += taken;
    rest.remove_prefix(taken);
  }
  for (LabelledPair& pair : labels.pairs) pair.acl_path = existing_spelling(pair.acl_path);
}

}  // namespace

Result<std::vector<Labels>> read_labels(const std::string& folder) {
  const auto entries = list_folder(folder);
  if (!entries) return fail(entries.error());
  std::vector<Labels> all;
  for (const Entry& entry : *entries) {
    if (entry.is_folder || !entry.name.ends_with(kSuffix)) continue;
    Labels labels;
    labels.path = folder + "/" + entry.name;
    labels.task_id = entry.name.substr(0, entry.name.size() - kSuffix.size());
    read_file(labels);
    all.push_back(std::move(labels));
  }
  std::sort(all.begin(), all.end(),
            [](const Labels& a, const Labels& b) { return natural_less(a.task_id, b.task_id); });
  return all;
}

}  // namespace ait::capture
