#include "dump/cpu_profiling.h"

#include <sys/uio.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/mapped_file.h"
#include "record/atomic_file.h"
#include "record/dump_names.h"

namespace ait::dump {

namespace fs = std::filesystem;

namespace {

struct Records {
  std::string_view execute;
  std::string_view setup;
};

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Operation and text of "[operation]:text"; whether the line is of this form.
bool split_report(std::string_view line, std::string_view& operation, std::string_view& text) {
  if (!line.starts_with('[')) return false;
  const size_t end = line.find(']');
  if (end == std::string_view::npos || !line.substr(end).starts_with("]:")) return false;
  operation = line.substr(1, end - 1);
  text = line.substr(end + 2);
  return std::all_of(operation.begin(), operation.end(), is_name_character);
}

Result<void> rewrite_file(const std::string& path) {
  std::string text;
  {
    const auto file = MappedFile::open(path);
    if (!file) return fail(file.error());
    const auto bytes = (*file)->bytes();
    text = profiling_by_operation({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  if (text.empty()) return {};
  const iovec part{text.data(), text.size()};
  const auto status = record::write_file(path.c_str(), &part, 1);
  if (status.ok()) return {};
  return fail(unwritable(path, status.step, status.error_number));
}

}  // namespace

std::string profiling_by_operation(std::string_view lines) {
  std::map<std::string_view, Records> by_operation;
  std::vector<std::string_view> order;  // of first appearance
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    std::string_view operation;
    std::string_view text;
    if (!split_report(line, operation, text)) continue;
    const auto [records, is_new] = by_operation.try_emplace(operation);
    if (is_new) order.push_back(operation);
    if (text.find("kernelExecuteTime:") != std::string_view::npos) records->second.execute = text;
    if (text.find("runnerSetupTime:") != std::string_view::npos) records->second.setup = text;
  }
  std::string out;
  for (const std::string_view operation : order) {
    const Records& records = by_operation[operation];
    out.append(operation).append(":\n[execute] ").append(records.execute);
    out.append("\n[setup] ").append(records.setup).append("\n\n");
  }
  return out;
}

Result<void> rewrite_profiling(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (name.starts_with(record::kCpuProfileStem) && name.ends_with(".txt"))
      files.push_back(at->path().native());
  }
  for (const std::string& path : files)
    if (auto ok = rewrite_file(path); !ok) return ok;
  return {};
}

}  // namespace ait::dump
