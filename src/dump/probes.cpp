#include "dump/probes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "dump/texts.h"
#include "launch/output_of.h"
#include "launch/preload.h"
#include "launch/program.h"
#include "launch/python.h"

namespace ait::dump {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStartupModule = "sitecustomize.py";
constexpr const char* kStartupQuestion = "import ait_llm.startup; print(ait_llm.startup.FOLDER)";
constexpr std::chrono::seconds kPythonLimit{20};
constexpr const char* kNoRound = "none";  // leaves model_tree.json

bool holds_startup(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kStartupModule, error);
}

std::string startup_of(const std::string& python) {
  auto answer = launch::output_of(
      {python, "-c", std::string(launch::kNotFromHere) + kStartupQuestion}, kPythonLimit);
  if (!answer) return {};
  while (!answer->empty() && answer->back() == '\n') answer->pop_back();
  // The last line: a sitecustomize of the user's may have something to say before it.
  const std::string folder = answer->substr(answer->rfind('\n') + 1);
  return holds_startup(folder) ? folder : std::string();
}

// python, python3.11, python3.13t; not python_job.sh, which would run if it were asked something.
bool is_python(const std::string& path) {
  constexpr std::string_view kPython = "python";
  const std::string name = fs::path(path).filename().native();
  return name.starts_with(kPython) &&
         name.find_first_not_of("0123456789.td", kPython.size()) == std::string::npos;
}

// The Pythons that a command names, as a word of it ("env A=1 python3 x.py") or in the first line
// of a program such as torchrun.
std::vector<std::string> pythons_of(const RecordingPlan& plan) {
  std::vector<std::string> out;
  const std::string path = plan.environment.get("PATH").value_or("");
  const auto word = std::find_if(plan.command.begin(), plan.command.end(), is_python);
  if (word != plan.command.end())
    if (const auto program = launch::find_program(*word, path)) out.push_back(program->path);
  if (is_python(plan.program.runs)) out.push_back(plan.program.runs);
  return out;
}

// {prefix}/lib/python3.11/site-packages/ait_llm/startup for {prefix}/bin/ait
std::string startup_beside_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::vector<fs::path> found;
  const fs::path libraries = program.parent_path().parent_path() / "lib";
  for (fs::directory_iterator at(libraries, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const fs::path folder = at->path() / "site-packages" / "ait_llm" / "startup";
    if (at->path().filename().native().starts_with("python") && holds_startup(folder))
      found.push_back(folder);
  }
  return found.empty() ? std::string() : std::max_element(found.begin(), found.end())->native();
}

std::string find_startup(const RecordingPlan& plan) {
  for (const std::string& python : pythons_of(plan))
    if (std::string folder = startup_of(python); !folder.empty()) return folder;
  if (std::string folder = startup_beside_program(); !folder.empty()) return folder;
  const char* python = std::getenv("AIT_PYTHON");
  return startup_of(python != nullptr && *python != '\0' ? python : "python3");
}

}  // namespace

Result<void> preload_atb_probe(RecordingPlan& plan) {
  const auto library = launch::find_probe(launch::kAtbProbe);
  if (!library) return fail(library.error());
  plan.environment.set("LD_PRELOAD",
                       launch::preload_value(*library, plan.environment.get("LD_PRELOAD")));
  return {};
}

void ask_atb_probe(const Options& o, const std::string& output, std::time_t start,
                   launch::Environment& environment) {
  std::string types;
  for (const std::string& type : o.types) types += (types.empty() ? "" : "|") + type;
  environment.set("ATB_SAVE_TENSOR", o.only_description ? "2" : "1")
      .set("ATB_SAVE_TENSOR_TIME", std::to_string(o.time))
      .set("ATB_OUTPUT_DIR", output.ends_with('/') ? output : output + "/")
      .set("ATB_DUMP_TYPE", types)
      .set("ATB_SAVE_CHILD", o.children ? "1" : "0")
      .set("ATB_SAVE_TENSOR_RANGE", rounds_text(o.rounds))
      .set("ATB_SAVE_TILING", o.tiling ? "1" : "0")
      .set("ATB_SAVE_TENSOR_PART", std::to_string(o.part))
      .set("ATB_SAVE_CPU_PROFILING", o.wants("cpu_profiling") ? "1" : "0")
      .set("ATB_CUR_PID", std::to_string(::getpid()))
      .set("ATB_TIMESTAMP", stamp_text(start))
      .set("ATB_AIT_LOG_LEVEL", log_level_number(o.log_level));
  if (!o.ids.empty()) environment.set("ATB_SAVE_TENSOR_IDS", o.ids);
  if (!o.operation_name.empty()) environment.set("ATB_SAVE_TENSOR_RUNNER", o.operation_name);
  if (o.device) environment.set("ATB_DEVICE_ID", std::to_string(*o.device));
  if (o.dry_run) environment.set("AIT_DRY_RUN", "1");
}

Result<void> prepend_torch_startup(RecordingPlan& plan) {
  const std::string folder = find_startup(plan);
  if (folder.empty())
    return fail(
        Error(ErrorCode::kNotFound)
        << "recording torch needs the Python package ait_llm, which was found neither beside "
           "this program nor in python3; install it into the command's Python, or name a "
           "Python that has it with AIT_PYTHON");
  const auto path = plan.environment.get("PYTHONPATH");
  plan.environment.set("PYTHONPATH", path && !path->empty() ? folder + ":" + *path : folder);
  return {};
}

void ask_torch_probe(const Options& o, const std::string& output,
                     launch::Environment& environment) {
  environment.set("AIT_TORCH_DUMP_PATH", output)
      .set("AIT_TORCH_TOKEN_RANGE", o.wants("tensor") ? rounds_text(o.rounds) : kNoRound)
      .set("AIT_TORCH_TENSOR_PART", std::to_string(o.part));
  if (!o.operation_name.empty()) environment.set("AIT_TORCH_MODULE_LIST", o.operation_name);
  if (o.device) environment.set("AIT_TORCH_DEVICE_ID", std::to_string(*o.device));
  if (o.seed) environment.set("AIT_TORCH_SEED", std::to_string(*o.seed));
  if (!o.when.empty())
    environment.set("AIT_TORCH_WHEN", o.when).set("AIT_TORCH_KEEP", std::to_string(o.keep));
  if (o.sketch) environment.set("AIT_TORCH_SKETCH", "1");
  // Sketches are kept beside statistics, which --when asks for by itself.
  if (const auto asked = environment.get("AIT_TORCH_STATISTICS");
      o.sketch && o.when.empty() && (!asked || asked->empty() || *asked == "0"))
    environment.set("AIT_TORCH_STATISTICS", "1");
}

void ask_fx_probe(const Options& o, const std::string& output, launch::Environment& environment) {
  environment.set("AIT_FX_DUMP_PATH", output)
      .set("AIT_FX_TOKEN_RANGE", o.wants("tensor") ? rounds_text(o.rounds) : kNoRound);
}

void ask_for_determinism(const Options& options, launch::Environment& environment) {
  if (!options.seed) return;
  environment.set("LCCL_DETERMINISTIC", "1")
      .set("HCCL_DETERMINISTIC", "true")
      .set("ATB_MATMUL_SHUFFLE_K_ENABLE", "0")
      .set("ATB_LLM_LCOC_ENABLE", "0")
      .set("PYTHONHASHSEED", std::to_string(*options.seed));
}

}  // namespace ait::dump
