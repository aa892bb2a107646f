#include "capture/recording.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "capture/converted.h"
#include "capture/listing.h"

namespace ait::capture {

std::string Slot::tensor() const {
  if (!member.empty()) return member.substr(member.rfind('/') + 1);
  std::string name = file.substr(file.rfind('/') + 1);
  name.resize(std::min(name.rfind('.'), name.size()));
  return name;
}

namespace {

// Which content has the unit of a slot in this round.
std::optional<uint32_t> content_of(const Recording& recording, size_t rank, size_t round,
                                   uint32_t slot) {
  const auto found = recording.kept.find(rank * recording.rounds.size() + round);
  if (found == recording.kept.end()) return std::nullopt;
  const Recording::UnitContent wanted{recording.slots[slot].unit, 0};
  const auto at = std::lower_bound(found->second.begin(), found->second.end(), wanted);
  if (at == found->second.end() || at->unit != wanted.unit) return std::nullopt;
  return at->content;
}

// Where the names of files differ from round to round: sets path and member of a tensor that is
// there.
void name_file(const Recording& recording, size_t rank, size_t round, uint32_t slot,
               TensorRecord& out) {
  const auto index = content_of(recording, rank, round, slot);
  if (!index) return;
  const std::vector<uint32_t>& content = recording.contents[*index];
  const auto found = std::lower_bound(content.begin(), content.end(), slot);
  if (found == content.end() || *found != slot) return;
  const auto place = static_cast<size_t>(found - content.begin());
  const Recording::FileNames& names = recording.file_names[*index];
  const auto text = [&](uint32_t at) { return names.texts.c_str() + at; };
  // "20240125/0/graph_1/1/0/Add.Add_2.44.6.1706596912161941", below the rank's folder
  out.path = recording.ranks[rank].path + "/" + (names.folder.empty() ? "" : names.folder + "/") +
             text(names.name_of[place]);
  // Some rounds may have been converted, and others not.
  out.kept = stem_of_statistics(out.path) ? Kept::kStatistics : Kept::kBytes;
  if (names.member_of.empty()) return;
  out.member = text(names.member_of[place]);
  if (!out.member.empty()) out.kept = recording.slots[slot].kept;
}

}  // namespace

bool Recording::has(size_t rank, size_t round, uint32_t slot) const {
  const auto index = content_of(*this, rank, round, slot);
  if (!index) return false;
  return std::binary_search(contents[*index].begin(), contents[*index].end(), slot);
}

bool Recording::has_any(size_t rank, size_t round, uint32_t operation) const {
  for (uint32_t slot = first_slot[operation]; slot < first_slot[operations[operation].end]; ++slot)
    if (has(rank, round, slot)) return true;
  return false;
}

TensorRecord Recording::record(size_t rank, size_t round, uint32_t slot) const {
  const Slot& from = slots[slot];
  const Operation& operation = operations[from.operation];
  TensorRecord out;
  out.path.reserve(ranks[rank].path.size() + rounds[round].size() + from.file.size() + 2);
  (out.path = ranks[rank].path) += '/';
  if (file_names.empty() && !rounds[round].empty()) (out.path += rounds[round]) += '/';
  out.path += from.file;
  out.rank = ranks[rank].device;
  out.round = rounds[round];
  out.operation = operation.name;
  out.type = operation.type;
  out.level = operation.level;
  out.moment = from.moment;
  out.direction = from.direction;
  out.index = from.index;
  out.call = from.call;
  out.member = from.member;
  out.kept = from.kept;
  if (!file_names.empty()) name_file(*this, rank, round, slot, out);
  return out;
}

void RecordingBuilder::add(size_t rank, size_t round, const std::string& unit, std::string files) {
  const auto unit_index =
      units_.try_emplace(unit, static_cast<uint32_t>(units_.size())).first->second;
  const auto content =
      contents_.try_emplace({unit_index, std::move(files)}, static_cast<uint32_t>(contents_.size()))
          .first->second;
  listed_.push_back(
      {static_cast<uint32_t>(rank), static_cast<uint32_t>(round), unit_index, content});
}

namespace {

using Children = std::vector<std::vector<uint32_t>>;

// Pre-order, without recursion: names may nest as deep as their authors like.
std::vector<uint32_t> pre_order(const std::vector<uint32_t>& tops, const Children& children) {
  std::vector<uint32_t> order;
  std::vector<uint32_t> waiting(tops.rbegin(), tops.rend());
  while (!waiting.empty()) {
    const uint32_t at = waiting.back();
    waiting.pop_back();
    order.push_back(at);
    waiting.insert(waiting.end(), children[at].rbegin(), children[at].rend());
  }
  return order;
}

// Sorts operations so that parents stand before their children and siblings by `less`, and sets
// `parent` and `end`. Returns where each went.
std::vector<uint32_t> arrange(
    std::vector<Operation>& operations, const std::unordered_map<std::string, uint32_t>& known,
    const std::function<std::string(const std::string& name)>& parent_of,
    const std::function<bool(const Operation& a, const Operation& b)>& less) {
  Children children(operations.size());
  std::vector<uint32_t> tops;
  std::vector<uint32_t> parents(operations.size(), kNoOperation);
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const auto found = known.find(parent_of(operations[i].name));
    if (found == known.end() || found->second == i) {
      tops.push_back(i);
    } else {
      parents[i] = found->second;
      children[found->second].push_back(i);
    }
  }
  const auto by_less = [&](uint32_t a, uint32_t b) {
    if (less(operations[a], operations[b])) return true;
    return a < b && !less(operations[b], operations[a]);
  };
  std::sort(tops.begin(), tops.end(), by_less);
  for (auto& list : children) std::sort(list.begin(), list.end(), by_less);

