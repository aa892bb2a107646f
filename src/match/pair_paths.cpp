#include "match/pair_paths.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "capture/atb_dump.h"
#include "match/by_graph.h"
#include "match/by_metadata.h"
#include "match/by_model.h"
#include "match/by_name.h"
#include "match/graph_calls.h"
#include "match/op_mapping.h"
#include "match/tokens.h"

namespace ait::match {
namespace {

namespace fs = std::filesystem;
using capture::Capture;
using capture::Layout;
using capture::ManualMapping;
using capture::Recording;
using capture::Role;
using capture::Run;
using capture::RunKind;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// What options say, once they are understood.
struct Understood {
  const Inputs& inputs;
  AutomaticOptions automatic;
};

void take_problems(std::vector<Error>& from, PairList& to) {
  for (Error& problem : from) to.problems.push_back(std::move(problem));
}

// Whether a path is the folder of a run's only round.
bool is_round(const Recording& recording, const std::string& path) {
  std::error_code ignored;
  const fs::path normal = fs::absolute(path, ignored).lexically_normal();
  return recording.rounds.size() == 1 &&
         (normal.has_filename() ? normal : normal.parent_path()).filename() == recording.rounds[0];
}

// Whether an operation has this type, and this tensor where one is named.
bool occurs(const Recording& recording, const std::string& type, const std::string& tensor) {
  for (uint32_t i = 0; i < recording.operations.size(); ++i) {
    if (recording.operations[i].type.find(type) == std::string::npos) continue;
    if (tensor.empty()) return true;
    for (uint32_t slot = recording.first_slot[i]; slot < recording.first_slot[i + 1]; ++slot)
      if (is_tensor_named(recording.slots[slot].tensor(), tensor)) return true;
  }
  return false;
}

// What of a mapping file has no effect on these runs: a problem, or an error where nothing of it
// has one.
Result<void> check_mapping(const Recording& golden, const Recording& actual,
                           const Understood& options, std::vector<Error>& problems) {
  const std::string& file = options.inputs.mapping_file;
  if (file.empty()) return {};
  if (golden.traits.types == actual.traits.types) {
    problems.push_back(Error(ErrorCode::kUsage, file)
                       << "--op-mapping-file has no effect between two dumps of one kind: it says "
                          "which types of torch correspond to types of the acceleration library");
    return {};
  }
  const bool golden_is_modules = golden.traits.types == capture::Traits::Types::kModules;
  const Recording& modules = golden_is_modules ? golden : actual;
  const Recording& library = golden_is_modules ? actual : golden;
  const auto named = [](const std::string& type, const std::string& tensor) {
    return printable(tensor.empty() ? type : type + "_" + tensor);
  };
  std::vector<std::string> nowhere;
  const auto miss = [&](std::string what) {
    if (std::find(nowhere.begin(), nowhere.end(), what) == nowhere.end())
      nowhere.push_back(std::move(what));
  };
  bool any = false;
  for (const TypeMapping& line : options.automatic.mappings) {
    const bool has_library = occurs(library, line.library, line.library_tensor);
    const bool has_module = occurs(modules, line.module, line.module_tensor);
    if (!has_library)
      miss("no operation of the acceleration library is a " +
           named(line.library, line.library_tensor));
    if (!has_module) miss("no module is a " + named(line.module, line.module_tensor));
    any |= has_library && has_module;
  }
  if (nowhere.empty()) return {};
  constexpr size_t kNamed = 3;
  std::string text;
  for (size_t i = 0; i < nowhere.size() && i < kNamed; ++i)
    text += (i > 0 ? ", " : "") + nowhere[i];
  if (nowhere.size() > kNamed) text += ", …";
  Error error(ErrorCode::kUsage, file);
  error << "--op-mapping-file: " << (any ? "" : "none of its lines has an effect: ") << text;
  if (!any) return fail(error << "; correct the types, or leave the option out");
  problems.push_back(std::move(error));
  return {};
}

Result<PairList> pair_model(Recording golden, Recording actual, const Understood& options) {
  PairList list;
  list.what = std::string(golden.traits.words) + " with " + std::string(actual.traits.words);
  take_problems(golden.problems, list);
  take_problems(actual.problems, list);
  if (auto checked = check_mapping(golden, actual, options, list.problems); !checked)
    return fail(checked.error());
  list.golden_completeness = golden.completeness;
  list.actual_completeness = actual.completeness;
  const bool by_graph = can_pair_by_graph(golden, actual);
  if (!by_graph) {
    const size_t golden_rounds = golden.rounds.size();
    count_calls(golden, actual.rounds.size());
    count_calls(actual, golden_rounds);
  }
  AutomaticOptions automatic = options.automatic;
  automatic.rounds_are_named =
      is_round(golden, options.inputs.golden) && is_round(actual, options.inputs.actual);
  auto found = (by_graph ? pair_by_graph : pair_automatically)(
      std::make_shared<const Recording>(std::move(golden)),
      std::make_shared<const Recording>(std::move(actual)), automatic);
  if (!found) return fail(found.error());
  list.pairs = std::move(found->pairs);
  list.automatic = std::move(*found);
  return list;
}

std::vector<Recording> models_of(Run run) {
  auto first = std::get<Recording>(std::move(run));
  std::vector<Recording> out = std::move(first.more_models);
  first.more_models.clear();
  out.insert(out.begin(), std::move(first));
  return out;
}

void add(const capture::Completeness& from, capture::Completeness& to) {
  to.doubts.insert(to.doubts.end(), from.doubts.begin(), from.doubts.end());
  if (!from.complete || !to.complete)
    to.complete.reset();
  else
    to.complete = *to.complete && *from.complete;
}

// Says of the models that are in no pair that they are not compared.
void name_the_rest(const std::vector<Recording>& models, const std::set<size_t>& paired,
                   const char* other_path, PairList& list) {
  for (size_t i = 0; i < models.size(); ++i)
    if (!paired.contains(i))
      list.problems.push_back(Error(ErrorCode::kUsage, models[i].ranks.front().path)
                              << "is not compared: it is of " << printable(models[i].model)
                              << ", and no model of " << other_path
                              << " corresponds to it; name a rank's folder on both sides to "
                                 "compare two models");
}

Result<PairList> pair_operations(Run golden_run, Run actual_run, const Understood& options) {
  std::vector<Recording> golden = models_of(std::move(golden_run));
  std::vector<Recording> actual = models_of(std::move(actual_run));
  if (golden.size() == 1 && actual.size() == 1)
    return pair_model(std::move(golden[0]), std::move(actual[0]), options);
  PairList list;
  list.golden_completeness.complete = list.actual_completeness.complete = true;
  std::set<size_t> golden_paired;
  std::set<size_t> actual_paired;
  std::vector<AutomaticPairs> found;
  std::vector<std::string> names;
  std::map<std::string, size_t> seen;
  const auto pairs = pair_models(golden, actual);
  for (const auto& [g, a] : pairs) {
    golden_paired.insert(g);
    actual_paired.insert(a);
  }
  name_the_rest(golden, golden_paired, "my-path", list);
  name_the_rest(actual, actual_paired, "golden-path", list);
  for (const auto& [g, a] : pairs) {
    const std::string& name = actual[a].model.empty() ? golden[g].model : actual[a].model;
    const size_t before = seen[name]++;
    names.push_back(before > 0 ? name + "#" + std::to_string(before) : name);
    auto each = pair_model(std::move(golden[g]), std::move(actual[a]), options);
    if (!each) return fail(each.error());
    each->automatic->pairs = std::move(each->pairs);
    found.push_back(std::move(*each->automatic));
    list.what = each->what;
    take_problems(each->problems, list);
    add(each->golden_completeness, list.golden_completeness);
    add(each->actual_completeness, list.actual_completeness);
  }
  if (pairs.size() == 1) {
    list.automatic = std::move(found[0]);
  } else {
    list.what += ", " + std::to_string(pairs.size()) + " models";
    list.automatic = put_together(std::move(found), std::move(names));
  }
  list.pairs = std::move(list.automatic->pairs);
  return list;
}

Result<PairList> pair_records(Run golden_run, Run actual_run, std::string what,
                              bool dequantise = false) {
  auto& golden = std::get<Capture>(golden_run);
  auto& actual = std::get<Capture>(actual_run);
  PairList list;
  std::vector<Pair> pairs = pair_by_name(golden, actual);
  if (dequantise && add_scales(pairs) == 0)
    list.problems.push_back(Error(ErrorCode::kUsage, actual.root)
                            << "--weight has no effect: no weight has a weight_scale beside it");
  list.pairs = std::move(pairs);
  list.what = std::move(what);
  take_problems(golden.problems, list);
  take_problems(actual.problems, list);
  return list;
}

Result<PairList> pair_weights(Run golden, Run actual, const Understood& options) {
  return pair_records(std::move(golden), std::move(actual), "two checkpoints, by tensor name",
                      options.inputs.dequantise);
}

Result<PairList> pair_files(Run golden, Run actual, const Understood&) {
  return pair_records(std::move(golden), std::move(actual), "two folders, by file name");
}

// How runs of a kind are paired, where both sides are of it.
struct Way {
  RunKind kind;
  std::string_view what;
  bool takes_files;  // a path may be a file
  Result<PairList> (*pair)(Run golden, Run actual, const Understood& options);
};
constexpr std::array kWays = {
    Way{RunKind::kOperations, "two dumps", false, pair_operations},
    Way{RunKind::kWeights, "two checkpoints", true, pair_weights},
    Way{RunKind::kFiles, "two folders of files", false, pair_files},
};

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_below(const std::string& path, const std::string& folder) {
  const std::string inside = fs::path(path).lexically_relative(folder).native();
  return !inside.empty() && !inside.starts_with("..");
}

// Why --my-path has no effect on a mapping; nothing where it has one, or says what the mapping says.
std::optional<Error> unused_my_path(const ManualMapping& before, const ManualMapping& after,
                                    const std::string& actual) {
  if (actual.empty()) return std::nullopt;
  Error error(ErrorCode::kUsage, actual);
  if (!exists(actual))
    return error << "no such file or folder, so that --my-path has no effect; the mapping names my "
                    "files";
  std::error_code ignored;
  const std::string root = fs::weakly_canonical(actual, ignored).native();
  for (size_t i = 0; i < before.pairs.size(); ++i) {
    if (before.pairs[i].actual_path != after.pairs[i].actual_path) return std::nullopt;
    const std::string mine = fs::weakly_canonical(before.pairs[i].actual_path, ignored).native();
    if (mine == root || is_below(mine, root)) return std::nullopt;
  }
  const bool all_there =
      std::all_of(before.pairs.begin(), before.pairs.end(),
                  [](const capture::MappedPair& pair) { return exists(pair.actual_path); });
  return error << "--my-path has no effect: "
               << (all_there ? "all my files lie where the mapping says"
                             : "it holds none of the files that the mapping names");
}

Result<PairList> pair_mapping(const Layout& layout, const Inputs& inputs) {
  auto run = layout.read(inputs.golden);
  if (!run) return fail(run.error());
  auto& mapping = std::get<ManualMapping>(*run);
  const ManualMapping as_written = mapping;
  find_moved_files(mapping, inputs.actual);
  if (auto unused = unused_my_path(as_written, mapping, inputs.actual))
    mapping.problems.push_back(std::move(*unused));
  PairList list;
  list.kind = RunKind::kMapping;
  list.pairs = pair_by_metadata(mapping);
  list.what = "manual mapping of " + mapping.metadata_path;
  list.problems = std::move(mapping.problems);
  return list;
}

// Of a folder that no layout of dumps recognises.
std::optional<Error> without_tensors(const std::string& path) {
  const auto held = capture::held_without_tensors(path);
  if (!held) return std::nullopt;
  return Error(ErrorCode::kUsage, path) << "is a dump without tensors: it holds " << *held
                                        << "; record it again with --type tensor";
}

Error only_one_dump(const std::string& other) {
  return Error(ErrorCode::kUsage, other)
         << "holds no dump of torch or of the acceleration library, but the other path does; "
            "give two dumps, or two folders of tensor files";
}

Error folder_and_file(const std::string& folder, const std::string& file, bool has_names) {
  Error error(ErrorCode::kUsage, folder);
  error << "is a folder but " << printable(file);
  if (has_names)
    return error << " holds tensors by their names; give two such files, or in place of the folder "
                    "a checkpoint or what a run was recorded in";
  return error << " is a file of one tensor; give two files, two folders, or two checkpoints";
}

// Options that only dumps have a use for.
Result<void> refuse_options_of_dumps(const Inputs& inputs, std::string_view what) {
  const auto refused = [&](std::string_view option) {
    return fail(Error(ErrorCode::kUsage)
                << option << " has no effect on " << what
                << "; it is for two dumps, of torch or of the acceleration library");
  };
  if (!inputs.mapping_file.empty()) return refused("--op-mapping-file");
  if (!inputs.token_map.empty()) return refused("--token-map");
  if (inputs.level != CompareLevel::kAll) return refused("--cmp-level");
  if (!inputs.why.empty()) return refused("--why");
  return {};
}

Result<void> refuse_options_of_weights(const Inputs& inputs, std::string_view what) {
  if (!inputs.dequantise) return {};
  return fail(Error(ErrorCode::kUsage)
              << "--weight has no effect on " << what << "; it is for two checkpoints");
}

// Options that pick one tensor of a file, or say what its bytes are.
Result<void> refuse_options_of_files(const Inputs& inputs, bool is_mapping) {
  const auto refused = [](const std::string& path, const std::string& side, std::string_view what) {
    return fail(Error(ErrorCode::kUsage, path)
                << "is " << what << ", and --" << side << "-name, --" << side << "-dtype and --"
                << side << "-shape are for a file of tensors");
  };
  const std::string_view what = is_mapping ? "a manual mapping" : "a folder";
  if (inputs.golden_is_tensor && (is_mapping || is_folder(inputs.golden)))
    return refused(inputs.golden, "golden", what);
  if (inputs.actual_is_tensor && (is_mapping || is_folder(inputs.actual)))
    return refused(is_mapping ? inputs.golden : inputs.actual, "my", what);
  return {};
}

Result<Understood> understand(const Inputs& inputs) {
  Understood out{inputs, {}};
  if (!inputs.mapping_file.empty()) {
    auto mappings = read_op_mapping(inputs.mapping_file);
    if (!mappings) return fail(mappings.error());
    out.automatic.mappings = std::move(*mappings);
  }
  auto token_map = parse_token_map(inputs.token_map);
  if (!token_map) return fail(token_map.error());
  out.automatic.token_map = std::move(*token_map);
  out.automatic.level = inputs.level;
  out.automatic.why = inputs.why;
  return out;
}

// Two paths that exist: the first way for which both are of the right kind.
Result<PairList> pair_alike(const Understood& options, std::span<const Layout> layouts) {
  const Inputs& inputs = options.inputs;
  const bool golden_folder = is_folder(inputs.golden);
  const bool actual_folder = is_folder(inputs.actual);
  const auto layout_of = [&](const std::string& path, bool is_tensor, const Way& way, Role role) {
    // Two files that hold a run each are compared name by name.
    const bool takes_files =
        way.takes_files || (way.kind == RunKind::kOperations && golden_folder != actual_folder);
    const bool fits = is_folder(path) || (takes_files && !is_tensor);
    return fits ? find_layout(path, way.kind, role, layouts) : nullptr;
  };
  for (const Way& way : kWays) {
    const Layout* golden = layout_of(inputs.golden, inputs.golden_is_tensor, way, Role::kGolden);
    const Layout* actual = layout_of(inputs.actual, inputs.actual_is_tensor, way, Role::kActual);
    if (golden != nullptr && actual != nullptr) {
      if (way.kind != RunKind::kOperations)
        if (auto fits = refuse_options_of_dumps(inputs, way.what); !fits) return fail(fits.error());
      if (way.kind != RunKind::kWeights)
        if (auto fits = refuse_options_of_weights(inputs, way.what); !fits)
          return fail(fits.error());
      auto golden_run = golden->read(inputs.golden);
      if (!golden_run) return fail(golden_run.error());
      auto actual_run = actual->read(inputs.actual);
      if (!actual_run) return fail(actual_run.error());
      auto list = way.pair(std::move(*golden_run), std::move(*actual_run), options);
      if (list) list->kind = way.kind;
      return list;
    }
    if (way.kind != RunKind::kOperations || !golden_folder || !actual_folder) continue;
    for (const auto& [layout, path] :
         {std::pair(golden, inputs.golden), std::pair(actual, inputs.actual)})
      if (layout == nullptr)
        if (auto empty = without_tensors(path)) return fail(std::move(*empty));
    if (golden != nullptr || actual != nullptr)
      return fail(only_one_dump(golden != nullptr ? inputs.actual : inputs.golden));
  }
  if (!golden_folder && !actual_folder) return PairList{};  // a single pair
  const std::string& folder = golden_folder ? inputs.golden : inputs.actual;
  const std::string& file = golden_folder ? inputs.actual : inputs.golden;
  return fail(folder_and_file(
      folder, file, find_layout(file, RunKind::kWeights, Role::kActual, layouts) != nullptr));
}

}  // namespace

Result<PairList> pair_paths(const Inputs& inputs, std::span<const Layout> layouts) {
  // Wrong options are wrong whatever is compared.
  const auto options = understand(inputs);
  if (!options) return fail(options.error());
  const Layout* mapping = find_layout(inputs.golden, RunKind::kMapping, Role::kGolden, layouts);
  if (auto fits = refuse_options_of_files(inputs, mapping != nullptr); !fits)
    return fail(fits.error());
  const auto not_empty = [](Result<PairList> list) -> Result<PairList> {
    if (list && list->kind && list->pairs.count == 0 && list->problems.empty())
      return fail(Error(ErrorCode::kUsage) << "nothing to compare: " << list->what);
    return list;
  };
  if (mapping != nullptr) {
    if (auto fits = refuse_options_of_dumps(inputs, "a manual mapping"); !fits)
      return fail(fits.error());
    if (auto fits = refuse_options_of_weights(inputs, "a manual mapping"); !fits)
      return fail(fits.error());
    return not_empty(pair_mapping(*mapping, inputs));
  }
  if (inputs.actual.empty())
    return fail(Error(ErrorCode::kUsage) << "--my-path is required unless the golden path holds "
                                            "golden_tensor/metadata.json; see `ait llm compare "
                                            "--help`");
  for (const std::string& path : {inputs.golden, inputs.actual}) {
    std::error_code ignored;
    if (!fs::exists(path, ignored))
      return fail(Error(ErrorCode::kNotFound, path) << "no such file or folder; check the path");
  }
  return not_empty(pair_alike(*options, layouts));
}

}  // namespace ait::match
