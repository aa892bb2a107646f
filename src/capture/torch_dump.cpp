#include "capture/torch_dump.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/text_file.h"
#include "capture/completeness.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"
#include "formats/registry.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kExtensions = {".pth", ".pt", ".npy", ".bin"};
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxTreeBytes = size_t{256} << 20;
// simdjson's own limit is 1024; modules do not nest like this.
constexpr size_t kMaxTreeDepth = 512;

// In this order: the first part that a type contains decides.
constexpr auto kKindWords = std::to_array<KindWord>({
    {"norm", OpKind::kNorm},
    {"rotary", OpKind::kOther},  // a table of angles; what turns queries is no module
    {"embedding", OpKind::kEmbedding},
    {"linear", OpKind::kLinear},
    {"conv1d", OpKind::kLinear},
    {"silu", OpKind::kActivation},
    {"gelu", OpKind::kActivation},
    {"relu", OpKind::kActivation},
    {"swish", OpKind::kActivation},
    {"activation", OpKind::kActivation},
    {"coreattention", OpKind::kAttention},
    {"dropout", OpKind::kMove},
    {"identity", OpKind::kMove},
});

struct Node {
  Operation operation;
  uint64_t order = kNever;
  size_t place = 0;  // in the file
};

struct Tree {
  std::vector<Node> nodes;
  std::map<std::string, size_t> by_name;
};

// Returns when the node, or the first thing in it, was called.
uint64_t add_node(Tree& tree, const simdjson::dom::element& element, size_t depth) {
  std::string_view name;
  std::string_view type;
  uint64_t order = kNever;
  if (depth > kMaxTreeDepth || element["name"].get(name) != simdjson::SUCCESS) return kNever;
  if (element["type"].get(type) != simdjson::SUCCESS) type = {};
  if (element["order"].get(order) != simdjson::SUCCESS) order = kNever;
  const size_t at = tree.nodes.size();
  std::string_view alias;
  if (element["alias_of"].get(alias) == simdjson::SUCCESS) return kNever;  // stands elsewhere
  Node node;
  node.operation.name = name;
  node.operation.type = type;
  node.operation.kind = torch_kind(type);
  node.place = at;
  const bool is_new = tree.by_name.try_emplace(node.operation.name, at).second;
  if (is_new) tree.nodes.push_back(std::move(node));
  simdjson::dom::array children;
  if (element["children"].get(children) == simdjson::SUCCESS)
    for (const simdjson::dom::element child : children)
      order = std::min(order, add_node(tree, child, depth + 1));
  if (is_new) tree.nodes[at].order = order;
  return order;
}

Result<Tree> read_tree(const std::string& path) {
  const auto text = read_text(path, kMaxTreeBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  Tree tree;
  if (parser.parse(*text).get(root) == simdjson::SUCCESS) add_node(tree, root, 0);
  if (tree.nodes.empty())
    return fail(
        Error(ErrorCode::kCorrupt, path)
        << "is no tree of modules: it needs an object with name, type and children; was the "
           "run cut short?");
  return tree;
}

// "root.a.b#2" as {"root.a.b", 2}
std::pair<std::string, uint32_t> module_and_call(std::string_view folder) {
  const size_t hash = folder.rfind('#');
  uint32_t call = 0;
  if (hash != std::string_view::npos) {
    const char* end = folder.data() + folder.size();
    const auto [stop, bad] = std::from_chars(folder.data() + hash + 1, end, call);
    if (bad == std::errc() && stop == end) return {std::string(folder.substr(0, hash)), call};
  }
  return {std::string(folder), 0};
}

// The first number after the word: 1 of "output_1_0", 0 of "output" and of "input_hidden_states".
uint32_t index_of(std::string_view stem) {
  const size_t underscore = stem.find('_');
  uint32_t index = 0;
  if (underscore != std::string_view::npos)
    std::from_chars(stem.data() + underscore + 1, stem.data() + stem.size(), index);
  return index;
}

bool is_tensor_name(std::string_view stem) {
  return stem.starts_with("input") || stem.starts_with("output");
}

// "output_0" of "output_0.pth"; empty where the file is no tensor.
std::string_view stem_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos ||
      std::find(kExtensions.begin(), kExtensions.end(), name.substr(dot)) == kExtensions.end())
    return {};
  const std::string_view stem = name.substr(0, dot);
  return is_tensor_name(stem) ? stem : std::string_view();
}

RecordingBuilder::Name tensor_of(std::string_view folder, std::string_view stem) {
  RecordingBuilder::Name out;
  std::tie(out.operation, out.slot.call) = module_and_call(folder);
  out.slot.direction = stem.starts_with("input") ? Direction::kInput : Direction::kOutput;
  out.slot.index = index_of(stem);
  return out;
}

// Of each module's folder: the tensors of which only statistics were kept.
using StatisticsOnly = std::map<std::string, std::set<std::string>, std::less<>>;

// `file` is "root.model.norm/output.pth".
std::vector<RecordingBuilder::Name> parse_file(std::string_view file,
                                               const StatisticsOnly& statistics) {
  const size_t slash = file.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view folder = file.substr(0, slash);
  const std::string_view name = file.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) return {};
  if (const std::string_view stem = stem_of(name); !stem.empty()) return {tensor_of(folder, stem)};
  std::vector<RecordingBuilder::Name> out;
  const auto kept = statistics.find(folder);
  if (name != record::kStatisticsFile || kept == statistics.end()) return out;
  for (const std::string& stem : kept->second) {
    out.push_back(tensor_of(folder, stem));
    out.back().slot.member = stem;
    out.back().slot.kept = Kept::kStatistics;
  }
  return out;
}

