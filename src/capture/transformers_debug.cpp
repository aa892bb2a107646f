#include "capture/transformers_debug.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "capture/listing.h"
#include "capture/module_tree.h"
#include "capture/named_run.h"
#include "capture/torch_dump.h"

namespace ait::capture {
namespace {

constexpr std::string_view kTree = "_debug_tree_FULL_TENSORS.json";
constexpr std::string_view kExtension = ".safetensors";
// With use_repr=True it holds texts of all tensors.
constexpr size_t kMaxTreeBytes = size_t{1} << 30;
// simdjson's own limit is 1024; modules do not nest like this.
constexpr size_t kMaxDepth = 256;

struct Word {
  std::string_view in_file;
  std::string_view ours;
};
constexpr std::array<Word, 3> kWords = {
    {{"_inputs_args", "input"}, {"_inputs_kwargs", "input"}, {"_outputs", "output"}}};

// "root.model.norm" of "LlamaForCausalLM.model.norm"
std::string module_name(std::string_view path, std::string_view model) {
  const std::string_view below = path.substr(std::min(model.size(), path.size()));
  return "root" + (below.starts_with('.') ? std::string(below) : std::string());
}

// When each module was first called, and how often.
struct Calls {
  std::string model;
  std::map<std::string, std::pair<uint64_t, uint32_t>> of_modules;
  // The same of names without numbers: layers that the tree lacks run like those that it has.
  std::map<std::string, uint64_t> of_kinds;
};

std::string without_numbers(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (!std::isdigit(static_cast<unsigned char>(c))) out += c;
  return out;
}

bool take(const simdjson::dom::element& node, size_t depth, Calls& calls) {
  std::string_view path;
  if (depth > kMaxDepth || node["module_path"].get(path) != simdjson::SUCCESS) return false;
  const std::string name = module_name(path, calls.model);
  const uint64_t position = calls.of_modules.size();
  auto [found, is_new] = calls.of_modules.try_emplace(name, position, 0u);
  ++found->second.second;
  calls.of_kinds.try_emplace(without_numbers(name), position);
  simdjson::dom::array children;
  if (node["children"].get(children) != simdjson::SUCCESS) return true;
  for (const simdjson::dom::element child : children)
    if (!take(child, depth + 1, calls)) return false;
  return true;
}

std::string tree_in(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return {};
  for (const Entry& entry : *entries)
    if (!entry.is_folder && entry.name.size() > kTree.size() && entry.name.ends_with(kTree))
      return entry.name;
  return {};
}

Result<Calls> read_tree(const std::string& path, const std::string& name) {
  Calls calls;
  calls.model = name.substr(0, name.size() - kTree.size());
  const std::string file = path + "/" + name;
  const auto text = read_text(file, kMaxTreeBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(*text).get(root) != simdjson::SUCCESS || !take(root, 0, calls))
    return fail(Error(ErrorCode::kCorrupt, file)
                << "is not a tree of calls: it needs objects with module_path and children; was "
                   "the run cut short?");
  return calls;
}

}  // namespace

std::optional<DebuggedTensor> parse_debugged_tensor(std::string_view file, std::string_view model) {
  if (!file.ends_with(kExtension) || !file.starts_with(model)) return std::nullopt;
  file.remove_suffix(kExtension.size());
  // The first of them: arguments may be called "encoder_outputs".
  size_t at = std::string_view::npos;
  const Word* word = nullptr;
  for (const Word& each : kWords)
    if (const size_t found = file.find(each.in_file, model.size()); found < at) {
      at = found;
      word = &each;
    }
  if (word == nullptr) return std::nullopt;
  DebuggedTensor out{module_name(file.substr(0, at), model), std::string(word->ours)};
  out.tensor += file.substr(at + word->in_file.size());
  return out;
}

bool is_transformers_debug(const std::string& path) { return !tree_in(path).empty(); }

Result<Recording> read_transformers_debug(const std::string& path) {
  const std::string tree = tree_in(path);
  if (tree.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "holds no {model}_debug_tree_FULL_TENSORS.json of transformers");
  const auto calls = read_tree(path, tree);
  if (!calls) return fail(calls.error());
  const auto entries = list_folder(path);
  if (!entries) return fail(entries.error());

  Recording recording;
  recording.root = path;
  recording.model = calls->model;
  recording.traits = kTorchTraits;
  recording.traits.words = "a run of transformers' debugger";
  recording.ranks.push_back({path, "0", "0", ""});
  recording.rounds.emplace_back("0");
  NamedRun run;
  bool is_empty = true;
  for (const Entry& entry : *entries) {
    auto parsed = parse_debugged_tensor(entry.name, calls->model);
    if (!parsed || entry.is_folder) continue;
    is_empty = false;
    std::string operation = parsed->module;
    uint64_t position = calls->of_modules.size();
    if (const auto known = calls->of_modules.find(operation); known != calls->of_modules.end()) {
      position = known->second.first;
      // Each call wrote the same files: they hold the last one.
      if (known->second.second > 1) operation += "#" + std::to_string(known->second.second - 1);
    } else if (const auto like = calls->of_kinds.find(without_numbers(operation));
               like != calls->of_kinds.end()) {
      position = like->second;
    }
    run.add_operation(operation, operation == "root" ? calls->model : "", module_around(operation),
                      position);
    run.add(0, 0, "", {operation, std::move(parsed->tensor), entry.name, {}});
  }
  if (is_empty)
    return fail(Error(ErrorCode::kUsage, path)
                << "holds no tensors, only texts of them; record again with use_repr=False");
  run.finish(recording);
  return recording;
}

}  // namespace ait::capture
