#include "match/layers.h"

#include <algorithm>
#include <utility>

namespace ait::match {
namespace {

using capture::Direction;
using capture::Level;
using capture::Moment;
using capture::Recording;
using capture::Slot;

std::vector<uint32_t> children_of(const Recording& recording, uint32_t parent) {
  std::vector<uint32_t> children;
  for (uint32_t i = parent + 1; i < recording.operations[parent].end;
       i = recording.operations[i].end)
    if (recording.operations[i].level == Level::kOperation) children.push_back(i);
  return children;
}

size_t size_of(const Recording& recording, uint32_t operation) {
  return recording.operations[operation].end - operation;
}

// "o0,", "i1,": direction, moment and number of each tensor of an operation.
void append_tensors(const Recording& recording, uint32_t operation, std::string& out) {
  for (uint32_t i = recording.first_slot[operation]; i < recording.first_slot[operation + 1]; ++i) {
    const Slot& slot = recording.slots[i];
    const bool is_input = slot.direction == Direction::kInput;
    // Which of its inputs an operation of a graph has recorded says where it reads from, not what
    // it is. A fault may be just that it reads from elsewhere.
    if (is_input && !recording.traits.inputs_are_values) continue;
    out += is_input ? 'i' : 'o';
    if (slot.moment == Moment::kBefore) out += 'b';
    out += std::to_string(slot.index) + ",";
  }
}

bool same_type(const Recording& recording, uint32_t a, uint32_t b) {
  const std::string& type = recording.operations[a].type;
  return !type.empty() && type == recording.operations[b].type;
}

}  // namespace

bool is_leaf(const Recording& recording, uint32_t operation) {
  for (uint32_t i = operation + 1; i < recording.operations[operation].end; ++i)
    if (recording.operations[i].level == Level::kOperation) return false;
  return true;
}

void append_structure(const Recording& recording, uint32_t root, std::string& out) {
  std::vector<uint32_t> ends;  // of the operations that the current one lies in
  for (uint32_t i = root; i < recording.operations[root].end; ++i) {
    if (recording.operations[i].level != Level::kOperation) continue;
    while (!ends.empty() && i >= ends.back()) ends.pop_back();
    out += std::to_string(ends.size()) + ":";
    append_tensors(recording, i, out);
    ends.push_back(recording.operations[i].end);
  }
  out += ";";
}

std::vector<Series> find_series(const Recording& recording, const std::vector<uint32_t>& siblings) {
  std::vector<Series> all;
  std::string structure_before;  // empty: the sibling before is a leaf, or there is none
  for (size_t i = 0; i < siblings.size(); ++i) {
    const uint32_t operation = siblings[i];
    if (is_leaf(recording, operation)) {
      structure_before.clear();
      continue;
    }
    std::string structure;
    append_structure(recording, operation, structure);
    // The same type is enough: the first layers of some models are built otherwise than the rest.
    const bool continues =
        !structure_before.empty() &&
        (structure == structure_before || same_type(recording, operation, siblings[i - 1]));
    if (!continues) all.emplace_back();
    all.back().members.push_back(operation);
    all.back().operations += size_of(recording, operation);
    structure_before = std::move(structure);
  }
  return all;
}

namespace {

// Takes in what stands beside the layers and is about as large as one: the last layer of some graphs
// is built otherwise, and called otherwise, than the rest.
void take_in_neighbours(const Recording& recording, const std::vector<uint32_t>& siblings,
                        Series& layers) {
  const size_t usual = layers.operations / layers.members.size();
  const auto is_like = [&](uint32_t sibling) {
    const size_t size = size_of(recording, sibling);
    return !is_leaf(recording, sibling) && 4 * size >= 3 * usual && 3 * size <= 4 * usual;
  };
  const auto first = std::find(siblings.begin(), siblings.end(), layers.members.front());
  const auto last = std::find(siblings.begin(), siblings.end(), layers.members.back());
  if (last + 1 != siblings.end() && is_like(*(last + 1))) {
    layers.members.push_back(*(last + 1));
    layers.operations += size_of(recording, layers.members.back());
  }
  if (first != siblings.begin() && is_like(*(first - 1))) {
    layers.members.insert(layers.members.begin(), *(first - 1));
    layers.operations += size_of(recording, layers.members.front());
  }
}

}  // namespace

std::vector<Series> find_layer_series(const Recording& recording,
                                      const std::vector<uint32_t>& siblings) {
  std::vector<Series> all = find_series(recording, siblings);
  std::vector<uint32_t> taken;
  for (Series& series : all) {
    if (series.members.size() < 2) continue;
    Series with = series;
    take_in_neighbours(recording, siblings, with);
    const bool is_free = std::ranges::none_of(with.members, [&](uint32_t member) {
      return std::ranges::find(taken, member) != taken.end();
    });
    if (is_free) series = std::move(with);
    taken.insert(taken.end(), series.members.begin(), series.members.end());
  }
  std::erase_if(all, [&](const Series& series) {
    return series.members.size() == 1 && std::ranges::find(taken, series.members[0]) != taken.end();
  });
  return all;
}

Series find_layers(const Recording& recording, const std::vector<uint32_t>& tops) {
  Series best;
  const auto keep_largest = [&](const std::vector<uint32_t>& siblings) {
    for (Series& series : find_series(recording, siblings)) {
      if (series.members.size() < 2 || series.operations <= best.operations) continue;
      best = std::move(series);
      take_in_neighbours(recording, siblings, best);
    }
  };
  size_t everything = 0;
  keep_largest(tops);
  for (const uint32_t top : tops) {
    everything += size_of(recording, top);
    for (uint32_t i = top; i < recording.operations[top].end; ++i)
      if (!is_leaf(recording, i)) keep_largest(children_of(recording, i));
  }
  return 2 * best.operations >= everything ? best : Series{};
}

}  // namespace ait::match
