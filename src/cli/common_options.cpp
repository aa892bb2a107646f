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

}  // namespace ait::cli
