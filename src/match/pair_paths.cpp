#include "match/pair_paths.h"

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "match/by_metadata.h"
#include "match/by_name.h"
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

Result<PairList> pair_operations(Run golden_run, Run actual_run, const Understood& options) {
  auto golden = std::get<Recording>(std::move(golden_run));
  auto actual = std::get<Recording>(std::move(actual_run));
  PairList list;
  list.what = std::string(golden.traits.words) + " with " + std::string(actual.traits.words);
  take_problems(golden.problems, list);
  take_problems(actual.problems, list);
  list.golden_completeness = golden.completeness;
  list.actual_completeness = actual.completeness;
  auto found =
      pair_automatically(std::make_shared<const Recording>(std::move(golden)),
                         std::make_shared<const Recording>(std::move(actual)), options.automatic);
  if (!found) return fail(found.error());
  list.pairs = std::move(found->pairs);
  list.automatic = std::move(*found);
  return list;
}

Result<PairList> pair_records(Run golden_run, Run actual_run, std::string what) {
  auto& golden = std::get<Capture>(golden_run);
  auto& actual = std::get<Capture>(actual_run);
  PairList list;
  list.pairs = pair_by_name(golden, actual);
  list.what = std::move(what);
  take_problems(golden.problems, list);
  take_problems(actual.problems, list);
  return list;
}

Result<PairList> pair_weights(Run golden, Run actual, const Understood&) {
  return pair_records(std::move(golden), std::move(actual), "two checkpoints, by tensor name");
}

Result<PairList> pair_files(Run golden, Run actual, const Understood&) {
  return pair_records(std::move(golden), std::move(actual), "two folders, by file name");
}

// How runs of a kind are paired, where both sides are of it.
struct Way {
  RunKind kind;
  bool takes_files;  // a path may be a file
  Result<PairList> (*pair)(Run golden, Run actual, const Understood& options);
};
constexpr std::array kWays = {
    Way{RunKind::kOperations, false, pair_operations},
    Way{RunKind::kWeights, true, pair_weights},
    Way{RunKind::kFiles, false, pair_files},
};

Result<PairList> pair_mapping(const Layout& layout, const Inputs& inputs) {
  auto run = layout.read(inputs.golden);
  if (!run) return fail(run.error());
  auto& mapping = std::get<ManualMapping>(*run);
  find_moved_files(mapping, inputs.actual);
  PairList list;
  list.kind = RunKind::kMapping;
  list.pairs = pair_by_metadata(mapping);
  list.what = "manual mapping of " + mapping.metadata_path;
  list.problems = std::move(mapping.problems);
  return list;
}

Error only_one_dump(const std::string& other) {
  return Error(ErrorCode::kUsage, other)
         << "holds no dump of torch or of the acceleration library, but the other path does; "
            "give two dumps, or two folders of tensor files";
}

Error folder_and_tensor(const std::string& folder, const std::string& file) {
  return Error(ErrorCode::kUsage, folder)
         << "is a folder but " << printable(file)
         << " is a file of one tensor; give two files, two folders, or two checkpoints";
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
  return out;
}

// Two paths that exist: the first way for which both are of the right kind.
Result<PairList> pair_alike(const Understood& options, std::span<const Layout> layouts) {
  const Inputs& inputs = options.inputs;
  const bool golden_folder = is_folder(inputs.golden);
  const bool actual_folder = is_folder(inputs.actual);
  const auto layout_of = [&](const std::string& path, bool is_tensor, const Way& way, Role role) {
    const bool fits = is_folder(path) || (way.takes_files && !is_tensor);
    return fits ? find_layout(path, way.kind, role, layouts) : nullptr;
  };
  for (const Way& way : kWays) {
    const Layout* golden = layout_of(inputs.golden, inputs.golden_is_tensor, way, Role::kGolden);
    const Layout* actual = layout_of(inputs.actual, inputs.actual_is_tensor, way, Role::kActual);
    if (golden != nullptr && actual != nullptr) {
      auto golden_run = golden->read(inputs.golden);
      if (!golden_run) return fail(golden_run.error());
      auto actual_run = actual->read(inputs.actual);
      if (!actual_run) return fail(actual_run.error());
      auto list = way.pair(std::move(*golden_run), std::move(*actual_run), options);
      if (list) list->kind = way.kind;
      return list;
    }
    if (way.kind == RunKind::kOperations && golden_folder && actual_folder &&
        (golden != nullptr || actual != nullptr))
      return fail(only_one_dump(golden != nullptr ? inputs.actual : inputs.golden));
  }
  if (!golden_folder && !actual_folder) return PairList{};  // a single pair
  return fail(golden_folder ? folder_and_tensor(inputs.golden, inputs.actual)
                            : folder_and_tensor(inputs.actual, inputs.golden));
}

}  // namespace

Result<PairList> pair_paths(const Inputs& inputs, std::span<const Layout> layouts) {
  // Wrong options are wrong whatever is compared.
  const auto options = understand(inputs);
  if (!options) return fail(options.error());
  const auto not_empty = [](Result<PairList> list) -> Result<PairList> {
    if (list && list->kind && list->pairs.count == 0 && list->problems.empty())
      return fail(Error(ErrorCode::kUsage) << "nothing to compare: " << list->what);
    return list;
  };
  if (const Layout* mapping = find_layout(inputs.golden, RunKind::kMapping, Role::kGolden, layouts))
    return not_empty(pair_mapping(*mapping, inputs));
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
