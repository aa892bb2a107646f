#include "opcheck/case.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "base/text_file.h"
#include "capture/atb_dump.h"
#include "golden/golden.h"
#include "opcheck/ids.h"
#include "opcheck/operation_rows.h"
#include "record/dump_names.h"

namespace ait::opcheck {
namespace {

namespace fs = std::filesystem;
using capture::Direction;
using capture::Level;
using capture::Moment;
using capture::Recording;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool wanted(const Search& search, const std::vector<uint64_t>& ids, const std::string& type) {
  const auto covers = [&](const std::vector<uint64_t>& prefix) {
    return prefix.size() <= ids.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  };
  if (!search.ids.empty() && !std::any_of(search.ids.begin(), search.ids.end(), covers))
    return false;
  const std::string name = lower(type);
  return search.names.empty() ||
         std::any_of(search.names.begin(), search.names.end(), [&](const std::string& part) {
           return name.find(lower(part)) != std::string::npos;
         });
}

// Graphs are made of operations, which are checked themselves; an operation is made of kernels.
bool is_graph(const Recording& recording, uint32_t operation) {
  const capture::Operation& self = recording.operations[operation];
  for (uint32_t i = operation + 1; i < self.end; ++i)
    if (recording.operations[i].level == Level::kOperation) return true;
  return false;
}

// What was recorded before an operation wins over what was recorded after it.
void put(TensorPlaces& places, uint32_t index, const TensorPlace& place) {
  if (index >= kMaxTensors) return;
  if (places.size() <= index) places.resize(index + 1);
  auto& found = places[index];
  if (!found || (place.before && !found->before)) found = place;
}

std::string folder_of(const Recording& recording, size_t rank, size_t round, uint32_t operation) {
  return recording.ranks[rank].path + "/" + recording.rounds[round] + "/" +
         recording.operations[operation].name;
}

struct Tensors {
  TensorPlaces inputs;
  TensorPlaces inputs_after;
  TensorPlaces outputs;
};

Tensors tensors_of(const Recording& recording, size_t rank, size_t round, uint32_t operation) {
  Tensors out;
  for (uint32_t slot = recording.first_slot[operation]; slot < recording.first_slot[operation + 1];
       ++slot) {
    if (!recording.has(rank, round, slot)) continue;
    const capture::Slot& each = recording.slots[slot];
    const bool before = each.moment == Moment::kBefore;
    const TensorPlace place{recording.record(rank, round, slot).path, before};
    const bool is_input = each.direction == Direction::kInput;
    if (is_input) put(out.inputs, each.index, place);
    if (!before) put(is_input ? out.inputs_after : out.outputs, each.index, place);
  }
  return out;
}

// Ranks of one operation have their own parameters: "rank" is one of them.
Result<std::string> param_of(const Recording& recording, size_t rank, size_t round,
                             uint32_t operation) {
  const std::string path =
      folder_of(recording, rank, round, operation) + "/" + std::string(record::kParamFile);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return recording.operations[operation].param;
  auto text = read_text(path, kMaxParamBytes);
  // The line end of the file would be one in the table.
  if (text) text->erase(text->find_last_not_of(" \r\n") + 1);
  return text;
}

Case case_of(const Search& search, const Recording& recording, size_t rank, size_t round,
             uint32_t operation) {
  const capture::Operation& found = recording.operations[operation];
  Tensors tensors = tensors_of(recording, rank, round, operation);
  Case out;
  out.ids = found.ids;
  out.id = ids_text(found.ids);
  out.type = found.type;
  out.folder = folder_of(recording, rank, round, operation);
  out.again_folder = recording.ranks[rank].path + "/" + recording.rounds[round];
  out.rank = recording.ranks[rank].device;
  out.rank_folder = fs::path(recording.ranks[rank].path).filename();
  out.name = found.name;
  out.round = recording.rounds[round];
  out.inputs = std::move(tensors.inputs);
  out.inputs_after = std::move(tensors.inputs_after);
  out.outputs = std::move(tensors.outputs);
  auto param = param_of(recording, rank, round, operation);
  if (param)
    out.param = std::move(*param);
  else
    out.problem = param.error().text();
  if (recording.ranks.size() == 1) return out;
  out.again_folder = search.folder;
  for (size_t other = 0; other < recording.ranks.size(); ++other) {
    out.ranks.push_back(tensors_of(recording, other, round, operation).inputs);
    out.rank_params.push_back(param_of(recording, other, round, operation).value_or(""));
    out.rank_folders.push_back(fs::path(recording.ranks[other].path).filename());
  }
  return out;
}

bool has_tensors(const Recording& recording, size_t rank, size_t round, uint32_t operation) {
  for (uint32_t slot = recording.first_slot[operation]; slot < recording.first_slot[operation + 1];
       ++slot)
    if (recording.has(rank, round, slot)) return true;
  return false;
}

template <typename Visit>
void each_operation(const Recording& recording, Visit visit) {
  for (uint32_t operation = 0; operation < recording.operations.size(); ++operation) {
    const capture::Operation& found = recording.operations[operation];
    if (found.level != Level::kOperation || is_graph(recording, operation)) continue;
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
      for (size_t round = 0; round < recording.rounds.size(); ++round)
        if (has_tensors(recording, rank, round, operation)) visit(operation, rank, round);
  }
}

void sort_cases(std::vector<Case>& cases) {
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    if (a.ids != b.ids) return a.ids < b.ids;
    if (a.rank != b.rank) return capture::natural_less(a.rank, b.rank);
    return capture::natural_less(a.round, b.round);
  });
}

