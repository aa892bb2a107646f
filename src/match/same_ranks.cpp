#include "match/same_ranks.h"

#include <algorithm>
#include <optional>
#include <string>

#include "match/sample.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::Recording;
using RankPairs = std::vector<std::pair<size_t, size_t>>;

// Tensors whose width is looked at, from the first to the last.
constexpr size_t kLookedAt = 64;

// The last dimension of a tensor in the first round that both runs have of it.
std::optional<bool> same_width(const Recording& golden, uint32_t golden_slot,
                               const Recording& actual, uint32_t actual_slot,
                               const std::pair<size_t, size_t>& ranks) {
  for (size_t a = 0; a < actual.rounds.size(); ++a) {
    const auto found = std::find(golden.rounds.begin(), golden.rounds.end(), actual.rounds[a]);
    const auto g = static_cast<size_t>(found - golden.rounds.begin());
    if (found == golden.rounds.end() || !golden.has(ranks.first, g, golden_slot) ||
        !actual.has(ranks.second, a, actual_slot))
      continue;
    const auto one = read_shape(golden.record(ranks.first, g, golden_slot));
    const auto other = read_shape(actual.record(ranks.second, a, actual_slot));
    if (!one || !other || one->empty() || other->empty()) continue;
    return one->back() == other->back();
  }
  return std::nullopt;
}

std::optional<uint32_t> output_of(const Recording& recording, uint32_t operation, uint32_t index) {
  for (uint32_t i = recording.first_slot[operation]; i < recording.first_slot[operation + 1]; ++i)
    if (recording.slots[i].direction == Direction::kOutput && recording.slots[i].index == index)
      return i;
  return std::nullopt;
}

void add_lonely_ranks(const Recording& recording, bool is_golden, const RankPairs& ranks,
                      const std::vector<Step>& steps, Alignment& out) {
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    if (std::any_of(ranks.begin(), ranks.end(), [&](const auto& pair) {
          return (is_golden ? pair.first : pair.second) == rank;
        }))
      continue;
    for (Step step : steps) {
      (is_golden ? step.actual : step.golden) = {};
      step.alone = std::string(is_golden ? "my-path" : "golden-path") + " has no rank " +
                   recording.ranks[rank].device + ".";
      step.ranks = {{rank, rank}};
      step.is_rank_alone = true;
      out.alone.push_back(std::move(step));
    }
  }
}

}  // namespace

RankPairs same_ranks(const Recording& golden, const Recording& actual) {
  RankPairs out;
  const bool by_number = golden.ranks.size() != actual.ranks.size();
  for (size_t g = 0; g < golden.ranks.size(); ++g)
    for (size_t a = 0; a < actual.ranks.size(); ++a)
      if (by_number ? golden.ranks[g].device == actual.ranks[a].device : g == a)
        out.emplace_back(g, a);
  return out;
}

bool are_equally_wide(const Recording& golden, const Recording& actual,
                      const std::vector<uint32_t>& golden_of, const RankPairs& ranks) {
  std::vector<std::pair<uint32_t, uint32_t>> slots;
  for (uint32_t i = 0; i < actual.slots.size(); ++i) {
    const capture::Slot& slot = actual.slots[i];
    const uint32_t operation = golden_of[slot.operation];
    if (operation == kNoOperation || slot.direction != Direction::kOutput) continue;
    if (const auto other = output_of(golden, operation, slot.index)) slots.emplace_back(*other, i);
  }
  const size_t count = std::min(kLookedAt, slots.size());
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const auto& [g, a] = slots[count == 1 ? 0 : i * (slots.size() - 1) / (count - 1)];
    const auto same = same_width(golden, g, actual, a, ranks.front());
    if (same && !*same) return false;
    any |= same.has_value();
  }
  return any;
}

std::string doubt_about_ranks(const Recording& golden, const Recording& actual,
                              const RankPairs& ranks) {
  const auto communicates = [](const capture::Operation& operation) {
    return operation.type.find("AllReduce") != std::string::npos ||
           operation.type.find("AllGather") != std::string::npos;
  };
  const auto& [g, a] = ranks.front();
  if (golden.ranks[g].device == actual.ranks[a].device ||
      std::none_of(actual.operations.begin(), actual.operations.end(), communicates))
    return {};
  return "golden's rank " + golden.ranks[g].device + " is compared with my rank " +
         actual.ranks[a].device +
         ", as each is the first rank of its run; if the model is divided among ranks, the two "
         "hold different shards: record the same rank of both runs";
}

void keep_to_ranks(const Recording& golden, const Recording& actual, const RankPairs& ranks,
                   Alignment& alignment) {
  for (Step& step : alignment.steps) step.ranks = ranks;
  add_lonely_ranks(golden, true, ranks, alignment.steps, alignment);
  add_lonely_ranks(actual, false, ranks, alignment.steps, alignment);
  std::string names;
  for (const auto& [g, a] : ranks) names += (names.empty() ? "" : ", ") + golden.ranks[g].device;
  alignment.notes.push_back("both runs have " +
                            std::string(ranks.size() == 1 ? "rank " : "the ranks ") + names +
                            ": the tensors of other ranks are rows without a partner");
}

}  // namespace ait::match
