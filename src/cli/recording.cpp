#include "cli/recording.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>

#include "report/utf8.h"

namespace ait::cli {
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
  return RecordingPlan{command, *program, std::move(environment)};
}

Result<RecordingEnd> run_recording(RecordingPlan& plan, const std::string& scratch,
                                   std::time_t start) {
  using Clock = std::chrono::steady_clock;
  plan.environment.set("AIT_PROBE_SCRATCH", scratch);
  RecordingEnd out;
  out.start = start;
  const auto began = Clock::now();
  const auto end = launch::run_child(plan.program.path, plan.command, plan.environment);
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
                           "AIT_PROBE_SCRATCH",
                           "AIT_DRY_RUN",
                           "AIT_TORCH_DUMP_PATH",
                           "AIT_TORCH_TOKEN_RANGE",
                           "AIT_TORCH_MODULE_LIST",
                           "AIT_TORCH_TENSOR_PART",
                           "AIT_TORCH_DEVICE_ID"})
    environment.remove(name);
}

std::string log_level_number(const std::string& name) {
  static constexpr std::array<std::string_view, 6> kLevels = {"debug", "info",  "warning",
                                                              "error", "fatal", "critical"};
  for (size_t i = 0; i < kLevels.size(); ++i)
    if (kLevels[i] == name) return std::to_string(i);
  return name == "warn" ? "2" : "1";
}

std::string end_text(const launch::ChildEnd& end) {
  if (end.signal == 0) return fmt::format("ended with status {}", end.exit_status);
  return fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal));
}

std::string why_nobody_called(const launch::Program& program, const RecordingEnd& recording,
                              const std::optional<launch::AtbLibrary>& atb) {
  const launch::ChildEnd& end = recording.child;
  if (!recording.run.still_running.empty())
    return fmt::format(
        "the command has ended, but process {} that it started still runs and has not called the "
        "probe yet; start what is to be recorded in the foreground",
        recording.run.still_running.front());
  if (program.obstacle != launch::Obstacle::kNone)
    return launch::obstacle_text(program) + "; no process of the command could be recorded";
  std::string out = "no process of the command called the probe";
  if (end.status() != 0) out += ", and it " + end_text(end) + " (see its own messages above)";
  if (!atb)
    return out +
           ": libatb was not found; is ATB_HOME_PATH set (source the acceleration library's "
           "set_env.sh), and does the command use it at all?";
  if (!atb->probe) return out + ": " + atb->path + " cannot be looked into (" + atb->problem + ")";
  if (!atb->probe->any())
    return out + ": " + atb->path +
           " has no probe interface, so that this version cannot be recorded";
  return out +
         ": does it use the acceleration library? Programs started through setuid or static "
         "launchers, in containers, or that load libatb with RTLD_DEEPBIND are out of reach";
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  std::string visible = report::visible(text);
  if (!visible.empty() && visible.find_first_not_of(kPlain) == std::string::npos) return visible;
  std::string out = "'";
  for (const char c : visible) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"bytes", "KiB", "MiB", "GiB",
                                                        "TiB",   "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(uint64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("s") ? "es" : "s");
}

}  // namespace ait::cli
