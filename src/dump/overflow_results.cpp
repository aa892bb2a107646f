#include "dump/overflow_results.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/mapped_file.h"

namespace ait::dump {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNamePrefix = "ait_overflow_res_";
constexpr std::string_view kLinePrefix = "Overflow detected! Operator name: ";

}  // namespace

std::string result_name(uint64_t pid) {
  return std::string(kNamePrefix) + std::to_string(pid) + ".txt";
}

ResultSizes result_sizes(const std::string& folder) {
  ResultSizes out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().native();
    std::error_code ignored;
    if (name.starts_with(kNamePrefix) && at->is_regular_file(ignored))
      out[name] = at->file_size(ignored);
  }
  return out;
}

Result<OverflowFile> read_results(const std::string& folder, uint64_t pid,
                                  const ResultSizes& earlier) {
  OverflowFile out{pid, result_name(pid), {}};
  const auto file = MappedFile::open(folder + "/" + out.name);
  if (!file && file.error().code() == ErrorCode::kNotFound) return out;
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  std::string_view lines(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto before = earlier.find(out.name); before != earlier.end())
    lines.remove_prefix(std::min<uint64_t>(before->second, lines.size()));

  std::unordered_map<std::string_view, size_t> places;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (!line.starts_with(kLinePrefix)) continue;
    const std::string_view name = line.substr(kLinePrefix.size());
    const auto [place, is_new] = places.try_emplace(name, out.operators.size());
    if (is_new) out.operators.emplace_back(name, 0);
    ++out.operators[place->second].second;
  }
  return out;
}

std::string ids_of(std::string_view operator_name) {
  std::string_view name = operator_name.substr(0, operator_name.find(':'));
  const size_t letters = name.find_last_not_of("0123456789_") + 1;  // npos + 1 is 0
  const size_t underscore = name.find('_', letters);
  name.remove_prefix(underscore == std::string_view::npos ? name.size() : underscore + 1);
  return std::string(name);
}

}  // namespace ait::dump
