#include "match/evidence.h"

#include <algorithm>

#include "base/parallel.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Moment;
using capture::OpKind;
using capture::Recording;

// Ranks that computed the same thing differ by rounding at most.
constexpr double kReplica = 0.05;

// The same tensor in another precision, or summed in another order, differs by rounding: bf16's,
// four times over.
constexpr double kKin = 0.02;

// Parts are searched for at many places, so they have to agree better than wholes.
constexpr double kPartDistance = 0.2;

// One way to see a value.
struct Look {
  Sample sample;
  RankUse ranks = RankUse::kOne;
  Transform transform;
};

// Everything that was read of a value.
struct Looks {
  std::vector<Look> looks;
  std::vector<Sample> shards;  // of ranks that hold different things
  uint64_t content = 0;
  size_t columns = 0;
  bool is_float = true;
};

Look look(Sample sample, RankUse ranks, Join join) {
  Look out{std::move(sample), ranks, {}};
  out.transform.heads_first = out.sample.heads_first;
  out.transform.join = join;
  return out;
}

Looks looks_of(std::vector<Sample> ranks, std::optional<Sample> heads_first) {
  Looks out;
  if (ranks.empty() && !heads_first) return out;
  if (!ranks.empty()) {
    out.columns = ranks[0].columns;
    out.is_float = ranks[0].is_float;
    if (ranks[0].informative()) out.content = ranks[0].hash() | 1;
  }
  const bool same_width = std::all_of(ranks.begin(), ranks.end(), [&](const Sample& sample) {
    return sample.columns == ranks[0].columns;
  });
  const bool replicas =
      same_width && std::all_of(ranks.begin(), ranks.end(), [&](const Sample& sample) {
        return distance(ranks[0], sample).value <= kReplica;
      });
  if (ranks.size() == 1) {
    out.looks.push_back(look(ranks[0], RankUse::kOne, Join::kNone));
  } else if (!ranks.empty() && replicas) {
    out.looks.push_back(look(ranks[0], RankUse::kEach, Join::kNone));
  } else if (!ranks.empty()) {
    for (const Sample& sample : ranks) out.content = out.content * 31 + sample.hash();
    out.content |= 1;
    out.looks.push_back(look(side_by_side(ranks), RankUse::kAll, Join::kColumns));
    // A row of a shard may be several dimensions: [tokens, heads, size].
    if (same_width) out.looks.back().transform.columns = static_cast<int64_t>(out.columns);
    if (same_width) out.looks.push_back(look(sum_of(ranks), RankUse::kAll, Join::kSum));
    if (same_width) out.shards = std::move(ranks);
  }
  if (heads_first) {
    if (out.content == 0 && heads_first->informative()) out.content = heads_first->hash() | 1;
    out.looks.push_back(look(std::move(*heads_first), RankUse::kOne, Join::kNone));
  }
  if (out.content == 1) out.content = 3;
  return out;
}

std::vector<Looks> read_looks(const EvidenceSide& side) {
  std::vector<Looks> out(side.values.size());
  parallel_for(side.values.size(), 0, [&](size_t i) {
    const Value& value = side.values[i];
    const auto round = side.round_of(side.segment.operation_at(value.position));
    if (!round) return;
    const uint32_t slot = slot_of(side.recording, side.segment, value);
    std::vector<Sample> ranks;
    std::optional<Sample> heads_first;
    for (size_t rank = 0; rank < side.recording.ranks.size(); ++rank) {
      if (!side.recording.has(rank, *round, slot)) return;  // shards make sense only together
      const auto record = side.recording.record(rank, *round, slot);
      auto sample = read_sample(record, side.tokens);
      if (sample) ranks.push_back(std::move(*sample));
      if (rank == 0) heads_first = read_sample(record, side.tokens, true);
    }
    if (ranks.size() != side.recording.ranks.size()) ranks.clear();
    out[i] = looks_of(std::move(ranks), std::move(heads_first));
  });
  return out;
}

Fit fit_of(const Sample& golden, const Sample& actual) {
  return golden.last_only == actual.last_only ? Fit::kNone : Fit::kLastRows;
}

void keep_better(std::optional<Form>& best, const Form& form) {
  if (!best || form.distance.value < best->distance.value) best = form;
}

std::optional<Form> whole_form(const Looks& golden, const Looks& actual) {
  std::optional<Form> best;
  for (const Look& g : golden.looks)
    for (const Look& a : actual.looks) {
      if (g.sample.columns != a.sample.columns) continue;
      keep_better(best, {g.transform, a.transform, g.ranks, a.ranks, fit_of(g.sample, a.sample),
                         distance(g.sample, a.sample)});
    }
  // Shard against shard.
  if (!golden.shards.empty() && golden.shards.size() == actual.shards.size() &&
      golden.columns == actual.columns) {
    Form form;
    form.golden_ranks = form.actual_ranks = RankUse::kEach;
    form.distance.value = 0;
    for (size_t i = 0; i < golden.shards.size(); ++i) {
      const Distance d = distance(golden.shards[i], actual.shards[i]);
      form.distance.value = std::max(form.distance.value, d.value);
      form.distance.elements += d.elements;
    }
    keep_better(best, form);
  }
  return best;
}

