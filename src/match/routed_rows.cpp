#include "match/routed_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "match/rows.h"

namespace ait::match {
namespace {

using By = Routed::By;

const char* const kUnknownRows =
    "its rows are those of experts, and nothing says which rows of the two runs are the same.";

using TokenOfExpert = std::pair<uint32_t, int64_t>;

// Of a module for one expert it does not matter which of the numbers it has in either run.
std::vector<TokenOfExpert> rows_of(const Routed& routed, const Integers& choice, bool by_choice) {
  const auto each = static_cast<size_t>(choice.shape[1]);
  const size_t tokens = choice.numbers.size() / each;
  std::vector<TokenOfExpert> all;
  all.reserve(choice.numbers.size());
  for (size_t i = 0; i < choice.numbers.size(); ++i) {
    const size_t token = by_choice ? i % tokens : i / each;
    const size_t place = by_choice ? i / tokens : i % each;
    all.emplace_back(static_cast<uint32_t>(token), choice.numbers[token * each + place]);
  }
  if (routed.by == By::kAll) return all;
  int64_t expert = routed.number;
  if (routed.by == By::kCall) {
    // The experts that some token was given to, from the first to the last.
    const std::set<int64_t> experts(choice.numbers.begin(), choice.numbers.end());
    if (routed.number >= experts.size()) return {};
    expert = *std::next(experts.begin(), routed.number);
  }
  std::erase_if(all, [&](const TokenOfExpert& row) { return row.second != expert; });
  if (routed.by == By::kExpert)
    for (TokenOfExpert& row : all) row.second = 0;
  return all;
}

// Rows of golden's, ascending, each with the one of mine that is of the same token and expert.
using Correspondence = std::vector<std::pair<uint32_t, uint32_t>>;

struct Way {
  Correspondence rows;
  uint8_t orders = 0;  // in which the rows correspond so
};

// The different ways in which the rows can correspond.
std::vector<Way> ways_of(const RoutedPair& pair, const Integers& golden, const Integers& actual) {
  std::vector<Way> out;
  for (const bool golden_by_choice : {false, true})
    for (const bool actual_by_choice : {false, true}) {
      const auto order = static_cast<uint8_t>(
          1U << (2U * (golden_by_choice ? 1U : 0U) + (actual_by_choice ? 1U : 0U)));
      if ((pair.orders & order) == 0) continue;
      const auto goldens = rows_of(pair.golden.routed, golden, golden_by_choice);
      const auto actuals = rows_of(pair.actual.routed, actual, actual_by_choice);
      std::map<TokenOfExpert, uint32_t> place;
      for (uint32_t i = 0; i < actuals.size(); ++i) place.emplace(actuals[i], i);
      Correspondence rows;
      for (uint32_t i = 0; i < goldens.size(); ++i)
        if (const auto found = place.find(goldens[i]); found != place.end())
          rows.emplace_back(i, found->second);
      const auto same =
          std::find_if(out.begin(), out.end(), [&](const Way& way) { return way.rows == rows; });
      if (same == out.end())
        out.push_back({std::move(rows), order});
      else
        same->orders = static_cast<uint8_t>(same->orders | order);
    }
  return out;
}

// The one in which most rows agree, and more than in any other; none where data do not tell it.
const Way* way_by_data(const std::vector<Way>& ways, const RowTable& golden,
                       const RowTable& actual) {
  const Way* best = nullptr;
  size_t most = 0;
  for (const Way& way : ways) {
    const size_t agreeing = count_agreeing(golden, actual, way.rows);
    if (2 * agreeing <= way.rows.size() || agreeing < most) continue;
    best = agreeing > most ? &way : nullptr;
    most = agreeing;
  }
  return best;
}

}  // namespace

size_t count_rows(const Routed& routed, const Integers& choice) {
  return rows_of(routed, choice, false).size();
}

uint8_t orders_by_data(const RoutedPair& pair, const Integers& golden, const Integers& actual,
                       const ReadRowsOf& read) {
  const std::vector<Way> ways = ways_of(pair, golden, actual);
  if (ways.size() < 2) return pair.orders;
  const Way* found = way_by_data(ways, read(true, count_rows(pair.golden.routed, golden)),
                                 read(false, count_rows(pair.actual.routed, actual)));
  return found == nullptr ? pair.orders : found->orders;
}

RoutedRows rows_in_common(const RoutedPair& pair, const Integers& golden, const Integers& actual,
                          const ReadRowsOf& read) {
  const size_t golden_count = count_rows(pair.golden.routed, golden);
  const size_t actual_count = count_rows(pair.actual.routed, actual);
  RoutedPair known = pair;
  if (pair.golden.routed.by == By::kAll) known.orders = kBothByToken;
  const std::vector<Way> ways = ways_of(known, golden, actual);
  const size_t common = ways.empty() ? 0 : ways[0].rows.size();
  RoutedRows out;
  Correspondence rows;
  if (common == 0) {
    out.why_none = "the routers of the two runs gave no token to the same expert here.";
  } else if (pair.golden.routed.by == By::kAll) {
    // They lie by token, by expert, or otherwise, which nothing says.
    if (golden.numbers == actual.numbers && !pair.is_rearranged) return out;
    rows = pair_rows(read(true, golden_count), read(false, actual_count));
    if (rows.size() != common) out.why_none = kUnknownRows;
  } else {
    const Way* found = ways.size() == 1
                           ? &ways[0]
                           : way_by_data(ways, read(true, golden_count), read(false, actual_count));
    if (found == nullptr)
      out.why_none = kUnknownRows;
    else
      rows = found->rows;
  }
  const bool are_all = common == golden_count && common == actual_count;
  if (out.why_none.empty() && are_all && std::all_of(rows.begin(), rows.end(), [](const auto& row) {
        return row.first == row.second;
      }))
    return out;
  auto golden_rows = std::make_shared<RowChoice>();
  auto actual_rows = std::make_shared<RowChoice>();
  golden_rows->count = golden_count;
  actual_rows->count = actual_count;
  for (const auto& [golden_row, actual_row] : rows) {
    golden_rows->rows.push_back(golden_row);
    actual_rows->rows.push_back(actual_row);
  }
  out.golden = std::move(golden_rows);
  out.actual = std::move(actual_rows);
  return out;
}

}  // namespace ait::match
