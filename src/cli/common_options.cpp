#include "cli/common_options.h"

#include <string_view>

#include "launch/command_words.h"

namespace ait::cli {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::string_view kWideComma = "，";  // the documents' own

}  // namespace

void add_exec(OptionSet& set, std::string& exec) {
  set.group("Command");
  set.add_required("--exec", exec, "\"CMD\"",
                   "the command to run, in quotes. It is split into words like in a\n"
                   "shell, but run without one: for redirection or pipes write a\n"
                   "script and start the script");
}

Result<std::vector<std::string>> understand_exec(const std::string& exec) {
  auto words = launch::split_command(exec);
  if (!words) return fail(Error(ErrorCode::kUsage) << "--exec: " << words.error().message());
  return words;
}

void add_json(OptionSet& set, bool& json) {
  set.add_flag("--json", json, "print one JSON document instead of tables");
}

void add_log_level(OptionSet& set, std::string& level) {
  set.group("Other");
  set.add_option("-l,--log-level", level, "LEVEL",
                 "debug, info, warning, error, fatal, critical; info if\nnot given");
}

void add_threads(OptionSet& set, size_t& threads) {
  set.group("Other");
  set.add_number("--threads", threads, 1, kMaxThreads, "N",
                 "threads to compute with; all cores if not given");
}

std::vector<std::string> list_elements(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  for (size_t at; (at = text.find(kWideComma)) != std::string::npos;)
    text.replace(at, kWideComma.size(), ",");
  std::vector<std::string> out(1);
  bool after_blank = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (c == ',' || (!blank && after_blank && !out.back().empty())) out.emplace_back();
    if (c != ',' && !blank) out.back() += c;
    after_blank = blank;
  }
  return out;
}

std::vector<std::string> list_items(const std::vector<std::string>& words) {
  std::vector<std::string> out = list_elements(words);
  std::erase(out, "");
  return out;
}

}  // namespace ait::cli
