#include "match/origins.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;

// Of more operations without a row nobody wants the names.
constexpr size_t kMostPassed = 32;

// What types of operations are called in which ranks exchange what they have.
constexpr std::array<std::string_view, 6> kCollectives = {"allreduce", "allgather", "reducescatter",
                                                          "alltoall",  "broadcast", "hcom"};

bool is_collective(const capture::Operation& operation) {
  std::string type;
  for (const char c : operation.type)
    if (c != '_') type += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(kCollectives.begin(), kCollectives.end(),
                     [&](std::string_view word) { return type.find(word) != std::string::npos; });
}

void merge(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  std::vector<uint32_t> both;
  std::set_union(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(both));
  to = std::move(both);
}

class OriginPlanner {
 public:
  OriginPlanner(const Recording& actual, const Flow& flow, const std::vector<PlannedPair>& pairs)
      : actual_(actual), flow_(flow), pairs_(pairs) {
    for (uint32_t i = 0; i < pairs.size(); ++i)
      if (!pairs[i].golden.empty())
        for (const uint32_t slot : pairs[i].actual) rows_[slot].push_back(i);
  }

  PlannedOrigin origin_of(uint32_t pair) {
    PlannedOrigin out;
    for (const uint32_t slot : pairs_[pair].actual) {
      const Made& made = flow_.made[slot];
      if (!made.is_known) continue;
      Reached reached;
      for (const uint32_t source : made.sources) join(reached, reach(source));
      out.is_copy = made.is_copy && reached.is_same;
      out.is_known = true;
      out.kind = made.kind;
      out.operation = made.operation;
      out.is_collective |=
          reached.is_collective || is_collective(actual_.operations[made.operation]);
      merge(out.sources, reached.pairs);
      merge(out.passed, reached.passed);
    }
    // What comes later in a report cannot be where a row comes from.
    std::erase_if(out.sources, [&](uint32_t source) { return source >= pair; });
    if (out.is_copy) keep_same_part(pair, out.sources);
    if (out.passed.size() > kMostPassed)
      out.passed.erase(out.passed.begin(), out.passed.end() - kMostPassed);
    return out;
  }

 private:
  // The rows from which a tensor comes that may have none itself.
  struct Reached {
    std::vector<uint32_t> pairs;
    std::vector<uint32_t> passed;
    bool is_same = true;  // they are about the same data
    bool is_collective = false;
  };

  static void join(Reached& to, const Reached& from) {
    merge(to.pairs, from.pairs);
    merge(to.passed, from.passed);
    to.is_same &= from.is_same;
    to.is_collective |= from.is_collective;
  }

  const Reached& reach(uint32_t value) {
    const auto [place, is_new] = reached_.try_emplace(value);
    // It is there before its sources are asked: no circle goes on for ever.
    Reached& stored = place->second;
    if (!is_new) return stored;
    Reached out;
    const auto rows = rows_.find(value);
    const Made& made = flow_.made[value];
    if (rows != rows_.end()) {
      out.pairs = rows->second;
    } else if (made.is_known) {
      for (const uint32_t source : made.sources) join(out, reach(source));
      out.is_same &= made.is_copy;
      out.is_collective |= is_collective(actual_.operations[made.operation]);
      if (!made.sources.empty() && !is_mere_name(value)) merge(out.passed, {made.operation});
    }
    stored = std::move(out);
    return stored;
  }

  // Whether a tensor is another one under the name of an operation that does nothing to it.
  bool is_mere_name(uint32_t value) const {
    const Made& made = flow_.made[value];
    const bool is_input =
        value < actual_.slots.size() && actual_.slots[value].direction == Direction::kInput;
    return made.is_copy && (is_input || !is_leaf(actual_, made.operation));
  }

  // Of several rows about parts of the same tensor, that about the same part.
  void keep_same_part(uint32_t pair, std::vector<uint32_t>& sources) const {
    const Transform& wanted = pairs_[pair].form.actual;
    const auto same = std::find_if(sources.begin(), sources.end(), [&](uint32_t source) {
      return pairs_[source].form.actual == wanted;
    });
    if (same != sources.end()) sources = {*same};
  }

  const Recording& actual_;
  const Flow& flow_;
  const std::vector<PlannedPair>& pairs_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> rows_;  // pairs of each slot
  std::unordered_map<uint32_t, Reached> reached_;
};

}  // namespace

std::vector<PlannedOrigin> plan_origins(const Recording& actual, const Flow& flow,
                                        const std::vector<PlannedPair>& pairs) {
  OriginPlanner planner(actual, flow, pairs);
  std::vector<PlannedOrigin> out;
  out.reserve(pairs.size());
  for (uint32_t i = 0; i < pairs.size(); ++i) out.push_back(planner.origin_of(i));
  return out;
}

}  // namespace ait::match
