#include "capture/torch_dump.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "base/text_file.h"
#include "capture/completeness.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"
#include "capture/module_tree.h"
#include "capture/stored_as.h"
#include "formats/registry.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kExtensions = {".pth", ".pt", ".npy", ".bin"};
constexpr size_t kMaxManifestBytes = size_t{256} << 20;

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
  out.operation = folder;
  out.slot.call = module_and_call(folder).second;
  out.slot.direction = stem.starts_with("input") ? Direction::kInput : Direction::kOutput;
  out.slot.index = index_of(stem);
  return out;
}

// "root.norm" and "output" of "root.norm/output".
std::pair<std::string_view, std::string_view> module_and_tensor(std::string_view name) {
  const size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::pair(std::string_view(), std::string_view())
                                         : std::pair(name.substr(0, slash), name.substr(slash + 1));
}

// The tensors that the table of a whole round tells of, as list_files would list them.
std::string read_round_table(const std::string& path, std::vector<Error>& problems) {
  std::string out;
  if (!path.ends_with(std::string("/") + record::kStatisticsFile)) return out;
  const auto table = formats::open_tensor_file(path);
  if (!table) {
    problems.push_back(table.error());
    return out;
  }
  for (size_t i = 0; i < (*table)->size(); ++i) {
    const std::string name = (*table)->name(i);
    const auto [module, tensor] = module_and_tensor(name);
    if (module.empty() || !is_tensor_name(tensor) || name.find('\0') != std::string::npos ||
        tensor.find('/') != std::string_view::npos)
      continue;
    out += name;
    out += '\0';
  }
  return out;
}

// By each module's folder.
using TensorNames = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

bool has_tensor(const TensorNames& names, std::string_view folder, std::string_view tensor) {
  const auto found = names.find(folder);
  return found != names.end() && found->second.contains(tensor);
}

// What is to be known of a run before its files can be taken for tensors.
struct Statistics {
  TensorNames in_tables;  // of single modules
  // A tensor that was kept whole in any round is not taken from a table in another, where a killed
  // process lost it.
  TensorNames whole;
};

RecordingBuilder::Name tensor_in_table(std::string_view folder, std::string_view stem) {
  RecordingBuilder::Name out = tensor_of(folder, stem);
  out.slot.kept = Kept::kStatistics;
  return out;
}

// `file` is "root.model.norm/output.pth", or "statistics.csv/root.model.norm/output".
std::vector<RecordingBuilder::Name> parse_file(std::string_view file,
                                               const Statistics& statistics) {
  const auto [folder, name] = module_and_tensor(file);
  std::vector<RecordingBuilder::Name> out;
  if (folder == record::kStatisticsFile) {
    const auto [module, stem] = module_and_tensor(name);
    if (has_tensor(statistics.whole, module, stem)) return out;
    out.push_back(tensor_in_table(module, stem));
    out.back().slot.file = folder;
    out.back().slot.member = name;
    return out;
  }
  if (folder.empty() || name.find('/') != std::string_view::npos) return out;
  if (const std::string_view stem = stem_of(name); !stem.empty()) return {tensor_of(folder, stem)};
  const auto kept = statistics.in_tables.find(folder);
  if (name != record::kStatisticsFile || kept == statistics.in_tables.end()) return out;
  for (const std::string& stem : kept->second) {
    if (has_tensor(statistics.whole, folder, stem)) continue;
    out.push_back(tensor_in_table(folder, stem));
    out.back().slot.member = stem;
  }
  return out;
}

