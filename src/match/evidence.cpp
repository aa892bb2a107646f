#include "match/evidence.h"

#include <algorithm>

#include "base/parallel.h"
#include "match/readings.h"

namespace ait::match {
namespace {

using capture::OpKind;
using capture::Recording;

// Sums are searched for among many pairs, so they have to agree well.
constexpr double kSumDistance = 0.05;

std::vector<Readings> read_all(const SegmentRound& from) {
  const Recording& recording = from.side.recording;
  const std::vector<Value>& values = from.side.values;
  std::vector<Readings> out(values.size());
  parallel_for(values.size(), 0, [&](size_t i) {
    const auto round = from.round_of(from.side.segment.operation_at(values[i].position));
    if (!round) return;
    const uint32_t slot = slot_of(recording, from.side.segment, values[i]);
    std::vector<Sample> ranks;
    std::optional<Sample> heads_first;
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
      if (!recording.has(rank, *round, slot)) return;  // shards make sense only together
      const auto record = recording.record(rank, *round, slot);
      auto sample = read_sample(record, from.tokens);
      if (sample) ranks.push_back(std::move(*sample));
      if (rank == 0) heads_first = read_sample(record, from.tokens, true);
    }
    if (ranks.size() != recording.ranks.size()) ranks.clear();
    out[i] = readings_of(std::move(ranks), std::move(heads_first));
  });
  return out;
}

std::vector<Evidence::ValueFacts> facts_of(const std::vector<Readings>& values) {
  std::vector<Evidence::ValueFacts> out;
  out.reserve(values.size());
  for (const Readings& each : values) out.push_back({each.content, each.columns, each.is_float});
  return out;
}

std::vector<bool> kin_of(const std::vector<Readings>& values) {
  std::vector<bool> kin(values.size() * values.size());
  for (size_t a = 0; a < values.size(); ++a)
    for (size_t b = 0; b < values.size(); ++b)
      kin[a * values.size() + b] = are_kin(values[a], values[b]);
  return kin;
}

std::vector<Evidence::PairFacts> compare_all(const std::vector<Readings>& golden,
                                             const std::vector<Readings>& actual) {
  std::vector<Evidence::PairFacts> out(golden.size() * actual.size());
  parallel_for(golden.size(), 0, [&](size_t g) {
    for (size_t a = 0; a < actual.size(); ++a) {
      if (golden[g].content == 0 || actual[a].content == 0 ||
          golden[g].is_float != actual[a].is_float)
        continue;
      Evidence::PairFacts& facts = out[g * actual.size() + a];
      facts.whole = whole_form(golden[g], actual[a]);
      if (golden[g].is_float) facts.part = part_form(golden[g], actual[a]);
    }
  });
  return out;
}

// Whether a value may be a sum that golden has not recorded: of an addition, of an operation that
// may hold one (a layer), or of a projection with the addition fused into it.
bool may_be_sum(const Value& value, const Readings& readings) {
  const bool may_add =
      value.kind == OpKind::kAdd || value.kind == OpKind::kUnknown || value.kind == OpKind::kLinear;
  return may_add && !readings.ways.empty() && readings.content != 0;
}

bool has_whole_partner(const Evidence& evidence, size_t actual) {
  for (size_t g = 0; g < evidence.golden.size(); ++g) {
    const auto& whole = evidence.at(g, actual).whole;
    if (whole && whole->distance.agrees() && whole->distance.value <= kSumDistance) return true;
  }
  return false;
}

// The two golden values whose sum is nearest to a reading of my side's.
std::optional<Evidence::Sum> nearest_sum(const std::vector<Readings>& golden, uint32_t actual,
                                         const Reading& target) {
  const auto can_add = [&](const Readings& readings) {
    return !readings.ways.empty() && readings.ways[0].sample.columns == target.sample.columns;
  };
  std::optional<Evidence::Sum> best;
  for (uint32_t i = 0; i < golden.size(); ++i) {
    if (!can_add(golden[i])) continue;
    for (uint32_t j = i + 1; j < golden.size(); ++j) {
      if (!can_add(golden[j]) || golden[i].content == golden[j].content) continue;
      const Sample total =
          sum_of(std::vector<Sample>{golden[i].ways[0].sample, golden[j].ways[0].sample});
      const Distance d = distance(total, target.sample);
      if (d.value > kSumDistance || !d.agrees() || (best && d.value >= best->form.distance.value))
        continue;
      Form form;
      form.golden.join = Join::kSum;
      form.actual = target.transform;
      form.actual_ranks = target.ranks;
      form.distance = d;
      best = {i, j, actual, form};
    }
  }
  return best;
}

// Residual additions: pairs of golden values whose sum is one of my side's that nothing else is.
// Where inputs of modules were recorded, sums are among these, and nothing has to be added.
std::vector<Evidence::Sum> find_sums(const SegmentSide& golden_side,
                                     const std::vector<Readings>& golden,
                                     const SegmentSide& actual_side,
                                     const std::vector<Readings>& actual,
                                     const Evidence& evidence) {
  std::vector<Evidence::Sum> sums;
  if (std::any_of(golden_side.values.begin(), golden_side.values.end(),
                  [](const Value& value) { return !value.is_output(); }))
    return sums;
  for (uint32_t a = 0; a < actual.size(); ++a) {
    if (!may_be_sum(actual_side.values[a], actual[a]) || has_whole_partner(evidence, a)) continue;
    if (const auto sum = nearest_sum(golden, a, actual[a].ways[0])) sums.push_back(*sum);
  }
  return sums;
}

}  // namespace

Evidence weigh(const SegmentRound& golden, const SegmentRound& actual) {
  const std::vector<Readings> golden_readings = read_all(golden);
  const std::vector<Readings> actual_readings = read_all(actual);
  Evidence out;
  out.golden = facts_of(golden_readings);
  out.actual = facts_of(actual_readings);
  out.pairs = compare_all(golden_readings, actual_readings);
  out.sums = find_sums(golden.side, golden_readings, actual.side, actual_readings, out);
  out.golden_kin = kin_of(golden_readings);
  out.actual_kin = kin_of(actual_readings);
  // Another batch of the same input has as many rows again.
  if (golden.tokens.count != actual.tokens.count)
    for (Evidence::PairFacts& facts : out.pairs)
      for (auto* form : {&facts.whole, &facts.part})
        if (*form && (*form)->fit == Fit::kNone) (*form)->fit = Fit::kRepeat;
  return out;
}

std::vector<Shape> shapes_of(const SegmentRound& from) {
  const Recording& recording = from.side.recording;
  const std::vector<Value>& values = from.side.values;
  std::vector<std::optional<Shape>> shapes(values.size());
  parallel_for(values.size(), 0, [&](size_t i) {
    const auto round = from.round_of(from.side.segment.operation_at(values[i].position));
    const uint32_t slot = slot_of(recording, from.side.segment, values[i]);
    if (round && recording.has(0, *round, slot))
      shapes[i] = read_shape(recording.record(0, *round, slot));
  });
  std::vector<Shape> out;
  for (auto& shape : shapes)
    if (shape) out.push_back(std::move(*shape));
  return out;
}

}  // namespace ait::match
