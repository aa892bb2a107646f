#include "dump/recording.h"

#include <array>
#include <chrono>
#include <string_view>

#include "record/dump_names.h"

namespace ait::dump {
namespace {

// For processes that outlive the command: a rank that is still writing, or is being killed.
constexpr std::chrono::seconds kPatience{5};

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace

Result<RecordingPlan> plan_recording(const std::vector<std::string>& command) {
  auto environment = launch::Environment::of_this_process();
  const auto program =
      launch::find_program(command[0], environment.get("PATH").value_or(kDefaultPath));
  if (!program) return fail(program.error());
  remove_probe_settings(environment);
  return RecordingPlan{command, *program, std::move(environment), launch::Output::kInherited};
}

Result<RecordingEnd> run_recording(RecordingPlan& plan, const std::string& scratch,
                                   std::time_t start) {
  using Clock = std::chrono::steady_clock;
  plan.environment.set(record::kScratchVariable, scratch);
  RecordingEnd out;
  out.start = start;
  const auto began = Clock::now();
  const auto end =
      launch::run_child(plan.program.path, plan.command, plan.environment, plan.output);
  if (!end) return fail(end.error());
  out.child = *end;
  out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  out.end = std::time(nullptr);
  wait_for_processes(scratch, Clock::now() + kPatience);
  out.run = read_run(scratch);
  return out;
}

void remove_probe_settings(launch::Environment& environment) {
  for (const char* name : {"ATB_SAVE_TENSOR",
                           "ATB_SAVE_TENSOR_TIME",
                           "ATB_SAVE_TENSOR_IN_BEFORE_OUT_AFTER",
                           "ATB_SAVE_TENSOR_IDS",
                           "ATB_SAVE_TENSOR_RUNNER",
                           "ATB_OUTPUT_DIR",
                           "ATB_DUMP_TYPE",
                           "ATB_DUMP_SUB_PROC_INFO_SAVE_PATH",
                           "ATB_SAVE_CHILD",
                           "ATB_SAVE_TENSOR_RANGE",
                           "ATB_SAVE_TILING",
                           "ATB_SAVE_TENSOR_PART",
                           "ATB_SAVE_CPU_PROFILING",
                           "ATB_CUR_PID",
                           "ATB_TIMESTAMP",
                           "ATB_DEVICE_ID",
                           "ATB_AIT_LOG_LEVEL",
                           "ATB_SAVE_TENSOR_STATISTICS",
                           "ATB_SAVE_SYMLINK",
                           "ATB_DUMP_CONFIG",
                           "ATB_CHECK_TYPE",
                           "ATB_EXIT",
                           record::kScratchVariable,
                           "AIT_DRY_RUN",
                           "AIT_TORCH_DUMP_PATH",
                           "AIT_TORCH_TOKEN_RANGE",
                           "AIT_TORCH_MODULE_LIST",
                           "AIT_TORCH_TENSOR_PART",
                           "AIT_TORCH_DEVICE_ID",
                           "AIT_TORCH_WHEN",
                           "AIT_TORCH_KEEP",
                           "AIT_FX_DUMP_PATH",
                           "AIT_FX_TOKEN_RANGE",
                           "AIT_API_DUMP_PATH"})
    environment.remove(name);
}

std::string log_level_number(const std::string& name) {
  static constexpr std::array<std::string_view, 6> kLevels = {"debug", "info",  "warning",
                                                              "error", "fatal", "critical"};
  for (size_t i = 0; i < kLevels.size(); ++i)
    if (kLevels[i] == name) return std::to_string(i);
  return name == "warn" ? "2" : "1";
}

}  // namespace ait::dump
