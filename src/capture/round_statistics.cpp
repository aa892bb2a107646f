#include "capture/round_statistics.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "capture/capture.h"
#include "capture/listing.h"
#include "capture/module_tree.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTensorEnding = ".pth";

// Reads a table into `tensors`; where it is one of a module, that is `module`.
void read_table(const std::string& path, const std::string& module,
                std::vector<RoundTensor>& tensors, std::vector<Error>& problems) {
  const auto table = formats::open_tensor_file(path);
  if (!table) {
    problems.push_back(table.error());
    return;
  }
  for (size_t i = 0; i < (*table)->size(); ++i) {
    auto description = (*table)->describe(i);
    if (!description) continue;
    const std::string name = (*table)->name(i);
    const size_t slash = name.rfind('/');
    if (module.empty() && slash == std::string::npos) continue;
    const bool own = slash == std::string::npos;
    tensors.push_back({own ? module : name.substr(0, slash),
                       own ? name : name.substr(slash + 1),
                       {},
                       std::move(*description)});
  }
}

// Names of calls in the order in which these returned.
std::vector<std::string> in_order_of_return(const std::string& rank,
                                            std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), natural_less);
  const auto tree = read_module_tree(rank + "/" + record::kModelTreeFile);
  if (!tree) return names;
  RecordedCalls recorded;
  for (const std::string& name : names) {
    const auto [module, call] = module_and_call(name);
    recorded[module].insert(call);
  }
  const ModuleCalls calls(*tree, recorded);
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return calls.less(a, b); });
  const auto is_inside = [&](std::string name, const std::string& other) {
    for (size_t depth = 0; !name.empty() && depth < kMaxFolderDepth; ++depth) {
      if (name == other) return true;
      name = calls.parent_of(name);
    }
    return false;
  };
  std::vector<std::string> out;
  std::vector<std::string> open;
  for (std::string& name : names) {
    for (; !open.empty() && !is_inside(name, open.back()); open.pop_back())
      out.push_back(std::move(open.back()));
    open.push_back(std::move(name));
  }
  for (; !open.empty(); open.pop_back()) out.push_back(std::move(open.back()));
  return out;
}

}  // namespace

std::vector<RoundTensor> read_round_statistics(const std::string& rank, const std::string& round,
                                               std::vector<Error>& problems) {
  const std::string folder = rank + "/" + round;
  std::vector<RoundTensor> out;
  std::string listed = list_files(folder, problems);
  std::map<std::string, std::vector<std::string>, std::less<>> files_of;  // by module
  each_file(listed, [&](std::string_view file) {
    const size_t slash = file.find('/');
    if (slash == std::string_view::npos) {
      if (file == record::kStatisticsFile)
        read_table(folder + "/" + std::string(file), "", out, problems);
    } else if (file.find('/', slash + 1) == std::string_view::npos) {
      files_of[std::string(file.substr(0, slash))].emplace_back(file.substr(slash + 1));
    }
  });
  std::set<std::pair<std::string, std::string>> known;
  for (const RoundTensor& each : out) known.emplace(each.module, each.tensor);
  std::vector<std::string> modules;
  for (const auto& [module, files] : files_of) modules.push_back(module);
  for (const std::string& module : in_order_of_return(rank, std::move(modules))) {
    const std::vector<std::string>& files = files_of[module];
    const std::string path = folder + "/" + module + "/";
    const size_t before = out.size();
    if (std::find(files.begin(), files.end(), record::kStatisticsFile) != files.end())
      read_table(path + record::kStatisticsFile, module, out, problems);
    for (size_t i = before; i < out.size(); ++i) known.emplace(module, out[i].tensor);
    for (const std::string& file : files) {
      if (!file.ends_with(kTensorEnding)) continue;
      std::string tensor = file.substr(0, file.size() - kTensorEnding.size());
      if (known.emplace(module, tensor).second)
        out.push_back({module, std::move(tensor), path + file});
    }
  }
  return out;
}

}  // namespace ait::capture
