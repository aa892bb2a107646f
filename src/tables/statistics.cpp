#include "tables/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ait::tables {
namespace {

using compare::Row;
using report::Cell;
using enum report::ColumnGroup;

using Value = double metrics::Side::*;

// Nothing where a side has no statistics, or the two are of different numbers of elements.
template <Value value>
std::optional<double> difference(const Row& row) {
  const auto& golden = row.golden.statistics;
  const auto& actual = row.actual.statistics;
  if (!golden || !actual || golden->elements == 0 || golden->elements != actual->elements)
    return std::nullopt;
  return std::abs(*actual.*value - *golden.*value);
}

template <Value value>
Cell absolute(const Row& row) {
  const auto apart = difference<value>(row);
  return apart ? Cell(*apart) : Cell();
}

template <Value value>
Cell relative(const Row& row) {
  const auto apart = difference<value>(row);
  if (!apart) return Cell();
  return *apart / std::max(std::abs(*row.golden.statistics.*value), metrics::kMaskEpsilon);
}

const auto& all_statistics_columns() {
  const auto own = [](std::string_view name, report::ColumnGroup group) {
    const ComparisonColumn* column = find_comparison_column(name);
    return ComparisonColumn{column->name, group, column->value, column->style};
  };
  using Side = metrics::Side;
  static const auto columns = std::to_array<ComparisonColumn>({
      own("token_id", kSubject),
      own("data_id", kSubject),
      own("golden_data_path", kSubject),
      own("golden_op_type", kSubject),
      own("my_data_path", kSubject),
      own("my_op_type", kSubject),
      {"max_stat_absolute_error", kMetric, absolute<&Side::maximum>},
      {"max_stat_relative_error", kMetric, relative<&Side::maximum>},
      {"min_stat_absolute_error", kMetric, absolute<&Side::minimum>},
      {"min_stat_relative_error", kMetric, relative<&Side::minimum>},
      {"mean_stat_absolute_error", kMetric, absolute<&Side::mean>},
      {"mean_stat_relative_error", kMetric, relative<&Side::mean>},
      {"l2norm_stat_absolute_error", kMetric, absolute<&Side::l2_norm>},
      {"l2norm_stat_relative_error", kMetric, relative<&Side::l2_norm>},
      own("cmp_fail_reason", kReason),
  });
  return columns;
}

}  // namespace

ComparisonColumns statistics_columns() {
  return report::choose<Row>(all_statistics_columns(), false);
}

}  // namespace ait::tables