// Looks into one table of each kind of folder: other rounds have the same tensors. A tensor that
// was kept whole in any round is not taken from a table in another, where a killed process lost it.
StatisticsOnly read_statistics(Recording& recording, const RecordingBuilder& builder) {
  StatisticsOnly out;
  StatisticsOnly whole;
  builder.each([&](size_t rank, size_t round, const std::string& unit, std::string_view files) {
    bool has_table = false;
    each_file(files, [&](std::string_view file) {
      has_table |= file == record::kStatisticsFile;
      if (const std::string_view stem = stem_of(file); !stem.empty())
        whole[unit].insert(std::string(stem));
    });
    if (!has_table) return;
    const auto table =
        formats::open_tensor_file(recording.ranks[rank].path + "/" + recording.rounds[round] + "/" +
                                  unit + "/" + record::kStatisticsFile);
    if (!table) {
      recording.problems.push_back(table.error());
      return;
    }
    for (size_t i = 0; i < (*table)->size(); ++i)
      if (const std::string name = (*table)->name(i); is_tensor_name(name)) out[unit].insert(name);
  });
  for (const auto& [unit, names] : whole)
    if (const auto found = out.find(unit); found != out.end())
      for (const std::string& name : names) found->second.erase(name);
  return out;
}

std::string parent_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

// A round holds modules' folders, which hold inputs and outputs.
bool is_round(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return false;
  size_t looked_at = 0;
  constexpr size_t kLookAt = 8;  // a module may have no files
  for (const Entry& entry : *entries) {
    if (!entry.is_folder || looked_at++ == kLookAt) continue;
    const auto files = list_folder(path + "/" + entry.name);
    if (files && std::any_of(files->begin(), files->end(), [&](const Entry& file) {
          return !file.is_folder &&
                 (!stem_of(file.name).empty() || file.name == record::kStatisticsFile);
        }))
      return true;
  }
  return false;
}

bool holds_rounds(const std::string& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path + "/" + record::kModelTreeFile, ignored)) return true;
  const auto entries = list_folder(path);
  if (!entries) return false;
  for (const Entry& entry : *entries)
    if (entry.is_folder && is_number(entry.name)) return is_round(path + "/" + entry.name);
  return false;
}

bool is_round_folder(const std::string& path) {
  return is_number(fs::path(path).filename().native()) && is_round(path);
}

// "cpu_411", "0_411", "npu0_411", "411_npu0", "411_0"
bool is_rank_name(const std::string& name) {
  const size_t underscore = name.find('_');
  if (underscore == std::string::npos || underscore == 0 || underscore + 1 == name.size())
    return false;
  return is_number(name.substr(0, underscore)) ||
         is_number(name.substr(underscore + 1, name.find('_', underscore + 1) - underscore - 1));
}

// Processes that share a device, or have none, say in their manifest which rank they were.
void look_inside(Rank& rank) {
  const auto text = read_text(rank.path + "/" + record::kManifestFile, kMaxTreeBytes);
  simdjson::dom::parser parser;
  uint64_t number = 0;
  if (text && parser.parse(*text)["rank"].get(number) == simdjson::SUCCESS)
    rank.device = std::to_string(number);
}

FolderRules rules() {
  return {{record::kTorchTensorsFolder}, is_rank_name, holds_rounds, is_round_folder, look_inside};
}

}  // namespace

OpKind torch_kind(std::string_view type) { return kind_by_words(kKindWords, type); }

bool is_torch_dump(const std::string& path) {
  const auto found = find_ranks(path, rules());
  return !found || !found->ranks.empty();
}

Result<Recording> read_torch_dump(const std::string& path) {
  auto found = find_ranks(path, rules());
  if (!found) return fail(found.error());
  if (found->ranks.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "is no dump of a torch model: expected "
                   "torch_tensors/{device}_{pid}/model_tree.json and {token}/{module}/output.pth");
  Recording recording;
  recording.root = found->root;
  recording.traits = kTorchTraits;
  recording.ranks = std::move(found->ranks);
  recording.problems = std::move(found->problems);

  Tree tree;
  const std::string tree_path = recording.ranks.front().path + "/" + record::kModelTreeFile;
  std::error_code ignored;
  if (!fs::exists(tree_path, ignored)) {
    recording.problems.push_back(Error(ErrorCode::kNotFound, tree_path)
                                 << "is missing: types and order of modules are not known");
  } else {
    auto read = read_tree(tree_path);
    if (!read) return fail(read.error());
    tree = std::move(*read);
  }
  RecordingBuilder builder;
  list_rounds(recording, builder, found->only_round, is_number);
  std::vector<Operation> operations;
  operations.reserve(tree.nodes.size());
  for (Node& node : tree.nodes) operations.push_back(std::move(node.operation));
  const auto order_of = [&](const Operation& operation) {
    const auto known = tree.by_name.find(operation.name);
    if (known == tree.by_name.end()) return std::pair(kNever, std::numeric_limits<size_t>::max());
    return std::pair(tree.nodes[known->second].order, tree.nodes[known->second].place);
  };
  const StatisticsOnly statistics = read_statistics(recording, builder);
  builder.finish(
      recording, std::move(operations),
      [&](std::string_view file) { return parse_file(file, statistics); },
      [](const std::string& name) {
        Operation operation;
        operation.name = name;
        return operation;
      },
      // A tree need not begin with "root": its first node has no parent there.
      [&](const std::string& name) {
        std::string parent = parent_of(name);
        return tree.nodes.empty() || tree.by_name.contains(parent) ? parent : std::string();
      },
      [&](const Operation& a, const Operation& b) {
        const auto x = order_of(a);
        const auto y = order_of(b);
        return x != y ? x < y : natural_less(a.name, b.name);
      });
  recording.completeness = judge_torch_dump(recording);
  return recording;
}

}  // namespace ait::capture