  const std::vector<uint32_t> order = pre_order(tops, children);
  std::vector<uint32_t> place(operations.size(), kNoOperation);
  std::vector<Operation> sorted;
  sorted.reserve(order.size());
  for (const uint32_t old : order) {
    place[old] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(std::move(operations[old]));
    sorted.back().parent = parents[old] == kNoOperation ? kNoOperation : place[parents[old]];
    sorted.back().end = static_cast<uint32_t>(sorted.size());
  }
  for (size_t i = sorted.size(); i-- > 0;)
    if (sorted[i].parent != kNoOperation)
      sorted[sorted[i].parent].end = std::max(sorted[sorted[i].parent].end, sorted[i].end);
  operations = std::move(sorted);
  return place;
}

}  // namespace

void RecordingBuilder::finish(
    Recording& recording, std::vector<Operation> operations, const ParseFile& parse,
    const std::function<Operation(const std::string& name)>& describe,
    const std::function<std::string(const std::string& name)>& parent_of,
    const std::function<bool(const Operation& a, const Operation& b)>& less) {
  std::unordered_map<std::string, uint32_t> known;
  for (uint32_t i = 0; i < operations.size(); ++i) known.emplace(operations[i].name, i);
  // Adds what a file's operation lies in, too: a parent need not have tensors of its own.
  const auto operation_of = [&](std::string name) {
    const auto own = known.try_emplace(name, static_cast<uint32_t>(operations.size()));
    const uint32_t index = own.first->second;
    for (bool is_new = own.second; is_new;) {
      operations.push_back(describe(name));
      name = parent_of(name);
      if (name.empty()) break;
      is_new = known.try_emplace(name, static_cast<uint32_t>(operations.size())).second;
    }
    return index;
  };

  recording.units.resize(units_.size());
  for (const auto& [name, index] : units_) recording.units[index] = name;
  std::vector<Slot> slots;
  std::unordered_map<std::string, uint32_t> slot_of;
  recording.contents.assign(contents_.size(), {});
  for (const auto& [key, content] : contents_) {
    each_file(key.second, [&, unit = key.first, index = content](std::string_view below) {
      const std::string file = recording.units[unit] + "/" + std::string(below);
      for (Name& name : parse(file)) {
        const auto [found, is_new] =
            slot_of.try_emplace(name.slot.member.empty() ? file : file + ":" + name.slot.member,
                                static_cast<uint32_t>(slots.size()));
        if (is_new) {
          name.slot.operation = operation_of(std::move(name.operation));
          if (name.slot.file.empty()) name.slot.file = file;
          name.slot.unit = unit;
          slots.push_back(std::move(name.slot));
        }
        recording.contents[index].push_back(found->second);
      }
    });
  }

  const std::vector<uint32_t> place = arrange(operations, known, parent_of, less);
  recording.operations = std::move(operations);
  for (Slot& slot : slots) slot.operation = place[slot.operation];
  std::vector<uint32_t> order(slots.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Slot& x = slots[a];
    const Slot& y = slots[b];
    return std::tuple(x.operation, x.call, x.direction == Direction::kOutput, x.moment, x.index) <
               std::tuple(y.operation, y.call, y.direction == Direction::kOutput, y.moment,
                          y.index) ||
           (std::tuple(x.operation, x.call, x.direction, x.moment, x.index) ==
                std::tuple(y.operation, y.call, y.direction, y.moment, y.index) &&
            (x.file != y.file ? natural_less(x.file, y.file) : natural_less(x.member, y.member)));
  });
  std::vector<uint32_t> slot_place(slots.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    slot_place[order[i]] = i;
    recording.slots.push_back(std::move(slots[order[i]]));
  }
  recording.first_slot.assign(recording.operations.size() + 1, 0);
  for (const Slot& slot : recording.slots) ++recording.first_slot[slot.operation + 1];
  for (size_t i = 1; i < recording.first_slot.size(); ++i)
    recording.first_slot[i] += recording.first_slot[i - 1];
  for (auto& content : recording.contents) {
    for (uint32_t& slot : content) slot = slot_place[slot];
    std::sort(content.begin(), content.end());
  }

  for (const Listed& each : listed_)
    recording.kept[uint64_t{each.rank} * recording.rounds.size() + each.round].push_back(
        {each.unit, each.content});
  for (auto& [key, list] : recording.kept) std::sort(list.begin(), list.end());
}

}  // namespace ait::capture
