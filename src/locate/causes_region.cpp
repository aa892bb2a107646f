// Which part of the value is hit, where the rest is sound: rows, columns, a head, an expert.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "locate/cause_families.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

constexpr size_t kLargestHead = 256;
constexpr size_t kSmallestHead = 4;
constexpr size_t kMostExperts = 512;
constexpr size_t kMostChosen = 8;      // experts for a token
constexpr size_t kMostExchanged = 64;  // experts of which all pairs are tried

void add_place(const Evidence& evidence, Candidates& out, const char* name,
               const std::string& part) {
  Candidate candidate;
  candidate.proof = Proof::kPlace;
  candidate.cause = {name,
                     fmt::format("only {} {} hit (error {}, {} beside it)", part,
                                 part.ends_with('s') ? "are" : "is", short_number(evidence.error()),
                                 short_number(evidence.region().outside)),
                     evidence.error(), evidence.region().outside};
  out.push_back(std::move(candidate));
}

// For each row that was looked at, the experts that an input chooses: it names them, or they are the
// largest `chosen` of its scores.
std::vector<std::vector<size_t>> choices(const Evidence& evidence, const CauseInput& input,
                                         size_t chosen) {
  const size_t columns = input.golden.elements() / evidence.row_count();
  const bool are_names = info(input.golden.dtype()).kind == DTypeKind::kInteger;
  std::vector<std::vector<size_t>> out;
  std::vector<double> row(columns);
  std::vector<size_t> order(columns);
  for (const size_t at : evidence.region().seen) {
    metrics::read_elements(input.golden.view(), at * columns, columns, row);
    out.emplace_back();
    if (are_names) {
      for (size_t k = 0; k < columns; ++k)
        if (row[k] >= 0 && row[k] < static_cast<double>(kMostExperts))
          out.back().push_back(static_cast<size_t>(row[k]));
      continue;
    }
    std::iota(order.begin(), order.end(), size_t{0});
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(std::min(chosen, columns));
    std::ranges::partial_sort(order, last, std::greater(), [&](size_t e) { return row[e]; });
    out.back().assign(order.begin(), last);
  }
  return out;
}

// The rows that are hit are those that choose one expert, or one of two that were exchanged.
std::optional<std::string> experts_of(const Evidence& evidence) {
  const Region& region = evidence.region();
  for (const CauseInput& input : evidence.fault().inputs) {
    if (!is_real(input.golden.dtype())) continue;
    const size_t columns = input.golden.elements() / evidence.row_count();
    if (columns == 0 || columns * evidence.row_count() != input.golden.elements()) continue;
    if (columns > kMostExperts || columns >= evidence.columns()) continue;
    const bool are_names = info(input.golden.dtype()).kind == DTypeKind::kInteger;
    if (!are_names && columns < 3) continue;
    for (size_t chosen = 1; chosen <= (are_names ? 1 : std::min(kMostChosen, columns - 1));
         ++chosen) {
      const auto of_rows = choices(evidence, input, chosen);
      size_t experts = 0;
      for (const auto& row : of_rows)
        for (const size_t expert : row) experts = std::max(experts, expert + 1);
      const auto are_hit = [&](size_t a, size_t b) {
        size_t hits = 0;
        for (size_t k = 0; k < of_rows.size(); ++k) {
          const bool is_chosen =
              std::ranges::any_of(of_rows[k], [&](size_t e) { return e == a || e == b; });
          const bool is_hit = std::ranges::binary_search(region.rows, region.seen[k]);
          if (is_chosen != is_hit) return false;
          hits += is_hit ? 1 : 0;
        }
        return hits > 0;
      };
      for (size_t a = 0; a < experts; ++a)
        if (are_hit(a, a))
          return fmt::format("what expert {} gives to its {} rows", a, region.rows.size());
      if (experts > kMostExchanged || region.rows.size() < 3) continue;
      for (size_t a = 0; a < experts; ++a)
        for (size_t b = a + 1; b < experts; ++b)
          if (are_hit(a, b))
            return fmt::format("what experts {} and {} give to their {} rows", a, b,
                               region.rows.size());
    }
  }
  return std::nullopt;
}

