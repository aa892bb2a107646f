#include "match/evidence.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "match/readings.h"

namespace ait::match {
namespace {

using capture::OpKind;
using capture::Recording;

// Sums are searched for among many pairs, so they have to agree well.
constexpr double kSumDistance = 0.05;

// As many are looked at, which takes a second.
constexpr size_t kMostSums = size_t{1} << 24;

std::vector<Readings> read_all(const SegmentRound& from) {
  const Recording& recording = from.side.recording;
  const std::vector<Value>& values = from.side.values;
  std::vector<Readings> out(values.size());
  parallel_for(values.size(), 0, [&](size_t i) {
    const auto round = from.round_of(from.side.segment.operation_at(values[i].position));
    if (!round) return;
    const uint32_t slot = slot_of(recording, from.side.segment, values[i]);
    std::vector<std::vector<Sample>> layouts;
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
      if (!recording.has(rank, *round, slot)) return;  // shards make sense only together
      for (Sample& sample : read_samples(recording.record(rank, *round, slot), from.tokens)) {
        const auto same = std::find_if(layouts.begin(), layouts.end(), [&](const auto& ranks) {
          return ranks[0].same_layout(sample);
        });
        (same == layouts.end() ? layouts.emplace_back() : *same).push_back(std::move(sample));
      }
    }
    std::erase_if(layouts,
                  [&](const auto& ranks) { return ranks.size() != recording.ranks.size(); });
    out[i] = readings_of(std::move(layouts));
  });
  return out;
}

std::vector<Evidence::ValueFacts> facts_of(const std::vector<Readings>& values) {
  std::vector<Evidence::ValueFacts> out;
  out.reserve(values.size());
  for (const Readings& each : values)
    out.push_back({each.content, each.columns, each.is_float, each.is_same, each.constant});
  return out;
}

// Calls visit(row, column, cell) for all cells of a band, rows on all cores.
template <typename Visit>
void each_cell(const Band& band, const Visit& visit) {
  parallel_for(band.rows, 0, [&](size_t row) {
    const size_t first = band.first(row);
    for (size_t i = 0; i < band.width; ++i) visit(row, first + i, row * band.width + i);
  });
}

void find_kin(const std::vector<Readings>& values, Evidence::Kin& kin) {
  each_cell(kin.band, [&](size_t a, size_t b, size_t cell) {
    kin.cells[cell] = are_kin(values[a], values[b]) ? 1 : 0;
  });
}

void compare_all(const std::vector<Readings>& golden, const std::vector<Readings>& actual,
                 Evidence& out) {
  each_cell(out.band, [&](size_t g, size_t a, size_t cell) {
    if (golden[g].content == 0 || actual[a].content == 0 ||
        golden[g].is_float != actual[a].is_float)
      return;
    Evidence::PairFacts& facts = out.pairs[cell];
    facts.whole = whole_form(golden[g], actual[a]);
    if (golden[g].is_float) facts.part = part_form(golden[g], actual[a]);
  });
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

// The two of some golden values whose sum is nearest to a reading of my side's.
std::optional<Evidence::Sum> nearest_sum(const std::vector<Readings>& golden, size_t first,
                                         size_t last, uint32_t actual, const Reading& target) {
  std::vector<uint32_t> parts;
  for (size_t i = first; i < last; ++i)
    if (!golden[i].ways.empty() && golden[i].ways[0].sample.columns == target.sample.columns)
      parts.push_back(static_cast<uint32_t>(i));
  std::optional<Evidence::Sum> best;
  for (size_t one = 0; one < parts.size(); ++one) {
    for (size_t other = one + 1; other < parts.size(); ++other) {
      const uint32_t i = parts[one];
      const uint32_t j = parts[other];
      const Sample& x = golden[i].ways[0].sample;
      const Sample& y = golden[j].ways[0].sample;
      if (golden[i].content == golden[j].content || !may_add_up(x, y, target.sample)) continue;
      const Distance d = distance(sum_of(std::vector<Sample>{x, y}), target.sample);
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
void find_sums(const SegmentSide& golden_side, const std::vector<Readings>& golden,
               const SegmentSide& actual_side, const std::vector<Readings>& actual,
               Evidence& evidence) {
  if (std::any_of(golden_side.values.begin(), golden_side.values.end(),
                  [](const Value& value) { return !value.is_output(); }))
    return;
  std::vector<uint32_t> wanted;
  for (uint32_t a = 0; a < actual.size(); ++a)
    if (may_be_sum(actual_side.values[a], actual[a]) && !has_whole_partner(evidence, a))
      wanted.push_back(a);
  if (wanted.empty()) return;
  // Of so many golden values for each of mine, two at a time are added.
  const auto most = static_cast<size_t>(
      std::sqrt(2 * static_cast<double>(kMostSums) / static_cast<double>(wanted.size())));
  const Band band(actual.size(), golden.size(), most * actual.size());
  evidence.has_all_sums = band.is_whole();
  std::vector<std::optional<Evidence::Sum>> found(wanted.size());
  parallel_for(wanted.size(), 0, [&](size_t i) {
    const size_t first = band.first(wanted[i]);
    found[i] = nearest_sum(golden, first, first + band.width, wanted[i], actual[wanted[i]].ways[0]);
  });
  for (const auto& sum : found)
    if (sum) evidence.sums.push_back(*sum);
}

}  // namespace

Evidence weigh(const SegmentRound& golden, const SegmentRound& actual) {
  const std::vector<Readings> golden_readings = read_all(golden);
  const std::vector<Readings> actual_readings = read_all(actual);
  Evidence out(golden_readings.size(), actual_readings.size());
  out.golden = facts_of(golden_readings);
  out.actual = facts_of(actual_readings);
  compare_all(golden_readings, actual_readings, out);
  find_sums(golden.side, golden_readings, actual.side, actual_readings, out);
  find_kin(golden_readings, out.golden_kin);
  find_kin(actual_readings, out.actual_kin);
  // Another batch of the same input has as many rows again.
  if (golden.tokens.count != actual.tokens.count && !golden.tokens.choice)
    for (Evidence::PairFacts& facts : out.pairs)
      for (auto* form : {&facts.whole, &facts.part})
        if (*form && (*form)->fit == Fit::kNone) (*form)->fit = Fit::kRepeat;
  return out;
}

std::vector<Evidence::ValueFacts> facts_of(const SegmentRound& from) {
  return facts_of(read_all(from));
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
