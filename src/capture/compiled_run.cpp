#include "capture/compiled_run.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "capture/dump_folders.h"

namespace ait::capture {
namespace {

constexpr std::string_view kRankFolder = "worldsize";
constexpr std::string_view kRankWord = "rank";
constexpr std::string_view kGraphWord = "graph_";

}  // namespace

std::optional<std::string> rank_of_folder(std::string_view name) {
  if (!name.starts_with(kRankFolder)) return std::nullopt;
  const size_t word = name.rfind(kRankWord);
  if (word == std::string_view::npos) return std::nullopt;
  const std::string_view rank = name.substr(word + kRankWord.size());
  if (!is_number(rank)) return std::nullopt;
  return std::string(rank);
}

std::optional<uint64_t> graph_number(std::string_view name) {
  const size_t word = name.find(kGraphWord);
  if (word == std::string_view::npos) return std::nullopt;
  const char* first = name.data() + word + kGraphWord.size();
  uint64_t number = 0;
  const auto [stopped, bad] = std::from_chars(first, name.data() + name.size(), number);
  if (bad != std::errc() || stopped == first) return std::nullopt;
  return number;
}

uint64_t time_of(std::string_view digits) {
  constexpr size_t kKept = 18;
  if (digits.size() > kKept) digits.remove_prefix(digits.size() - kKept);
  uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

uint32_t CompiledRunBuilder::add_graph(std::string name, std::optional<uint64_t> number) {
  Graph& graph = graphs_.emplace_back();
  graph.compiled.name = std::move(name);
  graph.compiled.number = number;
  return static_cast<uint32_t>(graphs_.size() - 1);
}

// New ones go behind the one that was written before them.
void CompiledRunBuilder::add_operations(Graph& graph, const std::vector<GraphFile>& files) {
  std::vector<const GraphFile*> by_time;
  by_time.reserve(files.size());
  for (const GraphFile& file : files)
    if (!file.tensors.empty()) by_time.push_back(&file);
  std::sort(by_time.begin(), by_time.end(), [](const GraphFile* a, const GraphFile* b) {
    return a->time != b->time ? a->time < b->time : natural_less(a->operation, b->operation);
  });
  auto after = graph.order.cbegin();
  for (const GraphFile* file : by_time) {
    const auto number = static_cast<uint32_t>(graph.operations.size());
    const auto [known, is_new] = graph.known.try_emplace(file->operation, number);
    if (is_new) {
      Operation& added = graph.operations.emplace_back();
      added.name = file->operation;
      added.type = file->type;
      graph.places.push_back(graph.order.insert(after, number));
    }
    after = std::next(graph.places[known->second]);
  }
}

uint32_t CompiledRunBuilder::slot_of(Graph& graph, const GraphFile& file,
                                     const GraphFile::Tensor& tensor) {
  std::string stable = file.operation + "/" + tensor.name;
  const auto [slot, is_new_slot] =
      graph.slot_of.try_emplace(stable, static_cast<uint32_t>(graph.slots.size()));
  if (is_new_slot) {
    Slot& added = graph.slots.emplace_back();
    added.operation = graph.known.at(file.operation);
    added.direction = tensor.direction;
    added.index = tensor.index;
    added.kept = file.kept;
    if (file.has_members) added.member = tensor.name;
    added.file = std::move(stable) + ".npy";  // whose stem is the tensor's name
  }
  // Where only some rounds were converted there are data.
  if (file.kept == Kept::kBytes) graph.slots[slot->second].kept = Kept::kBytes;
  return slot->second;
}

void CompiledRunBuilder::add(size_t rank, uint64_t token, uint32_t graph, std::string folder,
                             const std::vector<GraphFile>& files, std::vector<Error>& problems) {
  if (files.empty()) return;
  Folder out{rank, token, graph, std::numeric_limits<uint64_t>::max(), {}, {}};
  out.names.folder = std::move(folder);
  add_operations(graphs_[graph], files);
  // By slot: which file has it.
  std::map<uint32_t, const GraphFile*> taken;
  for (const GraphFile& file : files) {
    out.time = std::min(out.time, file.time);
    has_statistics_ |= file.kept == Kept::kStatistics;
    for (const GraphFile::Tensor& tensor : file.tensors) {
      const uint32_t slot = slot_of(graphs_[graph], file, tensor);
      const auto [place, is_new] = taken.try_emplace(slot, &file);
      if (is_new) continue;
      const bool heavier = file.weight > place->second->weight;
      const GraphFile& left_out = heavier ? *place->second : file;
      if (&tensor == &file.tensors.front())
        problems.push_back(Error(ErrorCode::kUsage, out.names.folder + "/" + left_out.name)
                           << "is not used: " << printable((heavier ? file : *place->second).name)
                           << " is of the same operation");
      if (heavier) place->second = &file;
    }
  }
  std::map<const GraphFile*, uint32_t> places;
  for (const auto& [slot, file] : taken) {
    const auto [place, is_new] =
        places.try_emplace(file, static_cast<uint32_t>(out.names.texts.size()));
    if (is_new) (out.names.texts += file->name) += '\0';
    out.slots.push_back(slot);
    out.names.name_of.push_back(place->second);
  }
  folders_.push_back(std::move(out));
}

// Puts the operations and slots of a graph in order and hands them over. `graph.slots` keeps, of
// each slot, the place it went to as its index.
void CompiledRunBuilder::arrange_graph(Graph& graph, uint32_t unit, Recording& recording) {
  graph.compiled.first = static_cast<uint32_t>(recording.operations.size());
  std::vector<uint32_t> place(graph.operations.size());
  for (const uint32_t old : graph.order) {
    place[old] = static_cast<uint32_t>(recording.operations.size());
    recording.operations.push_back(std::move(graph.operations[old]));
    Operation& operation = recording.operations.back();
    operation.end = place[old] + 1;
    if (graphs_.size() > 1) operation.name = graph.compiled.name + "/" + operation.name;
  }
  graph.compiled.end = static_cast<uint32_t>(recording.operations.size());

  std::vector<uint32_t> slots(graph.slots.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
    const Slot& x = graph.slots[a];
    const Slot& y = graph.slots[b];
    const auto key = [&](const Slot& slot) {
      return std::tuple(place[slot.operation], slot.direction == Direction::kOutput, slot.index);
    };
    return key(x) != key(y) ? key(x) < key(y) : natural_less(x.file, y.file);
  });
  std::vector<uint32_t> slot_place(slots.size());
  for (const uint32_t old : slots) {
    slot_place[old] = static_cast<uint32_t>(recording.slots.size());
    Slot slot = std::move(graph.slots[old]);
    slot.operation = place[slot.operation];
    slot.unit = unit;
    recording.slots.push_back(std::move(slot));
  }
  for (Folder& folder : folders_) {
    if (folder.graph != unit) continue;
    std::vector<std::pair<uint32_t, uint32_t>> sorted;
    sorted.reserve(folder.slots.size());
    for (size_t i = 0; i < folder.slots.size(); ++i)
      sorted.emplace_back(slot_place[folder.slots[i]], folder.names.name_of[i]);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      std::tie(folder.slots[i], folder.names.name_of[i]) = sorted[i];
  }
  graph.slots.clear();
  graph.slot_of.clear();
}

void CompiledRunBuilder::finish(Recording& recording) {
  if (has_statistics_)
    recording.problems.push_back(
        Error(ErrorCode::kUsage, recording.root)
        << "was converted to statistics: only these are compared, and rows without a difference "
           "may be of different data");
  for (uint32_t unit = 0; unit < graphs_.size(); ++unit) {
    arrange_graph(graphs_[unit], unit, recording);
    recording.units.push_back(graphs_[unit].compiled.name);
    recording.graphs.push_back(graphs_[unit].compiled);
  }
  recording.first_slot.assign(recording.operations.size() + 1, 0);
  for (const Slot& slot : recording.slots) ++recording.first_slot[slot.operation + 1];
  std::partial_sum(recording.first_slot.begin(), recording.first_slot.end(),
                   recording.first_slot.begin());

  std::set<uint64_t> tokens;
  for (const Folder& folder : folders_) tokens.insert(folder.token);
  std::map<uint64_t, uint32_t> round_of;
  for (const uint64_t token : tokens) {
    round_of.emplace(token, static_cast<uint32_t>(recording.rounds.size()));
    recording.rounds.push_back(std::to_string(token));
  }
  // Ranks run the same; the first that has an execution says when it was.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<size_t, uint64_t>> began;
  for (Folder& folder : folders_) {
    const uint32_t round = round_of[folder.token];
    auto [place, is_new] =
        began.try_emplace({folder.graph, round}, std::pair(folder.rank, folder.time));
    if (!is_new) place->second = std::min(place->second, std::pair(folder.rank, folder.time));
    recording.kept[folder.rank * recording.rounds.size() + round].push_back(
        {folder.graph, static_cast<uint32_t>(recording.contents.size())});
    recording.contents.push_back(std::move(folder.slots));
    recording.file_names.push_back(std::move(folder.names));
  }
  for (auto& [key, list] : recording.kept) std::sort(list.begin(), list.end());
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> order;
  order.reserve(began.size());
  for (const auto& [execution, first] : began)
    order.emplace_back(first.second, execution.first, execution.second);
  std::sort(order.begin(), order.end());
  for (const auto& [time, graph, round] : order) recording.executions.push_back({graph, round});
}

}  // namespace ait::capture
