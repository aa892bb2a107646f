#include "cli/common_options.h"

#include "launch/command_words.h"

namespace ait::cli {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

void add_exec(OptionSet& set, std::string& exec) {
  set.group("Command");
  set.add_required("--exec", exec, "\"CMD\"",
                   "the command to run, in quotes. It is split into words as a shell\n"
                   "would, but no shell sees it: for redirection or pipes write a\n"
                   "script and start that");
}

Result<std::vector<std::string>> understand_exec(const std::string& exec) {
  auto words = launch::split_command(exec);
  if (!words) return fail(Error(ErrorCode::kUsage) << "--exec: " << words.error().message());
  return words;
}

void add_json(OptionSet& set, bool& json) {
  set.add_flag("--json", json, "print one JSON document instead of tables");
}

void add_threads(OptionSet& set, size_t& threads) {
  set.group("Other");
  set.add_number("--threads", threads, 1, kMaxThreads, "N",
                 "threads to compute with; all cores if not given");
}

std::vector<std::string> list_items(const std::vector<std::string>& words) {
  constexpr std::string_view kWideComma = "，";
  std::vector<std::string> out;
  for (std::string word : words) {
    for (size_t at; (at = word.find(kWideComma)) != std::string::npos;)
      word.replace(at, kWideComma.size(), ",");
    out.emplace_back();
    for (const char c : word) {
      if (c == ',' || c == ' ')
        out.emplace_back();
      else
        out.back() += c;
    }
  }
  std::erase(out, "");
  return out;
}

}  // namespace ait::cli
