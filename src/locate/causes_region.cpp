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
constexpr size_t kFewestRows = 4;
// As in evidence.cpp: what is hit, and how quiet the rest has to be.
constexpr double kHitAboveNoise = 4;
constexpr double kHitOfWorst = 0.125;
constexpr double kQuietAboveNoise = 2;
constexpr double kQuietOfChosen = 0.25;
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

// Errors of the rows that choose one of these experts, and of the others.
struct Split {
  double chosen = 0;  // root mean square
  double others = 0;
  size_t rows = 0;  // that choose
  size_t hit = 0;   // those of them that are hit
  bool fits = false;
};

Split split_by(const Evidence& evidence, const std::vector<std::vector<size_t>>& choices, size_t a,
               size_t b) {
  const Region& region = evidence.region();
  const double worst = *std::ranges::max_element(region.row_errors);
  const double bar = std::max(kHitAboveNoise * evidence.noise(), kHitOfWorst * worst);
  Split out;
  size_t missed = 0;
  for (size_t k = 0; k < choices.size(); ++k) {
    const double error = region.row_errors[k];
    const bool chooses = std::ranges::find(choices[k], a) != choices[k].end() ||
                         std::ranges::find(choices[k], b) != choices[k].end();
    (chooses ? out.chosen : out.others) += error * error;
    out.rows += chooses ? 1 : 0;
    out.hit += chooses && error > bar ? 1 : 0;
    missed += !chooses && error > bar ? 1 : 0;
  }
  const size_t rest = choices.size() - out.rows;
  if (out.rows == 0 || rest == 0) return out;
  out.chosen = std::sqrt(out.chosen / static_cast<double>(out.rows));
  out.others = std::sqrt(out.others / static_cast<double>(rest));
  out.fits =
      missed == 0 && out.hit * 2 >= out.rows &&
      out.others <= std::max(kQuietAboveNoise * evidence.noise(), kQuietOfChosen * out.chosen);
  return out;
}

// The rows that are hit are those that choose one expert, or one of two that were exchanged.
void expert_places(const Evidence& evidence, Candidates& out) {
  const Region& region = evidence.region();
  if (region.seen.size() < kFewestRows) return;
  for (const CauseInput& input : evidence.fault().inputs) {
    if (!is_real(input.golden.dtype())) continue;
    const size_t columns = input.golden.elements() / evidence.row_count();
    if (columns == 0 || columns * evidence.row_count() != input.golden.elements()) continue;
    if (columns > kMostExperts || columns >= evidence.columns()) continue;
    const bool are_names = info(input.golden.dtype()).kind == DTypeKind::kInteger;
    const bool are_scores = input.tensor.find("gate") != std::string::npos ||
                            input.tensor.find("router") != std::string::npos;
    if (!are_names && (!are_scores || columns < 3)) continue;
    const size_t most = are_names ? 1 : std::min(kMostChosen, columns - 1);
    for (size_t chosen = 1; chosen <= most; ++chosen) {
      const auto of_rows = choices(evidence, input, chosen);
      size_t experts = 0;
      for (const auto& row : of_rows)
        for (const size_t expert : row) experts = std::max(experts, expert + 1);
      Split best;
      std::string which;
      const auto offer = [&](size_t a, size_t b) {
        const Split split = split_by(evidence, of_rows, a, b);
        // Scores of one row tell nothing: some expert is always its own.
        if (!split.fits || (!are_names && split.hit < 2)) return;
        // The expert of which most rows are hit.
        if (best.fits && split.hit * best.rows <= best.hit * split.rows) return;
        best = split;
        which = a == b ? fmt::format("expert {}", a) : fmt::format("experts {} and {}", a, b);
      };
      for (size_t a = 0; a < experts; ++a) offer(a, a);
      for (size_t a = 0; !best.fits && experts <= kMostExchanged && a < experts; ++a)
        for (size_t b = a + 1; b < experts; ++b) offer(a, b);
      if (!best.fits) continue;
      Candidate candidate;
      candidate.proof = Proof::kPlace;
      candidate.cause = {
          "one-expert",
          fmt::format("only what {} gives to {} rows is hit (error {}, {} in other rows)", which,
                      best.rows, short_number(best.chosen), short_number(best.others)),
          best.chosen, best.others};
      out.push_back(std::move(candidate));
      return;
    }
  }
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
  const bool is_one_row = evidence.region().rows_confined && evidence.region().rows.size() == 1;
  if (!is_one_row) expert_places(evidence, out);
  if (evidence.region().rows_confined) row_places(evidence, out);
  if (is_one_row) expert_places(evidence, out);
  if (evidence.region().columns_confined) column_places(evidence, out);
}

}  // namespace ait::locate
