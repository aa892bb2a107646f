#include "match/forms.h"

#include <algorithm>

namespace ait::match {
namespace {

// Parts are searched for at many places, so they have to agree better than wholes.
constexpr double kPartDistance = 0.2;

// A projection for one head in one for all heads of a large model.
constexpr size_t kMaxWidthRatio = 64;

void keep_nearer(std::optional<Form>& best, const Form& form) {
  if (!best || form.distance.value < best->distance.value) best = form;
}

// The distance of several pieces is that of the worst.
void add_piece(Distance& all, const Distance& piece) {
  all.value = std::max(all.value, piece.value);
  all.elements += piece.elements;
}

// Each of golden's shards against my shard of the same rank.
std::optional<Form> shard_by_shard(const Readings& golden, const Readings& actual) {
  if (golden.shards.empty() || golden.shards.size() != actual.shards.size() ||
      golden.columns != actual.columns)
    return std::nullopt;
  Form form;
  form.golden_ranks = form.actual_ranks = RankUse::kEach;
  form.distance = {0, 0};
  for (size_t i = 0; i < golden.shards.size(); ++i)
    add_piece(form.distance, distance(golden.shards[i], actual.shards[i]));
  return form;
}

bool may_hold(size_t wide, size_t narrow) {
  return narrow < wide && wide <= kMaxWidthRatio * narrow;
}

// A narrow reading found in a wide value.
struct Part {
  const Reading* narrow;
  Transform wide;  // which columns of the wide one these are
  RankUse wide_ranks;
  Distance distance;
};

Transform take_columns(Transform from, size_t width, size_t first, size_t taken, Join join) {
  from.columns = static_cast<int64_t>(width);
  from.first = static_cast<int64_t>(first);
  from.taken = static_cast<int64_t>(taken);
  from.join = join;
  return from;
}

// In how many pieces a part may lie: one, or as many as there are heads, each beside the same
// head's other parts. A piece has to be wide enough to be recognised.
std::vector<size_t> piece_counts(size_t narrow, size_t wide) {
  constexpr size_t kMostPieces = 128;
  constexpr size_t kNarrowestPiece = 8;
  std::vector<size_t> out;
  for (size_t count = 1; count <= std::min(kMostPieces, narrow / kNarrowestPiece); ++count)
    if (narrow % count == 0 && wide % count == 0) out.push_back(count);
  return out;
}

// The narrow columns, in equal pieces, at the same place of each of as many stretches of the wide
// tensor, or of each shard one after the other: half of k_proj's heads at columns 32 to 47 of rank
// 0's fused projection, the other half there on rank 1.
std::optional<Part> find_pieces(const Reading& narrow, std::span<const Sample> wide, Join join,
                                RankUse ranks, const Transform& read_as) {
  if (wide.empty() || narrow.sample.columns % wide.size() != 0) return std::nullopt;
  const size_t taken = narrow.sample.columns / wide.size();
  const size_t width = wide[0].columns;
  if (!may_hold(width, taken)) return std::nullopt;
  for (const size_t pieces : piece_counts(taken, width)) {
    const size_t piece = taken / pieces;
    const size_t period = width / pieces;
    const auto first = find_columns(narrow.sample, 0, piece, wide[0], period);
    if (!first) continue;
    Part part{&narrow, take_columns(read_as, width, *first, piece, join), ranks, {0, 0}};
    if (pieces > 1) part.wide.period = static_cast<int64_t>(period);
    for (size_t i = 0; i < wide.size() * pieces && part.distance.value <= kPartDistance; ++i)
      add_piece(part.distance, distance(narrow.sample, i * piece, wide[i / pieces],
                                        *first + i % pieces * period, piece));
    if (part.distance.value <= kPartDistance && part.distance.agrees()) return part;
  }
  return std::nullopt;
}

// All places of `wide` that hold some reading of `narrow`.
std::vector<Part> find_parts(const Readings& narrow, const Readings& wide) {
  std::vector<Part> parts;
  const auto add = [&](std::optional<Part> part) {
    if (part) parts.push_back(*part);
  };
  // The usual reading, and others with the same rows: what else a shape may mean is for wholes.
  const auto is_plain = [](const Readings& of, const Reading& way) {
    return way.sample.last_only == of.ways[0].sample.last_only && !way.sample.once;
  };
  for (const Reading& narrow_way : narrow.ways) {
    if (!is_plain(narrow, narrow_way)) continue;
    for (const Reading& wide_way : wide.ways)
      if (wide_way.ranks != RankUse::kAll && is_plain(wide, wide_way))
        add(find_pieces(narrow_way, {&wide_way.sample, 1}, Join::kNone, wide_way.ranks,
                        wide_way.transform));
    add(find_pieces(narrow_way, wide.shards, Join::kColumns, RankUse::kAll, {}));
  }
  return parts;
}

}  // namespace

std::optional<Form> whole_form(const Readings& golden, const Readings& actual) {
  std::optional<Form> best;
  for (const Reading& g : golden.ways) {
    for (const Reading& a : actual.ways) {
      const bool one_has_lasts = g.sample.last_only != a.sample.last_only;
      const bool one_has_once = g.sample.once != a.sample.once;
      if (g.sample.columns != a.sample.columns || g.sample.own_rows != a.sample.own_rows ||
          (one_has_lasts && one_has_once))
        continue;
      const Fit fit = one_has_lasts ? Fit::kLastRows : one_has_once ? Fit::kRepeat : Fit::kNone;
      keep_nearer(best,
                  {g.transform, a.transform, g.ranks, a.ranks, fit, distance(g.sample, a.sample)});
    }
  }
  if (const auto form = shard_by_shard(golden, actual)) keep_nearer(best, *form);
  return best;
}

std::optional<Form> part_form(const Readings& golden, const Readings& actual) {
  std::optional<Form> best;
  for (const Part& part : find_parts(golden, actual))
    keep_nearer(best, {part.narrow->transform, part.wide, part.narrow->ranks, part.wide_ranks,
                       Fit::kNone, part.distance});
  for (const Part& part : find_parts(actual, golden))
    keep_nearer(best, {part.wide, part.narrow->transform, part.wide_ranks, part.narrow->ranks,
                       Fit::kNone, part.distance});
  return best;
}

}  // namespace ait::match
