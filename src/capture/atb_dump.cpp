#include "capture/atb_dump.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>

#include "base/text_file.h"
#include "capture/completeness.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"
#include "formats/registry.h"
#include "graph/atb_json.h"
#include "graph/atb_param.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxParamBytes = 65536;
// What the newest tool writes in a round's folder, of all its tensors.
constexpr std::string_view kStatisticsTable = "statistic.csv";

// In this order: the first part that a name contains decides.
constexpr auto kKindWords = std::to_array<KindWord>({
    {"layernorm", OpKind::kNorm},
    {"rmsnorm", OpKind::kNorm},
    {"gatherpre", OpKind::kNorm},
    {"allreduce", OpKind::kMove},
    {"allgather", OpKind::kMove},
    {"reducescatter", OpKind::kMove},
    {"linear", OpKind::kLinear},
    {"matmul", OpKind::kLinear},
    {"reshapeandcache", OpKind::kCache},
    {"kvcache", OpKind::kCache},
    {"attention", OpKind::kAttention},
    {"ropeop", OpKind::kRotary},  // "rope" alone is in GatherOperation, too
    {"rotary", OpKind::kRotary},
    {"activation", OpKind::kActivation},
    {"wordembedding", OpKind::kEmbedding},
    {"gather", OpKind::kMove},  // rows of a table, or the last ones of sequences
    {"split", OpKind::kMove},
    {"slice", OpKind::kMove},
    {"concat", OpKind::kMove},
    {"transpose", OpKind::kMove},
    {"transdata", OpKind::kMove},
    {"quant", OpKind::kQuantise},
});

