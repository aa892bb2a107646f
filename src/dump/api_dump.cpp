#include "dump/api_dump.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "dump/folders.h"
#include "dump/probes.h"
#include "dump/recording.h"

namespace ait::dump {
namespace {

namespace fs = std::filesystem;

constexpr const char* kForwardPrefix = "forward_info_";

// In the folder, and in those of single iterations (step3).
std::set<std::string> forward_files(const std::string& folder) {
  std::set<std::string> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at.depth() > 0 || !at->path().filename().native().starts_with("step"))
      at.disable_recursion_pending();
    if (at->path().filename().native().starts_with(kForwardPrefix)) out.insert(at->path().native());
  }
  return out;
}

}  // namespace

Result<ApiDump> record_apis(const ApiDumpOptions& options, launch::Output output) {
  auto plan = plan_recording(options.command);
  if (!plan) return fail(plan.error());
  if (auto placed = prepend_torch_startup(*plan); !placed) return fail(placed.error());
  MadeFolders made;
  const auto folder = prepare_output(options.output, made);
  if (!folder) return fail(folder.error());
  plan->environment.set("AIT_API_DUMP_PATH", *folder)
      .set("AIT_API_ITERATION", options.iterations)
      .set("AIT_API_REAL_DATA", options.real_data ? "1" : "0")
      .set("AIT_API_LIST", options.old_list ? "att" : "all")
      .set("AIT_API_KEEP_GOING", options.keep_going ? "1" : "0");
  const auto before = forward_files(*folder);
  const auto end = launch::run_child(plan->program.path, plan->command, plan->environment, output);
  made.remove_empty();
  if (!end) return fail(end.error());
  ApiDump out{*end, {}};
  for (const std::string& path : forward_files(*folder))
    if (!before.contains(path)) out.forward_files.push_back(path);
  return out;
}

}  // namespace ait::dump
