#include "launch/machine.h"

#include <gnu/libc-version.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/parallel.h"
#include "launch/output_of.h"
#include "launch/preload.h"

namespace ait::launch {
namespace {

constexpr std::chrono::seconds kPythonLimit{20};
constexpr std::chrono::seconds kLoaderLimit{5};
constexpr const char* kAtbName = "libatb.so";

// Versions by their metadata: importing torch would take seconds. The current folder comes off the
// search path first, so that a csv.py lying among somebody's dumps is not run.
constexpr const char* kPythonQuestion = R"(
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.util
try:
    from importlib import metadata
except ImportError:
    metadata = None
print('python', sys.version.split()[0])
for name in ('numpy', 'torch', 'torchvision', 'torch_npu', 'ait_llm'):
    if importlib.util.find_spec(name) is None:
        print(name)
        continue
    version = 'unknown'
    for distribution in (name, name.replace('_', '-')):
        try:
            version = metadata.version(distribution)
            break
        except Exception:
            pass
    print(name, version)
)";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The text after "name :" in a file of such lines.
std::string field(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return {};
}

uint64_t memory_field(const std::string& name) {
  return std::strtoull(field("/proc/meminfo", name).c_str(), nullptr, 10) * 1024;
}

std::vector<std::string> loader_folders() {
  std::vector<std::string> folders;
  if (const std::string home = environment("ATB_HOME_PATH"); !home.empty())
    folders.push_back(home + "/lib");
  std::istringstream path(environment("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(path, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

// The path that the loader's cache has for it: "\tlibatb.so (libc6,x86-64) => /usr/lib/libatb.so".
std::string cached_atb() {
  for (const char* ldconfig : {"ldconfig", "/sbin/ldconfig"}) {
    const auto answer = output_of({ldconfig, "-p"}, kLoaderLimit);
    if (!answer) continue;
    std::istringstream lines(*answer);
    for (std::string line; std::getline(lines, line);) {
      const size_t arrow = line.find("=> ");
      if (arrow != std::string::npos && line.find(kAtbName) < arrow) return line.substr(arrow + 3);
    }
    break;
  }
  return {};
}

AtbLibrary look_into(const std::string& path) {
  const auto probe = read_probe_interface(path);
  if (probe) return {path, *probe, ""};
  return {path, std::nullopt, probe.error().message()};
}

}  // namespace

Machine examine_machine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0)
    machine.system = std::string(names.sysname) + " " + names.release + " " + names.machine;
  machine.cpu = field("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown";  // aarch64 gives no name
  machine.cores = available_threads();
  machine.memory_bytes = memory_field("MemTotal");
  machine.available_bytes = memory_field("MemAvailable");
  machine.glibc = ::gnu_get_libc_version();
  return machine;
}

Disk examine_disk(const std::string& folder) {
  Disk disk{folder, 0, ::access(folder.c_str(), W_OK) == 0};
  struct statvfs status{};
  if (::statvfs(folder.c_str(), &status) == 0)
    disk.free_bytes = uint64_t{status.f_bavail} * status.f_frsize;
  return disk;
}

std::optional<AtbLibrary> find_atb() {
  std::error_code ignored;
  for (const std::string& folder : loader_folders()) {
    const std::string path = folder + "/" + kAtbName;
    if (std::filesystem::is_regular_file(path, ignored)) return look_into(path);
  }
  if (const std::string path = cached_atb(); !path.empty()) return look_into(path);
  return std::nullopt;
}

ProbeFile examine_probe() {
  const auto probe = find_probe(kAtbProbe);
  if (probe) return {*probe, ""};
  return {probe.error().path(), probe.error().message()};
}

std::string find_engine_host() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / "ait-llama").native();
  return !error && ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

Python examine_python() {
  Python python;
  python.program = environment("AIT_PYTHON");
  if (python.program.empty()) python.program = "python3";
  const auto answer = output_of({python.program, "-c", kPythonQuestion}, kPythonLimit);
  if (!answer) {
    python.problem = answer.error().message();
    return python;
  }
  std::istringstream lines(*answer);
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = std::min(line.find(' '), line.size());
    PythonPackage package{line.substr(0, blank),
                          blank < line.size() ? line.substr(blank + 1) : std::string()};
    if (package.name == "python") {
      python.version = package.version;
    } else {
      python.packages.push_back(std::move(package));
    }
  }
  return python;
}

}  // namespace ait::launch
