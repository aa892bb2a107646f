#include "summary/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "metrics/compare.h"
#include "report/table.h"

namespace ait::summary {
namespace {

using launch::AtbLibrary;
using launch::Disk;
using launch::Machine;
using launch::Python;
using launch::PythonPackage;
using report::Cell;
using report::Json;
using report::JsonArray;
using report::JsonObject;

// Below this a report or a dump is likely to fill the disk.
constexpr uint64_t kLittleDiskBytes = uint64_t{1} << 30;

std::string gib(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

std::string version_of(const Python& python, std::string_view name) {
  const auto found = std::find_if(python.packages.begin(), python.packages.end(),
                                  [&](const PythonPackage& p) { return p.name == name; });
  return found == python.packages.end() ? "" : found->version;
}

std::string interface_text(const AtbLibrary& atb) {
  if (!atb.probe) return "unknown: " + atb.problem;
  if (!atb.probe->any()) return "none";
  std::string out;
  if (atb.probe->new_strings) out += "new strings (_GLIBCXX_USE_CXX11_ABI=1)";
  if (atb.probe->old_strings)
    out += (out.empty() ? "" : ", ") + std::string("old strings (_GLIBCXX_USE_CXX11_ABI=0)");
  return out;
}

std::string atb_conclusion(const MachineFacts& facts) {
  if (!facts.atb) {
    std::string out =
        "libatb was not found: programs that use the acceleration library won't run here (where it "
        "is installed, source its set_env.sh). Its dumps can be read.";
    if (!facts.engine_host.empty())
      out +=
          " The library that comes with ait works here, on the CPU: ait demo shows it, and "
          "ait-llama "
          "can be recorded with ait llm dump.";
    return out;
  }
  if (!facts.atb->probe)
    return fmt::format("The acceleration library cannot be read: {} {}.", facts.atb->path,
                       facts.atb->problem);
  if (!facts.atb->probe->any())
    return "The acceleration library has no probe interface: programs that use it cannot be "
           "recorded.";
  return fmt::format(
      "The acceleration library has the probe interface, with the {} C++ string ABI: programs that "
      "use it can be recorded with ait llm dump.",
      facts.atb->probe->new_strings ? "new" : "old");
}

// Which torchvision belongs to a torch, in the versions that TorchAir's documents list.
struct Fit {
  std::string_view torch;
  std::string_view torchvision;
};
constexpr auto kFits = std::to_array<Fit>(
    {{"2.3.0", "0.18.0"}, {"2.2.0", "0.17.0"}, {"2.1.0", "0.16.0"}, {"2.0.0", "0.15.1"}});

// "2.1.0+cpu" is 2.1.0 for this purpose.
std::string_view without_build(std::string_view version) {
  return version.substr(0, version.find('+'));
}

// Empty where both fit, where one is missing, and of versions that are not listed.
std::string misfit(const std::string& torch, const std::string& torchvision) {
  if (torchvision.empty()) return {};
  for (const Fit& fit : kFits)
    if (without_build(torch) == fit.torch && without_build(torchvision) != fit.torchvision)
      return fmt::format(
          "torchvision {} does not fit torch {}: install torchvision {} before a model runs "
          "through TorchAir.",
          torchvision, torch, fit.torchvision);
  return {};
}

std::vector<std::string> conclusions(const MachineFacts& facts) {
  std::vector<std::string> out = {
      "Showing and comparing tensor files works; it needs no accelerator, no Python and no torch."};
  for (const Disk& disk : facts.disks) {
    if (!disk.writable)
      out.push_back(fmt::format("{} cannot be written: give -o a folder elsewhere.", disk.folder));
    else if (disk.free_bytes < kLittleDiskBytes)
      out.push_back(fmt::format("{} has only {} left: large results won't fit.", disk.folder,
                                gib(disk.free_bytes)));
  }
  out.push_back(atb_conclusion(facts));
  if (!facts.probe.problem.empty())
    out.push_back(
        fmt::format("Nothing can be recorded: {}: {}.", facts.probe.path, facts.probe.problem));
  const Python& python = facts.python;
  if (python.version.empty()) {
    out.push_back(
        fmt::format("{} does not run: nothing that needs Python works. Set AIT_PYTHON to "
                    "the interpreter to use.",
                    python.program));
    return out;
  }
  const std::string torch = version_of(python, "torch");
  out.push_back(torch.empty()
                    ? fmt::format("{} has no torch: torch models cannot be recorded with it. Files "
                                  "written by torch can be read.",
                                  python.program)
                    : fmt::format("{} has torch {}.", python.program, torch));
  if (std::string sentence = misfit(torch, version_of(python, "torchvision")); !sentence.empty())
    out.push_back(std::move(sentence));
  if (version_of(python, "ait_llm").empty())
    out.push_back(
        fmt::format("{} has no ait_llm: install it there to use ait from Python.", python.program));
  return out;
}

}  // namespace

MachineFacts examine_here() {
  std::error_code ignored;
  const std::string temporary = std::filesystem::temp_directory_path(ignored).string();
  return {launch::examine_machine(),  {launch::examine_disk("."), launch::examine_disk(temporary)},
          launch::find_atb(),         launch::examine_probe(),
          launch::find_engine_host(), launch::examine_python()};
}

std::string machine_text(const MachineFacts& facts) {
  report::Table table({{}, {}});
  const Machine& m = facts.machine;
  table.add({"system", m.system});
  table.add({"cpu", m.cpu});
  table.add({"vector instructions", metrics::simd_target()});
  table.add({"cores", std::to_string(m.cores)});
  table.add(
      {"memory", fmt::format("{}, {} available", gib(m.memory_bytes), gib(m.available_bytes))});
  table.add({"glibc", m.glibc});
  for (const Disk& disk : facts.disks)
    table.add({"disk at " + disk.folder, gib(disk.free_bytes) + " free"});
  table.add({"libatb", facts.atb ? facts.atb->path : "not found"});
  if (facts.atb) table.add({"libatb probe interface", interface_text(*facts.atb)});
  table.add({"embedded engine", facts.engine_host.empty() ? "not found" : facts.engine_host});
  table.add({"probe",
             facts.probe.problem.empty() ? facts.probe.path : "not usable: " + facts.probe.path});
  const Python& python = facts.python;
  table.add({python.program, python.version.empty() ? python.problem : python.version});
  for (const PythonPackage& package : python.packages)
    table.add({"  " + package.name, package.version.empty() ? "not found" : package.version});
  std::string out = table.text(false) + "\n";
  for (const std::string& sentence : conclusions(facts)) out += sentence + "\n";
  return out + "\nNext: try it with: ait show FILE\n";
}

Json machine_json(const MachineFacts& facts) {
  const Machine& m = facts.machine;
  JsonObject machine;
  machine.set("system", m.system)
      .set("cpu", m.cpu)
      .set("simd", metrics::simd_target())
      .set("cores", m.cores)
      .set("memory_bytes", m.memory_bytes)
      .set("available_bytes", m.available_bytes)
      .set("glibc", m.glibc);
  JsonArray disks;
  for (const Disk& disk : facts.disks) {
    JsonObject object;
    disks.emplace_back(object.set("folder", disk.folder)
                           .set("free_bytes", disk.free_bytes)
                           .set("writable", disk.writable));
  }
  JsonObject atb;
  if (facts.atb) {
    const auto& probe = facts.atb->probe;
    atb.set("path", facts.atb->path)
        .set("probe_interface", probe ? Cell(probe->any()) : Cell())
        .set("new_string_abi", probe && probe->any() ? Cell(probe->new_strings) : Cell());
  }
  JsonObject probe;
  probe.set("path", facts.probe.path)
      .set("problem", facts.probe.problem.empty() ? Cell() : Cell(facts.probe.problem));
  JsonObject packages;
  for (const PythonPackage& package : facts.python.packages)
    packages.set(package.name, package.version.empty() ? Cell() : Cell(package.version));
  JsonObject python;
  python.set("program", facts.python.program)
      .set("version", facts.python.version.empty() ? Cell() : Cell(facts.python.version))
      .set("packages", packages);
  JsonArray sentences;
  for (std::string& sentence : conclusions(facts)) sentences.emplace_back(std::move(sentence));
  JsonObject root;
  root.set("machine", machine)
      .set("disks", std::move(disks))
      .set("libatb", facts.atb ? Json(atb) : Json(Cell()))
      .set("engine", facts.engine_host.empty() ? Cell() : Cell(facts.engine_host))
      .set("probe", probe)
      .set("python", python)
      .set("conclusions", std::move(sentences));
  return root;
}

}  // namespace ait::summary
