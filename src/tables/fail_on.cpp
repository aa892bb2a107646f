#include "tables/fail_on.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace ait::tables {
namespace {

using Kind = Condition::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 3> kWords = {
    {{"failed", Kind::kFailed}, {"nan", Kind::kNan}, {"unmatched", Kind::kUnmatched}}};

// Columns that can hold a number: everything measured, not the paths, flags and texts.
bool is_measured(const ComparisonColumn& column) {
  static constexpr std::array<std::string_view, 2> kFlags = {"non_finite_agree", "identical"};
  return column.group != report::ColumnGroup::kSubject &&
         column.group != report::ColumnGroup::kReason &&
         column.group != report::ColumnGroup::kOrigin &&
         std::find(kFlags.begin(), kFlags.end(), column.name) == kFlags.end();
}

std::string choices() {
  std::string out = "failed, nan, unmatched, or one of these with < or > and a number: ";
  bool first = true;
  for (const ComparisonColumn& column : all_comparison_columns()) {
    if (!is_measured(column)) continue;
    if (!std::exchange(first, false)) out += ", ";
    out += column.name;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<double> parse_number(std::string_view text) {
  double value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(value))
    return std::nullopt;
  return value;
}

Result<Condition> parse_condition(std::string_view text) {
  for (const auto& [word, kind] : kWords)
    if (text == word) return Condition{kind, std::string(text)};

  const size_t sign = text.find_first_of("<>");
  const std::string_view name = trimmed(text.substr(0, sign));
  const ComparisonColumn* metric = find_comparison_column(name);
  if (metric == nullptr || !is_measured(*metric) || sign == std::string_view::npos)
    return fail(Error(ErrorCode::kUsage)
                << "--fail-on does not know '" << printable(text) << "'; give " << choices());
  const auto limit = parse_number(trimmed(text.substr(sign + 1)));
  if (!limit)
    return fail(Error(ErrorCode::kUsage)
                << "--fail-on wants a number after '" << printable(text.substr(0, sign + 1))
                << "', not '" << printable(text.substr(sign + 1)) << "'");
  return Condition{text[sign] == '<' ? Kind::kBelow : Kind::kAbove, std::string(text), metric,
                   *limit};
}

std::optional<double> as_number(const report::Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* count = std::get_if<uint64_t>(&cell)) return static_cast<double>(*count);
  if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

// Where there are no metrics, statistics of both sides may still prove that the distance is larger.
bool proves_above(const Condition& condition, const compare::Row& row) {
  return condition.kind == Kind::kAbove &&
         condition.metric->name == "relative_euclidean_distance" && row.distance_at_least &&
         *row.distance_at_least > condition.limit;
}

}  // namespace

Result<std::vector<Condition>> parse_fail_on(std::string_view list) {
  std::vector<Condition> out;
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    auto condition = parse_condition(trimmed(list.substr(start, end - start)));
    if (!condition) return fail(condition.error());
    out.push_back(std::move(*condition));
    start = end + 1;
  }
  return out;
}

bool hits(const Condition& condition, const compare::Row& row) {
  switch (condition.kind) {
    case Kind::kFailed:
      return compare::metrics_of(row) == nullptr && !row.distance_at_least;
    case Kind::kNan:
      return row.golden.has_non_finite() || row.actual.has_non_finite();
    case Kind::kUnmatched:
      return row.golden.is_missing() || row.actual.is_missing();
    case Kind::kBelow:
    case Kind::kAbove: {
      const auto value = as_number(condition.metric->value(row));
      if (!value) return proves_above(condition, row);
      return condition.kind == Kind::kBelow ? !(*value >= condition.limit)
                                            : !(*value <= condition.limit);
    }
  }
  return false;
}

}  // namespace ait::tables
