#include "capture/ge_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/text_file.h"
#include "capture/compiled_run.h"
#include "capture/converted.h"
#include "capture/dump_folders.h"

namespace ait::capture {
namespace {

constexpr std::string_view kTextStem = "dynamo_original_graph_";
constexpr std::string_view kTextExtension = ".txt";
constexpr std::string_view kOverflowType = "Opdebug.";
constexpr std::array<std::string_view, 8> kOtherExtensions = {".txt", ".npy",  ".bin", ".swp",
                                                              ".tmp", ".json", ".csv", ".npz"};
constexpr std::string_view kMappingFile = "mapping.csv";
constexpr size_t kMaxMappingBytes = size_t{64} << 20;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// The digits after a word, "0" of "…_rank_0_pid…".
std::string_view digits_after(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + word.size());
  return text.substr(0, text.find_first_not_of("0123456789"));
}

}  // namespace

std::optional<GeFileName> parse_ge_file_name(std::string_view name) {
  constexpr size_t kParts = 5;        // type, operation, task, stream, time
  constexpr size_t kSlicedParts = 9;  // and kind of task, context, thread, device
  constexpr std::string_view kSliced = "4";
  const auto parts = split(name, '.');
  const auto are_numbers = [&](size_t first) {
    return std::all_of(parts.begin() + static_cast<ptrdiff_t>(first), parts.end(), is_number);
  };
  if (parts.size() < kParts || !are_numbers(parts.size() - 3)) return std::nullopt;
  GeFileName out;
  out.type = parts[0];
  if (parts.size() == kSlicedParts && parts[kParts] == kSliced && are_numbers(2)) {
    out.operation = parts[1];
    out.time = time_of(parts[kParts - 1]);
    return out;
  }
  const char* first = parts[1].data();
  const std::string_view& last = parts[parts.size() - 4];
  out.operation.assign(first, last.data() + last.size());
  out.time = time_of(parts.back());
  return out;
}

GeNameKind kind_of_ge_name(std::string_view name) {
  if (is_number(name)) return GeNameKind::kHash;
  if (name.starts_with(kOverflowType) || name.starts_with('.') || name == kMappingFile)
    return GeNameKind::kOther;
  if (stem_of_statistics(name)) return GeNameKind::kConverted;
  for (const std::string_view extension : kOtherExtensions)
    if (name.ends_with(extension))
      return extension == ".csv" || extension == ".npz" ? GeNameKind::kStatistics
                                                        : GeNameKind::kOther;
  return GeNameKind::kDump;
}

std::map<std::string, std::string> read_ge_mapping(const std::string& folder,
                                                   std::vector<Error>& problems) {
  std::map<std::string, std::string> out;
  const std::string path = folder + "/" + std::string(kMappingFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return out;
  const auto text = read_text(path, kMaxMappingBytes);
  if (!text) {
    problems.push_back(text.error());
    return out;
  }
  for (std::string_view line : split(*text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t comma = line.find(',');
    if (comma != std::string_view::npos) out.emplace(line.substr(0, comma), line.substr(comma + 1));
  }
  return out;
}

std::optional<GeTextName> parse_ge_text_name(std::string_view name) {
  if (!name.starts_with(kTextStem) || !name.ends_with(kTextExtension)) return std::nullopt;
  const auto graph = graph_number(name);
  if (!graph) return std::nullopt;
  return GeTextName{*graph, std::string(digits_after(name, "_rank_")),
                    time_of(digits_after(name, "_ts_"))};
}

}  // namespace ait::capture