struct Found {
  size_t first;
  Distance distance;
};

// A projection for one head in one for all heads of a large model.
constexpr size_t kMaxWidthRatio = 64;

bool may_hold(size_t wide, size_t narrow) {
  return narrow < wide && wide <= kMaxWidthRatio * narrow;
}

// `narrow` as columns of one tensor.
std::optional<Found> find_in_one(const Sample& narrow, const Sample& wide) {
  if (!may_hold(wide.columns, narrow.columns)) return std::nullopt;
  const auto first = find_columns(narrow, 0, narrow.columns, wide);
  if (!first) return std::nullopt;
  return Found{*first, distance(narrow, 0, wide, *first, narrow.columns)};
}

// `narrow` as the same columns of each shard, one shard after the other.
std::optional<Found> find_in_shards(const Sample& narrow, const std::vector<Sample>& shards) {
  const size_t count = shards.size();
  if (count == 0 || narrow.columns % count != 0) return std::nullopt;
  const size_t width = narrow.columns / count;
  if (!may_hold(shards[0].columns, width)) return std::nullopt;
  const auto first = find_columns(narrow, 0, width, shards[0]);
  if (!first) return std::nullopt;
  Found found{*first, {0, 0}};
  for (size_t i = 0; i < count; ++i) {
    const Distance d = distance(narrow, i * width, shards[i], *first, width);
    found.distance.value = std::max(found.distance.value, d.value);
    found.distance.elements += d.elements;
  }
  return found;
}

Transform columns_of(const Look& look, const Found& found, size_t wide, size_t taken, Join join) {
  Transform out = look.transform;
  out.columns = static_cast<int64_t>(wide);
  out.first = static_cast<int64_t>(found.first);
  out.taken = static_cast<int64_t>(taken);
  out.join = join;
  return out;
}

// The narrow side stays as it is, columns are taken of the wide one.
std::optional<Form> part_form(const Looks& golden, const Looks& actual) {
  std::optional<Form> best;
  const auto consider = [&](const Looks& narrow_looks, const Looks& wide_looks, bool golden_wide) {
    for (const Look& narrow : narrow_looks.looks) {
      const auto add = [&](const Found& found, Transform wide, RankUse wide_ranks) {
        if (found.distance.value > kPartDistance || !found.distance.agrees()) return;
        Form form;
        form.golden = golden_wide ? wide : narrow.transform;
        form.actual = golden_wide ? narrow.transform : wide;
        form.golden_ranks = golden_wide ? wide_ranks : narrow.ranks;
        form.actual_ranks = golden_wide ? narrow.ranks : wide_ranks;
        form.distance = found.distance;
        keep_better(best, form);
      };
      for (const Look& wide : wide_looks.looks) {
        if (wide.ranks == RankUse::kAll) continue;
        if (const auto found = find_in_one(narrow.sample, wide.sample))
          add(*found,
              columns_of(wide, *found, wide.sample.columns, narrow.sample.columns, Join::kNone),
              wide.ranks);
      }
      if (const auto found = find_in_shards(narrow.sample, wide_looks.shards))
        add(*found,
            columns_of({}, *found, wide_looks.columns,
                       narrow.sample.columns / wide_looks.shards.size(), Join::kColumns),
            RankUse::kAll);
    }
  };
  consider(golden, actual, false);
  consider(actual, golden, true);
  return best;
}

// Sums are searched for among many pairs, so they have to agree well.
constexpr double kSumDistance = 0.05;

// Pairs of golden values whose sum is an actual one that nothing else is. Where inputs of modules
// were recorded, sums are among them.
void find_sums(const std::vector<Looks>& golden, const std::vector<Looks>& actual,
               const EvidenceSide& golden_side, const EvidenceSide& actual_side,
               Evidence& evidence) {
  if (std::any_of(golden_side.values.begin(), golden_side.values.end(),
                  [](const Value& value) { return value.direction == Direction::kInput; }))
    return;
  for (size_t a = 0; a < actual.size(); ++a) {
    const OpKind kind = actual_side.values[a].kind;
    if (actual[a].looks.empty() || actual[a].content == 0 ||
        (kind != OpKind::kAdd && kind != OpKind::kUnknown && kind != OpKind::kLinear))
      continue;
    bool taken = false;
    for (size_t g = 0; g < golden.size() && !taken; ++g) {
      const auto& whole = evidence.at(g, a).whole;
      taken = whole && whole->distance.agrees() && whole->distance.value <= kSumDistance;
    }
    if (taken) continue;
    const Look& target = actual[a].looks[0];
    std::optional<Evidence::SumForm> best;
    for (uint32_t i = 0; i < golden.size(); ++i) {
      for (uint32_t j = i + 1; j < golden.size(); ++j) {
        if (golden[i].looks.empty() || golden[j].looks.empty() ||
            golden[i].content == golden[j].content ||
            golden[i].looks[0].sample.columns != target.sample.columns ||
            golden[j].looks[0].sample.columns != target.sample.columns)
          continue;
        const Sample total =
            sum_of(std::vector<Sample>{golden[i].looks[0].sample, golden[j].looks[0].sample});
        Form form;
        form.golden.join = Join::kSum;
        form.actual = target.transform;
        form.actual_ranks = target.ranks;
        form.distance = distance(total, target.sample);
        if (form.distance.value <= kSumDistance && form.distance.agrees() &&
            (!best || form.distance.value < best->form.distance.value))
          best = {i, j, static_cast<uint32_t>(a), form};
      }
    }
    if (best) evidence.sums.push_back(*best);
  }
}