// Looks into one table of each kind of folder: other rounds have the same tensors.
Statistics read_statistics(Recording& recording, const RecordingBuilder& builder) {
  Statistics out;
  builder.each([&](size_t rank, size_t round, const std::string& unit, std::string_view files) {
    if (unit == record::kStatisticsFile) return;
    bool has_table = false;
    each_file(files, [&](std::string_view file) {
      has_table |= file == record::kStatisticsFile;
      if (const std::string_view stem = stem_of(file); !stem.empty())
        out.whole[unit].insert(std::string(stem));
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
      if (const std::string name = (*table)->name(i); is_tensor_name(name))
        out.in_tables[unit].insert(name);
  });
  return out;
}

RecordedCalls recorded_calls(const RecordingBuilder& builder) {
  RecordedCalls out;
  const auto add = [&](std::string_view folder) {
    const auto [module, call] = module_and_call(folder);
    out[module].insert(call);
  };
  builder.each([&](size_t, size_t, const std::string& unit, std::string_view files) {
    if (unit != record::kStatisticsFile) return add(unit);
    std::string_view last;  // the tensors of a module come together
    each_file(files, [&](std::string_view file) {
      const std::string_view folder = module_and_tensor(file).first;
      if (folder != last) add(folder);
      last = folder;
    });
  });
  return out;
}

// A round holds modules' folders, which hold inputs and outputs, or a table.
bool is_round(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return false;
  if (has_entry(*entries, record::kStatisticsFile)) return true;
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

// Processes that share a device, or have none, say in their manifest which rank they were; and each
// of the models of a process has a folder and a manifest.
FolderFacts look_inside(Rank& rank) {
  FolderFacts facts;
  const auto text = read_text(rank.path + "/" + record::kManifestFile, kMaxManifestBytes);
  simdjson::dom::parser parser;
  simdjson::dom::element manifest;
  if (!text || parser.parse(*text).get(manifest) != simdjson::SUCCESS) return facts;
  uint64_t number = 0;
  if (manifest["rank"].get(number) == simdjson::SUCCESS) rank.device = std::to_string(number);
  if (std::string_view model; manifest["root"].get(model) == simdjson::SUCCESS) facts.model = model;
  if (manifest["started"].get(facts.started) != simdjson::SUCCESS) facts.started = 0;
  if (manifest["pid"].get(number) == simdjson::SUCCESS) {
    facts.process = std::to_string(number);
    // Numbers of processes come again, in containers soon.
    if (double began = 0; manifest["process_started"].get(began) == simdjson::SUCCESS)
      facts.process += "@" + std::to_string(began);
    if (std::string_view host; manifest["host"].get(host) == simdjson::SUCCESS)
      facts.process += "@" + std::string(host);
  }
  return facts;
}

FolderRules rules() {
  return {{record::kTorchTensorsFolder}, is_rank_name, holds_rounds, is_round_folder, look_inside};
}

// One model, on all ranks.
Result<Recording> read_model(const std::string& root, std::vector<Rank> ranks,
                             const std::string& only_round) {
  Recording recording;
  recording.root = root;
  recording.traits = kTorchTraits;
  recording.ranks = std::move(ranks);

  std::vector<ModuleNode> tree;
  const std::string tree_path = recording.ranks.front().path + "/" + record::kModelTreeFile;
  std::error_code ignored;
  if (!fs::exists(tree_path, ignored)) {
    recording.problems.push_back(Error(ErrorCode::kNotFound, tree_path)
                                 << "is missing: types and order of modules are not known");
  } else {
    auto read = read_module_tree(tree_path);
    if (!read) return fail(read.error());
    tree = std::move(*read);
    recording.model = tree.front().type;
  }
  RecordingBuilder builder;
  list_rounds(recording, builder, only_round, is_number, read_round_table);
  const Statistics statistics = read_statistics(recording, builder);
  const ModuleCalls calls(tree, recorded_calls(builder));
  builder.finish(
      recording, calls.operations(),
      [&](std::string_view file) { return parse_file(file, statistics); },
      [](const std::string& name) {
        Operation operation;
        operation.name = name;
        return operation;
      },
      [&](const std::string& name) { return calls.parent_of(name); },
      [&](const Operation& a, const Operation& b) { return calls.less(a.name, b.name); });
  recording.completeness = judge_torch_dump(recording);
  note_stored_as(recording);
  return recording;
}

}  // namespace

OpKind torch_kind(std::string_view type) { return kind_by_words(kKindWords, type); }

bool is_torch_dump(const std::string& path) {
  const auto found = find_ranks(path, rules());
  return !found || !found->ranks.empty();
}

Result<std::vector<Rank>> find_torch_folders(const std::string& path) {
  auto found = find_ranks(path, rules());
  if (!found) return fail(found.error());
  std::vector<Rank> out = std::move(found->ranks);
  for (std::vector<Rank>& more : found->more_models)
    out.insert(out.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return out;
}

Result<Recording> read_torch_dump(const std::string& path) {
  auto found = find_ranks(path, rules());
  if (!found) return fail(found.error());
  if (found->ranks.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "is not a dump of a torch model: expected "
                   "torch_tensors/{device}_{pid}/model_tree.json and {token}/{module}/output.pth");
  found->more_models.insert(found->more_models.begin(), std::move(found->ranks));
  std::vector<Recording> models;
  for (std::vector<Rank>& ranks : found->more_models) {
    auto model = read_model(found->root, std::move(ranks), found->only_round);
    if (!model && found->more_models.size() == 1) return fail(model.error());
    if (model)
      models.push_back(std::move(*model));
    else
      found->problems.push_back(model.error());
  }
  if (models.empty()) return fail(found->problems.back());
  Recording recording = std::move(models.front());
  recording.more_models.assign(std::make_move_iterator(models.begin() + 1),
                               std::make_move_iterator(models.end()));
  recording.problems.insert(recording.problems.begin(), found->problems.begin(),
                            found->problems.end());
  return recording;
}

}  // namespace ait::capture
