#include "opcheck/summary.h"

#include <algorithm>
#include <array>

namespace ait::opcheck {
namespace {

// What rounding does not explain comes before what is not up to the standard.
bool is_worse(const CheckRow& a, const CheckRow& b) {
  if (a.is_outside_bound() != b.is_outside_bound()) return a.is_outside_bound();
  return a.of_bound.value_or(0) > b.of_bound.value_or(0);
}

constexpr std::array<std::string_view, 3> kFailOnWords = {"failed", "bound", "unchecked"};

}  // namespace

void Summary::add(const std::vector<CheckRow>& rows) {
  ++operations;
  saved += !rows.empty() && !rows.front().error_data.empty();
  for (const CheckRow& row : rows) {
    if (!row.was_compared()) {
      ++unchecked;
      ++reasons[row.reasons.empty() ? "no reason is known" : row.reasons.back()];
      continue;
    }
    ++outputs;
    rerun += row.source.starts_with(kRerunSource);
    outside += row.is_outside_bound();
    below += row.verdict == Verdict::kFailed;
    if (!row.is_failing()) continue;
    worst.insert(std::upper_bound(worst.begin(), worst.end(), row, is_worse), row);
    if (worst.size() > kWorstRows) worst.pop_back();
  }
}

std::string_view word(FailOn condition) { return kFailOnWords[static_cast<size_t>(condition)]; }

Result<std::vector<FailOn>> parse_fail_on(const std::vector<std::string>& words) {
  std::vector<FailOn> out;
  for (const std::string& each : words) {
    const auto* found = std::find(kFailOnWords.begin(), kFailOnWords.end(), each);
    if (found == kFailOnWords.end())
      return fail(Error(ErrorCode::kUsage) << "--fail-on does not know '" << printable(each)
                                           << "', give failed, bound or unchecked");
    out.push_back(static_cast<FailOn>(found - kFailOnWords.begin()));
  }
  return out;
}

bool is_met(FailOn condition, const Summary& summary) {
  switch (condition) {
    case FailOn::kStandard:
      return summary.below > 0;
    case FailOn::kBound:
      return summary.outside > 0;
    default:
      return summary.unchecked > 0;
  }
}

}  // namespace ait::opcheck
