#include "match/readings.h"

#include <algorithm>
#include <utility>

namespace ait::match {
namespace {

// Ranks that computed the same thing differ by rounding at most.
constexpr double kReplica = 0.05;

// The same tensor in another precision, or summed in another order, differs by rounding: bf16's,
// four times over.
constexpr double kKin = 0.02;

Reading reading(Sample sample, RankUse ranks, Join join) {
  Reading out{std::move(sample), ranks, {}};
  out.transform.heads_first = out.sample.heads_first;
  out.transform.join = join;
  return out;
}

bool have_same_width(const std::vector<Sample>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const Sample& sample) { return sample.columns == ranks[0].columns; });
}

// Zeros and NaN have no distance, but may be the same.
bool are_replicas(const std::vector<Sample>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const Sample& sample) {
    return distance(ranks[0], sample).value <= kReplica || sample.hash() == ranks[0].hash();
  });
}

// The lowest bit is set, as 0 stands for no content.
uint64_t content_of(const Sample& sample) { return sample.informative() ? sample.hash() | 1 : 0; }

uint64_t content_of_shards(const std::vector<Sample>& ranks) {
  if (std::none_of(ranks.begin(), ranks.end(),
                   [](const Sample& sample) { return sample.informative(); }))
    return 0;
  uint64_t content = content_of(ranks[0]);
  for (const Sample& sample : ranks) content = content * 31 + sample.hash();
  return content | 1;
}

// Ranks that hold different things: shards of columns, or partial sums.
void read_shards(const std::vector<Sample>& ranks, Readings& out) {
  out.ways.push_back(reading(side_by_side(ranks), RankUse::kAll, Join::kColumns));
  if (!have_same_width(ranks)) return;
  // A row of a shard may be several dimensions: [tokens, heads, size].
  out.ways.back().transform.columns = static_cast<int64_t>(ranks[0].columns);
  out.ways.push_back(reading(sum_of(ranks), RankUse::kAll, Join::kSum));
}

}  // namespace

Readings readings_of(std::vector<std::vector<Sample>> layouts) {
  Readings out;
  for (std::vector<Sample>& ranks : layouts) {
    const bool is_usual = out.ways.empty();
    const bool are_shards = ranks.size() > 1 && !are_replicas(ranks);
    if (is_usual) {
      out.columns = ranks[0].columns;
      out.is_float = ranks[0].is_float;
      out.content = are_shards ? content_of_shards(ranks) : content_of(ranks[0]);
      if (!are_shards) out.constant = ranks[0].constant();
      out.is_same = ranks.size() > 1 && !are_shards && out.content != 0;
    }
    if (are_shards) {
      read_shards(ranks, out);
      if (is_usual && have_same_width(ranks)) out.shards = std::move(ranks);
    } else {
      const RankUse use = ranks.size() == 1 ? RankUse::kOne : RankUse::kEach;
      out.ways.push_back(reading(std::move(ranks[0]), use, Join::kNone));
    }
  }
  return out;
}

bool are_kin(const Readings& a, const Readings& b) {
  for (const Reading& x : a.ways)
    for (const Reading& y : b.ways)
      if (distance(x.sample, y.sample).value <= kKin) return true;
  return false;
}

}  // namespace ait::match
