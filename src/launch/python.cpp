#include "launch/python.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "launch/environment.h"
#include "launch/output_of.h"
#include "launch/program.h"

namespace ait::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPythonLimit{20};
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr const char* kRunModule =
    "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)";

std::string wanted_python() {
  const char* named = std::getenv("AIT_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {folder / "python3", folder / ".." / ".." / ".venv" / "bin" / "python3"})
    if (!error && fs::exists(candidate, error)) return candidate.lexically_normal().native();
  return "python3";
}

// A bundle has the package beside the program, for whichever Python there is: lib/python, of no
// version. Children of this process find it.
void offer_own_package() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path packages =
      program.parent_path().parent_path() / "lib" / "python" / "site-packages";
  if (error || !fs::is_directory(packages / "ait_llm", error)) return;
  const char* before = std::getenv("PYTHONPATH");
  const bool alone = before == nullptr || *before == '\0';
  const std::string value = alone ? packages.native() : before + (":" + packages.native());
  ::setenv("PYTHONPATH", value.c_str(), 1);
}

}  // namespace

Result<std::string> find_python() {
  offer_own_package();
  const std::string python = wanted_python();
  const std::string path = Environment::of_this_process().get("PATH").value_or(kDefaultPath);
  const auto program = find_program(python, path);
  if (!program) return fail(program.error());
  if (const auto answer = output_of(
          {program->path, "-c", std::string(kNotFromHere) + "import ait_llm"}, kPythonLimit);
      !answer)
    return fail(Error(ErrorCode::kNotFound, program->path)
                << "this Python does not have the package ait_llm, which this command needs; "
                   "install it there, or name a Python that has it with AIT_PYTHON");
  return program->path;
}

std::vector<std::string> PythonOptions::words(const std::string& first) const {
  std::vector<std::string> out = {first};
  for (const auto& [name, value] : values_)
    if (!value.empty()) out.insert(out.end(), {name, value});
  for (const auto& [name, is_set] : flags_)
    if (is_set) out.emplace_back(name);
  return out;
}

Result<ChildEnd> run_python_module(const std::string& module,
                                   const std::vector<std::string>& words) {
  const auto python = find_python();
  if (!python) return fail(python.error());
  std::vector<std::string> command = {*python, "-c", std::string(kNotFromHere) + kRunModule,
                                      module};
  command.insert(command.end(), words.begin(), words.end());
  return run_child(*python, command, Environment::of_this_process());
}

}  // namespace ait::launch