OpKind elewise_kind(std::string_view json) {
  using graph::ElewiseType;
  graph::AtbParam param(json);
  if (!param.has("elewiseType")) return OpKind::kUnknown;
  switch (param.choice("elewiseType", ElewiseType::kUndefined)) {
    case ElewiseType::kAdd:
      return OpKind::kAdd;
    case ElewiseType::kMul:
      return OpKind::kMultiply;
    case ElewiseType::kCast:
      return OpKind::kMove;
    case ElewiseType::kQuant:
    case ElewiseType::kQuantPerChannel:
    case ElewiseType::kDequantPerChannel:
    case ElewiseType::kDynamicQuant:
      return OpKind::kQuantise;
    default:
      return OpKind::kOther;
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::optional<Moment> moment_of(std::string_view folder) {
  const std::string name = lower(folder);
  if (name == "before") return Moment::kBefore;
  if (name == "after") return Moment::kAfter;
  return std::nullopt;
}

// intensor0.bin, outTensor12_output.bin
std::optional<std::pair<Direction, uint32_t>> tensor_of(std::string_view file) {
  std::string name = lower(file);
  if (!name.ends_with(".bin")) return std::nullopt;
  name.resize(name.size() - 4);
  const Direction direction = name.starts_with("in") ? Direction::kInput : Direction::kOutput;
  const std::string_view prefix = direction == Direction::kInput ? "intensor" : "outtensor";
  if (!name.starts_with(prefix)) return std::nullopt;
  uint32_t index = 0;
  const char* first = name.data() + prefix.size();
  const char* last = name.data() + name.size();
  const auto [end, bad] = std::from_chars(first, last, index);
  if (bad != std::errc() || (end != last && *end != '_')) return std::nullopt;
  return std::pair(direction, index);
}

std::vector<RecordingBuilder::Name> parse_file(std::string_view file) {
  const size_t name_at = file.rfind('/');
  if (name_at == std::string_view::npos || name_at == 0) return {};
  const size_t moment_at = file.rfind('/', name_at - 1);
  if (moment_at == std::string_view::npos) return {};
  const auto moment = moment_of(file.substr(moment_at + 1, name_at - moment_at - 1));
  const auto tensor = tensor_of(file.substr(name_at + 1));
  if (!moment || !tensor) return {};
  RecordingBuilder::Name out;
  out.operation = file.substr(0, moment_at);
  out.slot.moment = *moment;
  out.slot.direction = tensor->first;
  out.slot.index = tensor->second;
  return {std::move(out)};
}

// {2, 0} of "2_Layer/0_Linear"; nothing where a part has no number.
std::vector<uint64_t> ids_of(std::string_view path) {
  std::vector<uint64_t> ids;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    uint64_t id = 0;
    const auto [end, bad] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (bad != std::errc() || end == part.data() + part.size() || *end != '_') return {};
    ids.push_back(id);
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return ids;
}

std::string type_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return std::string(part.substr(std::min(part.find('_') + 1, part.size())));
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

Operation describe(const std::string& path) {
  Operation operation;
  operation.name = path;
  operation.type = type_of(path);
  operation.ids = ids_of(path);
  return operation;
}

bool runs_before(const Operation& a, const Operation& b) {
  return a.ids != b.ids ? a.ids < b.ids : natural_less(a.name, b.name);
}

bool holds_operations(const std::string& path) {
  const auto entries = list_folder(path);
  return entries && std::any_of(entries->begin(), entries->end(), [&](const Entry& entry) {
           return entry.is_folder ? is_numbered(entry.name) && entry.name.size() < 256
                                  : entry.name == kStatisticsTable;
         });
}

// A round's folder has operations, which have before, after, or operations.
bool looks_like_round(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return false;
  if (has_entry(*entries, std::string(kStatisticsTable))) return true;
  for (const Entry& entry : *entries) {
    if (!entry.is_folder || !is_numbered(entry.name)) continue;
    const auto inside = list_folder(path + "/" + entry.name);
    return inside && std::any_of(inside->begin(), inside->end(), [](const Entry& each) {
             return each.is_folder && (moment_of(each.name) || is_numbered(each.name));
           });
  }
  return false;
}

bool is_rank_name(const std::string& name) {
  if (!lone_process(name).empty()) return true;
  std::string_view rest = name;
  if (rest.starts_with('-')) rest.remove_prefix(1);  // device -1: ATB could not tell
  const size_t underscore = rest.find('_');
  return underscore != std::string_view::npos && is_number(rest.substr(0, underscore)) &&
         rest.size() > underscore + 1 &&
         rest.substr(underscore + 1).find_first_not_of("-_0123456789") == std::string_view::npos;
}

bool holds_rounds(const std::string& path) {
  const auto entries = list_folder(path);
  if (!entries) return false;
  for (const Entry& entry : *entries)
    if (entry.is_folder && is_number(entry.name)) return holds_operations(path + "/" + entry.name);
  return false;
}

// A round folder of `{device}_{pid}` must not be taken for one of operations: its children are
// numbers, not "3_Linear".
bool is_round(const std::string& path) {
  return is_number(fs::path(path).filename().native()) && looks_like_round(path);
}

// Of a process with one device, which rank it was, as the manifests of its dump say it: machines count their devices
// for themselves.
class ManifestRanks {
 public:
  FolderFacts look_inside(Rank& rank) {
    FolderFacts facts;
    const std::string tensors = fs::path(rank.path).parent_path().native();
    const auto [known, is_new] = dumps_.try_emplace(tensors);
    if (is_new) known->second = read(tensors);
    const auto process = known->second.find(process_of(rank.name));
    if (process == known->second.end() || process->second.folders > 1) return facts;
    rank.device = process->second.rank;
    facts.process = process->first;
    return facts;
  }

 private:
  struct Process {
    std::string rank;
    size_t folders = 0;
  };
  using Processes = std::map<std::string, Process>;

  static std::string process_of(const std::string& folder) {
    return folder.substr(folder.find('_') + 1);
  }

  static Processes read(const std::string& tensors) {
    Processes out;
    for (const auto& [process, rank] : ranks_in_manifests(fs::path(tensors).parent_path().native()))
      out[process].rank = rank;
    if (out.empty()) return out;
    if (const auto entries = list_folder(tensors))
      for (const Entry& entry : *entries)
        if (const auto found = out.find(process_of(entry.name)); found != out.end())
          ++found->second.folders;
    return out;
  }

  std::map<std::string, Processes> dumps_;  // by the folder of their tensors
};

FolderRules rules() {
  auto ranks = std::make_shared<ManifestRanks>();
  return {
      {record::kTensorsFolder, "data"}, is_rank_name, holds_rounds, is_round, [ranks](Rank& rank) {
        return ranks->look_inside(rank);
      }};
}

// The folder of one of these processes, or whichever there is where theirs are missing.
std::string process_folder(const std::vector<Entry>& processes, const std::vector<Rank>& ranks) {
  std::string any;
  for (const Rank& rank : ranks) {
    std::string by_pid;
    for (const Entry& entry : processes) {
      if (!entry.is_folder) continue;
      // 0_4711_1 is of the process 4711_1, and of 4711 only where that has none.
      if (entry.name == rank.name || rank.name.substr(rank.name.find('_') + 1) == entry.name)
        return entry.name;
      if (entry.name == rank.pid) by_pid = entry.name;
      if (any.empty()) any = entry.name;
    }
    if (!by_pid.empty()) return by_pid;
  }
  return any;
}

std::vector<std::string> topology_files(const std::string& root, std::string_view kind,
                                        const std::vector<Rank>& ranks) {
  std::vector<std::string> files;
  for (const std::string_view parent : {"/", "/info/"}) {
    const std::string base = root + std::string(parent) + std::string(kind);
    const auto processes = list_folder(base);
    if (!processes) continue;
    const std::string folder = base + "/" + process_folder(*processes, ranks);
    if (const auto entries = list_folder(folder))
      for (const Entry& entry : *entries)
        if (!entry.is_folder && entry.name.ends_with(".json"))
          files.push_back(folder + "/" + entry.name);
    if (!files.empty()) break;
  }
  return files;
}

using ByIds = std::map<std::vector<uint64_t>, const graph::Node*>;

void collect(const graph::Node& node, const std::vector<uint64_t>& ids, ByIds& out) {
  out.try_emplace(ids, &node);
  for (size_t i = 0; i < node.nodes.size(); ++i) {
    std::vector<uint64_t> below = ids;
    below.push_back(i);
    collect(node.nodes[i], below, out);
  }
}

// What topologies say of operations: types, parameters, which tensor goes where.
struct Topologies {
  std::vector<graph::Topology> all;
  ByIds nodes;
};

void read_topologies(Recording& recording, Topologies& out) {
  struct Model {
    std::string path;
    size_t index;
  };
  std::vector<Model> models;
  for (const std::string_view kind : {record::kModelFolder, record::kLayerFolder}) {
    for (const std::string& path : topology_files(recording.root, kind, recording.ranks)) {
      auto topology = graph::read_topology(path);
      if (!topology) {
        recording.problems.push_back(topology.error());
        continue;
      }
      if (topology->is_model) models.push_back({path, out.all.size()});
      out.all.push_back(std::move(*topology));
    }
  }
  // Models first: their tensors have the same names in all layers.
  for (const Model& model : models) {
    std::vector<uint64_t> tops;
    for (const graph::Node& node : out.all[model.index].root.nodes) {
      const auto ids = graph::ids_of(node);
      if (ids.size() != 1) continue;
      tops.push_back(ids[0]);
      collect(node, ids, out.nodes);
    }
    recording.models.push_back(model.path);
    recording.model_tops.push_back(std::move(tops));
  }
  for (const graph::Topology& topology : out.all) {
    if (topology.is_model) continue;
    const auto ids = graph::ids_of(topology.root);
    if (ids.size() == 1) collect(topology.root, ids, out.nodes);
  }
  std::vector<size_t> order(recording.models.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return recording.model_tops[a] < recording.model_tops[b]; });
  std::vector<std::string> paths;
  std::vector<std::vector<uint64_t>> tops;
  for (const size_t i : order) {
    paths.push_back(recording.models[i]);
    tops.push_back(recording.model_tops[i]);
  }
  recording.models = std::move(paths);
  recording.model_tops = std::move(tops);
}

// What a parameter file says; nothing where it cannot be read, which is a problem.
std::string read_param(const std::string& path, std::vector<Error>& problems) {
  auto text = read_text(path, kMaxParamBytes);
  if (!text) {
    problems.push_back(text.error());
    return {};
  }
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return std::move(*text);
}

// Operations with parameters have kernels below them, graphs have operations. Plugins and hidden
// graphs have parameters and operations, which then have parameters themselves.
void find_kernels(Recording& recording, const Topologies& topologies) {
  for (Operation& operation : recording.operations) {
    if (operation.parent == kNoOperation) continue;
    const Operation& parent = recording.operations[operation.parent];
    if (topologies.nodes.contains(operation.ids)) continue;
    const bool named = operation.type.ends_with("Kernel") || operation.type.ends_with("Tactic");
    if (named || (operation.param.empty() && !parent.param.empty() &&
                  operation.end == &operation - recording.operations.data() + 1))
      operation.level = Level::kKernel;
  }
}

// What a file keeps of its tensor; nothing where it cannot be read or the tensor is empty, which is
// kept whole in any run.
std::optional<Kept> kept_in(const std::string& path) {
  const auto file = formats::open_tensor_file(path);
  if (!file || (*file)->size() != 1) return std::nullopt;
  const auto found = (*file)->describe(0);
  if (!found || count_elements(found->shape) == 0) return std::nullopt;
  if (found->has_data) return Kept::kBytes;
  return found->statistics ? Kept::kStatistics : Kept::kDescription;
}

// A run keeps the same of all its tensors: the first that can be read tells.
void find_what_was_kept(Recording& recording) {
  size_t tries = 100;  // a dump whose files are all damaged is not read through for this
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    for (size_t round = 0; round < recording.rounds.size(); ++round)
      for (uint32_t slot = 0; slot < recording.slots.size(); ++slot) {
        if (!recording.has(rank, round, slot)) continue;
        const auto kept = kept_in(recording.record(rank, round, slot).path);
        if (!kept && --tries > 0) continue;
        if (!kept) return;
        for (Slot& each : recording.slots) each.kept = *kept;
        return;
      }
}

// The tensors of tables of statistics, where a dump has nothing else; nothing where it has.
std::optional<RecordingBuilder> builder_of_tables(const RecordingBuilder& files,
                                                  Recording& recording) {
  bool has_tensors = false;
  files.each([&](size_t, size_t, const std::string& unit, std::string_view below) {
    each_file(below, [&](std::string_view file) {
      has_tensors |= !parse_file(unit + "/" + std::string(file)).empty();
    });
  });
  if (has_tensors) return std::nullopt;
  RecordingBuilder out;
  bool is_used = false;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    for (size_t round = 0; round < recording.rounds.size(); ++round) {
      const std::string path = recording.ranks[rank].path + "/" + recording.rounds[round] + "/" +
                               std::string(kStatisticsTable);
      std::error_code ignored;
      if (!fs::is_regular_file(path, ignored)) continue;
      const auto table = formats::open_tensor_file(path);
      if (!table) {
        recording.problems.push_back(table.error());
        continue;
      }
      std::map<std::string, std::string> units;  // "13_Layer" and what lies in it
      for (size_t i = 0; i < (*table)->size(); ++i) {
        const std::string name = (*table)->name(i);
        const size_t slash = name.find('/');
        if (slash == std::string::npos) continue;
        (units[name.substr(0, slash)] += name.substr(slash + 1) + ".bin") += '\0';
      }
      for (auto& [unit, text] : units) out.add(rank, round, unit, std::move(text));
      is_used |= !units.empty();
    }
  return is_used ? std::optional(std::move(out)) : std::nullopt;
}

// Each slot was added as the file that it would have.
void take_from_tables(Recording& recording) {
  for (Slot& slot : recording.slots) {
    slot.member = slot.file.substr(0, slot.file.rfind('.'));
    slot.file = kStatisticsTable;
    slot.kept = Kept::kStatistics;
  }
}

}  // namespace

