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
constexpr size_t kMostChosen = 8;  // experts for a token

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

// The rows that are hit are those of one expert: the k largest of an input's row choose it, and of
// no other row.
std::optional<std::string> expert_of(const Evidence& evidence) {
  const Region& region = evidence.region();
  for (const CauseInput& input : evidence.fault().inputs) {
    const size_t experts = input.golden.elements() / evidence.row_count();
    if (experts * evidence.row_count() != input.golden.elements()) continue;
    if (experts < 2 || experts > kMostExperts || experts >= evidence.columns()) continue;
    // For each expert and k: how many rows choose it, and how many of these are hit.
    std::vector<size_t> chosen(experts * kMostChosen);
    std::vector<size_t> hit(experts * kMostChosen);
    std::vector<double> row(experts);
    std::vector<size_t> order(experts);
    for (const size_t at : region.seen) {
      metrics::read_elements(input.golden.view(), at * experts, experts, row);
      std::iota(order.begin(), order.end(), size_t{0});
      const size_t most = std::min(kMostChosen, experts);
      std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(most),
                                std::greater(), [&](size_t e) { return row[e]; });
      const bool is_hit = std::ranges::binary_search(region.rows, at);
      for (size_t k = 0; k < most; ++k)
        for (size_t n = k; n < most; ++n) {
          ++chosen[order[k] * kMostChosen + n];
          hit[order[k] * kMostChosen + n] += is_hit ? 1 : 0;
        }
    }
    for (size_t k = 0; k < kMostChosen; ++k)
      for (size_t e = 0; e < experts; ++e) {
        const size_t place = e * kMostChosen + k;
        if (hit[place] == region.rows.size() && chosen[place] == hit[place])
          return fmt::format("the {} {} that choose expert {}", hit[place],
                             hit[place] == 1 ? "row" : "rows", e);
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
  // One row is chosen by its first expert, whichever that is.
  if (rows.size() > 1)
    if (const auto expert = expert_of(evidence)) add_place(evidence, out, "one-expert", *expert);
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

void column_places(const Evidence& evidence, Candidates& out) {
  const std::vector<size_t>& columns = evidence.region().columns;
  const size_t all = evidence.columns();
  if (columns.size() == 1)
    return add_place(evidence, out, "one-channel", fmt::format("column {}", columns[0]));
  const size_t first = columns.front();
  const size_t last = columns.back();
  if (last - first + 1 != columns.size())
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