// The files that a row of the table names, where the dump has no such operation. Their paths are
// those of the machine that wrote it, or begin in the folder of the dump, which holds the table in
// operation_io_tensors/{PID}.
TensorPlaces places_of(const std::vector<std::string>& files, const fs::path& dump) {
  TensorPlaces places;
  for (const std::string& file : files) {
    std::error_code ignored;
    auto& place = places.emplace_back();
    for (const fs::path& path : {fs::path(file), dump / file})
      if (!file.empty() && fs::is_regular_file(path, ignored)) place = TensorPlace{path, false};
  }
  return places;
}

Case case_of_row(const OperationRow& row, const fs::path& dump) {
  Case out;
  out.rank_folder = "0_0";
  out.round = "0";
  for (const uint64_t id : row.ids)
    out.name += (out.name.empty() ? "" : "_Graph/") + std::to_string(id);
  out.name += "_" + row.type;
  out.inputs = places_of(row.input_files, dump);
  out.inputs_after = out.inputs;
  out.outputs = places_of(row.output_files, dump);
  for (const auto& place : out.inputs)
    if (place && out.folder.empty()) out.folder = fs::path(place->path).parent_path();
  if (out.folder.empty()) out.problem = "tensor dir of " + ids_text(row.ids) + " not found";
  return out;
}

// The table names the operations, the folder holds their tensors.
Result<Cases> cases_of_table(const Search& search, const Recording& recording) {
  auto rows = read_operation_rows(search.table);
  if (!rows) return fail(rows.error());
  Cases out;
  std::map<std::vector<uint64_t>, std::vector<Case>> by_ids;
  each_operation(recording, [&](uint32_t operation, size_t rank, size_t round) {
    by_ids[recording.operations[operation].ids].push_back(
        case_of(search, recording, rank, round, operation));
  });
  const fs::path dump = fs::path(search.table).parent_path() / ".." / "..";
  for (const OperationRow& row : *rows) {
    if (!wanted(search, row.ids, row.type)) continue;
    const auto found = by_ids.find(row.ids);
    const std::vector<Case> cases =
        found != by_ids.end() ? found->second : std::vector<Case>{case_of_row(row, dump)};
    for (Case each : cases) {
      each.ids = row.ids;
      each.id = ids_text(row.ids);
      each.type = row.type;
      each.again_folder = search.folder;
      each.input_shapes = row.input_shapes;
      each.output_shapes = row.output_shapes;
      if (!row.param.empty()) {
        each.param = row.param;
        if (found != by_ids.end()) each.problem.clear();  // that of op_param.json
      }
      if (!row.problem.empty()) each.problem = row.problem;
      out.cases.push_back(std::move(each));
    }
  }
  return out;
}

bool holds_outputs(const Case& each) {
  const auto is_there = [](const auto& place) { return place.has_value(); };
  return !each.problem.empty() || std::any_of(each.outputs.begin(), each.outputs.end(), is_there) ||
         std::any_of(each.inputs_after.begin(), each.inputs_after.end(), is_there);
}

}  // namespace

Result<Cases> find_cases(const Search& search) {
  std::error_code ignored;
  if (!fs::is_directory(search.folder, ignored))
    return fail(Error(ErrorCode::kNotFound, search.folder)
                << "no such folder; give -i the folder of a dump of `ait llm dump`");
  auto recording = capture::read_atb_dump(search.folder);
  if (!recording) return fail(recording.error());
  Cases out;
  if (search.table.empty()) {
    each_operation(*recording, [&](uint32_t operation, size_t rank, size_t round) {
      const capture::Operation& found = recording->operations[operation];
      if (wanted(search, found.ids, found.type))
        out.cases.push_back(case_of(search, *recording, rank, round, operation));
    });
  } else {
    auto cases = cases_of_table(search, *recording);
    if (!cases) return fail(cases.error());
    out = std::move(*cases);
  }
  out.problems.insert(out.problems.end(), recording->problems.begin(), recording->problems.end());
  if (search.needs_outputs && !out.cases.empty() &&
      std::none_of(out.cases.begin(), out.cases.end(), holds_outputs))
    return fail(Error(ErrorCode::kUsage, search.folder)
                << "Only the rerun mode allows checking dumped data before executing operators: "
                   "give -rerun, or record with -time 1 or -time 2");
  sort_cases(out.cases);
  return out;
}

}  // namespace ait::opcheck