// All rows that are hit have the same index in one of the leading axes, and all such rows are hit.
std::optional<std::pair<size_t, size_t>> common_index(const Evidence& evidence) {
  const Shape& shape = evidence.fault().golden.shape();
  const std::vector<size_t>& rows = evidence.region().rows;
  size_t below = 1;
  for (size_t axis = shape.size() - 1; axis-- > 0;) {
    const auto size = static_cast<size_t>(shape[axis]);
    const auto index = [&](size_t row) { return row / below % size; };
    const size_t first = index(rows.front());
    const auto is_there = [&](size_t row) { return index(row) == first; };
    if (size > 1 && std::ranges::all_of(rows, is_there) &&
        static_cast<size_t>(std::ranges::count_if(evidence.region().seen, is_there)) == rows.size())
      return std::pair(axis, first);
    below *= size;
  }
  return std::nullopt;
}

void row_places(const Evidence& evidence, Candidates& out) {
  const std::vector<size_t>& rows = evidence.region().rows;
  const size_t rank = evidence.fault().golden.shape().size();
  if (const auto experts = experts_of(evidence)) add_place(evidence, out, "one-expert", *experts);
  if (rows.size() == 1) return add_place(evidence, out, "one-row", fmt::format("row {}", rows[0]));
  if (const auto found = common_index(evidence); found && rank >= 3) {
    const auto [axis, index] = *found;
    // [batch, heads, tokens, size], or [tokens, heads, size].
    const bool is_head = (rank == 4 && axis == 1) ||
                         (rank >= 3 && axis == rank - 2 && evidence.columns() <= kLargestHead);
    return add_place(evidence, out, is_head ? "one-head" : "masked-region",
                     fmt::format("what has index {} in axis {}", index, axis));
  }
  const bool is_stretch = rows.back() - rows.front() + 1 == rows.size();
  if (is_stretch)
    add_place(evidence, out, "masked-region",
              fmt::format("the stretch of rows {} to {}", rows.front(), rows.back()));
  else
    add_place(evidence, out, "some-rows",
              fmt::format("{} of {} rows", rows.size(), evidence.region().seen.size()));
}

// My value is the same in all rows where it is hit, and golden's is not.
bool is_constant(const Evidence& evidence) {
  if (evidence.sample().size() < 2) return false;
  const Fit mine = evidence.fit([&](size_t, size_t c) { return evidence.actual()[0][c]; });
  const double golden =
      evidence.model_error([&](size_t, size_t c) { return evidence.golden()[0][c]; });
  return mine.residual <= 0.125 * golden && evidence.explains(mine);
}

void column_places(const Evidence& evidence, Candidates& out) {
  const std::vector<size_t>& columns = evidence.region().columns;
  const size_t all = evidence.columns();
  if (columns.size() == 1)
    return add_place(evidence, out, "one-channel", fmt::format("column {}", columns[0]));
  const size_t first = columns.front();
  const size_t last = columns.back();
  const bool is_stretch = last - first + 1 == columns.size();
  if (is_stretch && columns.size() * 8 >= all && is_constant(evidence)) {
    const Fit fit = evidence.fit([&](size_t, size_t c) { return evidence.actual()[0][c]; });
    evidence.add(out, Proof::kRelation, "one-shard", "leaving nothing but a bias", fit);
  }
  if (!is_stretch)
    return add_place(evidence, out, "some-channels",
                     fmt::format("{} of {} columns", columns.size(), all));
  // The smallest aligned stretch that holds them, if it is about as large.
  std::vector<size_t> sizes = divisors(all);
  std::ranges::reverse(sizes);
  for (const size_t size : sizes) {
    if (size < kSmallestHead || first / size != last / size || columns.size() * 2 < size) continue;
    const size_t number = first / size;
    const std::string part =
        fmt::format("the stretch of columns {} to {}", number * size, number * size + size - 1);
    if (size <= kLargestHead && size * 2 <= all)
      add_place(evidence, out, "one-head",
                fmt::format("{}, head {} of heads of {}", part, number, size));
    if (size * 8 >= all && size < all)
      add_place(evidence, out, "one-shard",
                fmt::format("{}, part {} of {}", part, number, all / size));
    return;
  }
  add_place(evidence, out, "masked-region",
            fmt::format("the stretch of columns {} to {}", first, last));
}

}  // namespace

void region_causes(const Evidence& evidence, Candidates& out) {
  if (evidence.region().rows_confined) row_places(evidence, out);
  if (evidence.region().columns_confined) column_places(evidence, out);
}

}  // namespace ait::locate
