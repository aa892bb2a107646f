#include "capture/sglang_dump.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "capture/listing.h"
#include "capture/module_tree.h"
#include "capture/named_run.h"
#include "capture/torch_dump.h"
#include "formats/registry.h"

namespace ait::capture {
namespace {

constexpr std::string_view kExtension = ".pt";
constexpr std::string_view kBetween = "___";
constexpr std::string_view kHooked = "non_intrusive__";
constexpr std::string_view kGradient = "grad__";
constexpr std::string_view kParameter = "param__";
constexpr std::string_view kValue = "value";

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t dot = name.find('.');
    out.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return out;
    name.remove_prefix(dot + 1);
  }
}

// "model.norm.output", "model.layers.0.inputs.hidden_states", "output.1": a module, which word, and
// what follows it.
void take_hooked_name(std::string_view name, SglangFileName& out) {
  const std::vector<std::string_view> parts = parts_of(name);
  // From the end: a module may be called "output", too.
  size_t word = parts.size();
  for (size_t i = parts.size(); i-- > 0 && word == parts.size();)
    if (parts[i] == "output" || parts[i] == "inputs") word = i;
  if (word == parts.size()) return;
  out.operation = "root";
  for (size_t i = 0; i < word; ++i) out.operation += "." + std::string(parts[i]);
  out.tensor = parts[word] == "inputs" ? "input" : "output";
  for (size_t i = word + 1; i < parts.size(); ++i) out.tensor += "_" + std::string(parts[i]);
}

// A tensor of a file.
struct Held {
  std::string below;   // what it is called below "output": "_0" of "value[0]"
  std::string member;  // empty for a file's only tensor
};

// What the value of a file holds: a tensor, several, or none. What lies in "meta" is none of it.
std::vector<Held> held_by(const std::string& path) {
  const auto file = formats::open_tensor_file(path);
  if (!file) return {{"", ""}};  // whoever reads it says why it cannot be read
  std::vector<Held> out;
  for (size_t i = 0; i < (*file)->size(); ++i) {
    const std::string name = (*file)->name(i);
    const auto is_in = [&](std::string_view key) {
      return name.starts_with(key) &&
             (name.size() == key.size() || name[key.size()] == '.' || name[key.size()] == '[');
    };
    if (is_in("meta")) continue;
    std::string below = is_in(kValue) ? name.substr(kValue.size()) : name;
    std::erase(below, ']');
    for (char& c : below)
      if (c == '[' || c == '.') c = '_';
    out.push_back({std::move(below), (*file)->size() == 1 ? "" : name});
  }
  return out;
}

}  // namespace

std::optional<SglangFileName> parse_sglang_file_name(std::string_view name) {
  if (!name.ends_with(kExtension)) return std::nullopt;
  name.remove_suffix(kExtension.size());
  std::map<std::string_view, std::string_view> tags;
  while (!name.empty()) {
    const size_t end = name.find(kBetween);
    const std::string_view tag = name.substr(0, end);
    const size_t equals = tag.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    tags.emplace(tag.substr(0, equals), tag.substr(equals + 1));
    name = end == std::string_view::npos ? std::string_view() : name.substr(end + kBetween.size());
  }
  const auto number = [&](std::string_view key) {
    const auto found = tags.find(key);
    return found == tags.end() ? std::nullopt : number_of(found->second);
  };
  const auto step = number(tags.contains("step") ? "step" : "forward_pass_id");
  const auto rank = number("rank");
  const auto index = number("dump_index");
  const auto named = tags.find("name");
  if (!step || !rank || !index || named == tags.end()) return std::nullopt;
  SglangFileName out{*step, *rank, *index, {}, {}};
  std::string_view what = named->second;
  const auto recompute = tags.find("recompute_status");
  if (what.starts_with(kParameter) || (recompute != tags.end() && recompute->second == "recompute"))
    return out;
  std::string root = "root";
  if (what.starts_with(kGradient)) {
    root = "backward";
    what.remove_prefix(kGradient.size());
  }
  if (what.starts_with(kHooked)) {
    take_hooked_name(what.substr(kHooked.size()), out);
    if (root != "root" && !out.operation.empty()) out.operation.replace(0, 4, root);
    return out;
  }
  out.operation = root;
  if (const auto layer = number("layer_id")) out.operation += ".layers." + std::to_string(*layer);
  (out.operation += '.') += what;
  out.tensor = "output";
  return out;
}

bool is_sglang_dump(const std::string& path) {
  const auto entries = list_folder(path);
  return entries && std::any_of(entries->begin(), entries->end(), [](const Entry& entry) {
           return !entry.is_folder && parse_sglang_file_name(entry.name);
         });
}

Result<Recording> read_sglang_dump(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return fail(entries.error());
  std::vector<std::pair<SglangFileName, std::string>> files;
  for (const Entry& entry : *entries)
    if (auto parsed = parse_sglang_file_name(entry.name); parsed && !entry.is_folder)
      if (!parsed->tensor.empty()) files.emplace_back(std::move(*parsed), entry.name);
  if (files.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "holds no tensors of SGLang's dumper: expected files such as "
                   "step=0___rank=0___dump_index=1___name=hidden_states.pt");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first.rank, a.first.step, a.first.index) <
           std::tuple(b.first.rank, b.first.step, b.first.index);
  });
  std::set<uint64_t> steps;
  std::set<uint64_t> ranks;
  for (const auto& [name, file] : files) {
    steps.insert(name.step);
    ranks.insert(name.rank);
  }
  Recording recording;
  recording.root = path;
  recording.traits = kTorchTraits;
  recording.traits.words = "a dump of SGLang";
  recording.traits.batch = Traits::Batch::kPacked;
  for (const uint64_t rank : ranks) {
    const std::string number = std::to_string(rank);
    recording.ranks.push_back({path, "rank=" + number, number, ""});
  }
  for (const uint64_t step : steps) recording.rounds.push_back(std::to_string(step));

  NamedRun run;
  // How often a tensor was dumped in a step: each time is another call.
  std::map<std::tuple<uint64_t, uint64_t, std::string>, uint32_t> seen;
  // What a tensor's files hold is looked up in the first of them.
  std::map<std::string, std::vector<Held>> known;
  for (const auto& [name, file] : files) {
    const auto [held, is_new] = known.try_emplace(name.operation + "/" + name.tensor);
    if (is_new) held->second = held_by(path + "/" + file);
    if (held->second.empty()) continue;
    const uint32_t call = seen[{name.rank, name.step, name.operation + "/" + name.tensor}]++;
    const std::string operation =
        name.operation + (call > 0 ? "#" + std::to_string(call) : std::string());
    run.add_operation(operation, "", module_around(operation), name.index);
    for (const auto& [below, member] : held->second)
      run.add(static_cast<size_t>(std::distance(ranks.begin(), ranks.find(name.rank))),
              static_cast<size_t>(std::distance(steps.begin(), steps.find(name.step))), "",
              {operation, name.tensor + folder_safe(below), file, member});
  }
  run.finish(recording);
  return recording;
}

}  // namespace ait::capture