std::vector<bool> kin_of(const std::vector<Looks>& values) {
  std::vector<bool> kin(values.size() * values.size());
  for (size_t a = 0; a < values.size(); ++a)
    for (size_t b = 0; b < values.size(); ++b)
      for (const Look& x : values[a].looks)
        for (const Look& y : values[b].looks)
          if (x.sample.columns == y.sample.columns && distance(x.sample, y.sample).value <= kKin)
            kin[a * values.size() + b] = true;
  return kin;
}

}  // namespace

uint32_t slot_of(const Recording& recording, const Segment& segment, const Value& value) {
  const uint32_t operation = segment.operation_at(value.position);
  uint32_t first = recording.first_slot[operation];
  while (recording.slots[first].direction != value.direction) ++first;  // inputs come first
  return first + value.place;
}

std::vector<Value> values_of(const Recording& recording, const Segment& segment) {
  bool any_output = false;
  for (const capture::Slot& slot : recording.slots)
    any_output |= slot.direction == Direction::kOutput && slot.moment == Moment::kAfter;
  std::vector<Value> values;
  for (uint32_t position = 0; position < segment.size(); ++position) {
    const uint32_t operation = segment.operation_at(position);
    bool leaf = true;
    for (uint32_t i = operation + 1; i < recording.operations[operation].end; ++i)
      leaf &= recording.operations[i].level == capture::Level::kKernel;
    uint32_t inputs = 0;
    uint32_t outputs = 0;
    for (uint32_t slot = recording.first_slot[operation];
         slot < recording.first_slot[operation + 1]; ++slot) {
      const capture::Slot& s = recording.slots[slot];
      const bool is_output = s.direction == Direction::kOutput;
      const uint32_t place = is_output ? outputs++ : inputs++;
      if ((!is_output || s.moment == Moment::kBefore) && !recording.traits.inputs_are_values &&
          any_output)
        continue;
      values.push_back(
          {position, place, s.direction, s.index, leaf, recording.operations[operation].kind});
    }
  }
  return values;
}

Evidence weigh(const EvidenceSide& golden, const EvidenceSide& actual) {
  const std::vector<Looks> golden_looks = read_looks(golden);
  const std::vector<Looks> actual_looks = read_looks(actual);
  Evidence out;
  for (const Looks& each : golden_looks) {
    out.golden_content.push_back(each.content);
    out.golden_columns.push_back(each.columns);
  }
  for (const Looks& each : actual_looks) {
    out.actual_content.push_back(each.content);
    out.actual_columns.push_back(each.columns);
    out.actual_is_float.push_back(each.is_float);
  }
  out.cells.resize(golden_looks.size() * actual_looks.size());
  parallel_for(golden_looks.size(), 0, [&](size_t g) {
    for (size_t a = 0; a < actual_looks.size(); ++a) {
      if (golden_looks[g].content == 0 || actual_looks[a].content == 0 ||
          golden_looks[g].is_float != actual_looks[a].is_float)
        continue;
      Evidence::Cell& cell = out.cells[g * actual_looks.size() + a];
      cell.whole = whole_form(golden_looks[g], actual_looks[a]);
      if (golden_looks[g].is_float) cell.part = part_form(golden_looks[g], actual_looks[a]);
    }
  });
  find_sums(golden_looks, actual_looks, golden, actual, out);
  out.golden_kin = kin_of(golden_looks);
  out.actual_kin = kin_of(actual_looks);
  if (golden.tokens.count != actual.tokens.count)
    for (Evidence::Cell& cell : out.cells)
      for (auto* form : {&cell.whole, &cell.part})
        if (*form && (*form)->fit == Fit::kNone) (*form)->fit = Fit::kRepeat;
  return out;
}

std::vector<Shape> shapes_of(const EvidenceSide& side) {
  std::vector<std::optional<Shape>> shapes(side.values.size());
  parallel_for(side.values.size(), 0, [&](size_t i) {
    const Value& value = side.values[i];
    const auto round = side.round_of(side.segment.operation_at(value.position));
    const uint32_t slot = slot_of(side.recording, side.segment, value);
    if (round && side.recording.has(0, *round, slot))
      shapes[i] = read_shape(side.recording.record(0, *round, slot));
  });
  std::vector<Shape> out;
  for (auto& shape : shapes)
    if (shape) out.push_back(std::move(*shape));
  return out;
}

}  // namespace ait::match