OpKind atb_kind(std::string_view type, std::string_view param) {
  const OpKind kind = kind_by_words(kKindWords, type);
  return kind == OpKind::kUnknown ? elewise_kind(param) : kind;
}

bool is_atb_dump(const std::string& path) {
  const auto found = find_ranks(path, rules());
  return !found || !found->ranks.empty();
}

std::optional<std::string> held_without_tensors(const std::string& path) {
  static constexpr std::array<std::string_view, 6> kParts = {
      record::kModelFolder,        record::kLayerFolder,        record::kOperationTablesFolder,
      record::kKernelTablesFolder, record::kCpuProfilingFolder, record::kTilingFolder};
  const auto held = [](const std::string& dump) -> std::optional<std::string> {
    const auto entries = list_folder(dump);
    if (!entries) return std::nullopt;
    std::string out;
    bool is_known = entries->empty();
    for (const Entry& entry : *entries) {
      const bool is_part = std::find(kParts.begin(), kParts.end(), entry.name) != kParts.end();
      is_known |= is_part || entry.name == record::kManifestFile;
      if (is_part) out += (out.empty() ? "" : ", ") + entry.name;
    }
    if (!is_known) return std::nullopt;
    return out.empty() ? "nothing" : out;
  };
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  const fs::path& folder = whole.has_filename() ? whole : whole.parent_path();
  if (is_dump_name(folder.filename().native())) return held(folder.native());
  if (const auto entries = list_folder(path))
    for (const Entry& entry : *entries)
      if (entry.is_folder && is_dump_name(entry.name)) return held(path + "/" + entry.name);
  return std::nullopt;
}

Result<Recording> read_atb_dump(const std::string& path) {
  auto found = find_ranks(path, rules());
  if (!found) return fail(found.error());
  if (found->ranks.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "is not a dump of the acceleration library: expected "
                   "tensors/{device}_{pid}/{round}/{id}_{name}/after/outtensor0.bin in it");
  Recording recording;
  recording.root = found->root;
  recording.traits = kAtbTraits;
  recording.ranks = std::move(found->ranks);
  recording.problems = std::move(found->problems);
  RecordingBuilder builder;
  list_rounds(recording, builder, found->only_round, is_number);

  // Where the first parameter file of each operation lies.
  Topologies topologies;
  read_topologies(recording, topologies);
  std::map<std::string, std::string> param_files;
  builder.each([&](size_t rank, size_t round, const std::string& unit, std::string_view files) {
    each_file(files, [&](std::string_view file) {
      if (!file.ends_with(record::kParamFile)) return;
      const std::string below = unit + "/" + std::string(file);
      param_files.try_emplace(parent_of(below), recording.ranks[rank].path + "/" +
                                                    recording.rounds[round] + "/" + below);
    });
  });
  auto tables = builder_of_tables(builder, recording);
  (tables ? *tables : builder)
      .finish(
          recording, {}, parse_file,
          [&](const std::string& name) {
            Operation operation = describe(name);
            const auto node = topologies.nodes.find(operation.ids);
            if (node != topologies.nodes.end()) {
              if (!node->second->type.empty()) operation.type = node->second->type;
              if (node->second->param != "\"\"") operation.param = node->second->param;
              operation.inputs = node->second->inputs;
              operation.outputs = node->second->outputs;
            }
            const auto param = param_files.find(name);
            if (param != param_files.end() &&
                (operation.param.empty() || operation.param == "null"))
              operation.param = read_param(param->second, recording.problems);
            operation.kind = atb_kind(operation.type, operation.param);
            return operation;
          },
          parent_of, runs_before);
  find_kernels(recording, topologies);
  if (tables)
    take_from_tables(recording);
  else
    find_what_was_kept(recording);
  recording.completeness = judge_library_dump(recording);
  if (recording.slots.empty())
    recording.problems.push_back(Error(ErrorCode::kNotFound, recording.root)
                                 << "holds no tensors; was it recorded with --type tensor?");
  return recording;
}

}  // namespace ait::capture
