#include "compare/columns.h"

#include <algorithm>
#include <array>

namespace ait::compare {
namespace {

using metrics::Comparison;
using metrics::RowFinding;
using report::Cell;
using report::NumberStyle;

Cell dtype_cell(const Side& side) {
  return side.dtype ? Cell("torch." + std::string(name(*side.dtype))) : Cell();
}

Cell shape_cell(const Side& side) { return side.present() ? Cell(side.shape) : Cell(); }

// The getters below are templates over what they read, so that a column is a line: `get` is a
// lambda without captures, and a row that lacks the part gives an empty cell.
template <auto get>
Cell of_golden(const Row& row) {
  const auto& statistics = row.golden.statistics;
  return statistics && statistics->elements > 0 ? Cell(get(*statistics)) : Cell();
}

template <auto get>
Cell of_actual(const Row& row) {
  const auto& statistics = row.actual.statistics;
  return statistics && statistics->elements > 0 ? Cell(get(*statistics)) : Cell();
}

template <auto get>
Cell of_metrics(const Row& row) {
  const Comparison* comparison = metrics_of(row);
  return comparison != nullptr ? Cell(get(*comparison)) : Cell();
}

// Known even where the metrics are withheld or no position is finite on both sides.
template <auto get>
Cell of_comparison(const Row& row) {
  return row.comparison ? Cell(get(*row.comparison)) : Cell();
}

template <auto get>
Cell of_rows(const Row& row) {
  const Comparison* comparison = metrics_of(row);
  return comparison != nullptr && comparison->row ? Cell(get(*comparison->row)) : Cell();
}

constexpr auto kMinimum = [](const metrics::Side& s) { return s.minimum; };
constexpr auto kMaximum = [](const metrics::Side& s) { return s.maximum; };
constexpr auto kMean = [](const metrics::Side& s) { return s.mean; };
constexpr auto kNorm = [](const metrics::Side& s) { return s.l2_norm; };
constexpr auto kNan = [](const metrics::Side& s) { return s.nan; };
constexpr auto kInf = [](const metrics::Side& s) { return s.inf(); };

using enum ColumnGroup;

constexpr auto kColumns = std::to_array<Column>({
    {"token_id", kPair, [](const Row& r) { return Cell(r.token_id); }},
    {"data_id", kPair, [](const Row& r) { return Cell(r.data_id); }},
    {"golden_data_path", kPair, [](const Row& r) { return Cell(r.golden.path); }},
    {"golden_dtype", kPair, [](const Row& r) { return dtype_cell(r.golden); }},
    {"golden_shape", kPair, [](const Row& r) { return shape_cell(r.golden); }},
    {"golden_max_value", kPair, of_golden<kMaximum>},
    {"golden_min_value", kPair, of_golden<kMinimum>},
    {"golden_mean_value", kPair, of_golden<kMean>},
    {"my_data_path", kPair, [](const Row& r) { return Cell(r.actual.path); }},
    {"my_dtype", kPair, [](const Row& r) { return dtype_cell(r.actual); }},
    {"my_shape", kPair, [](const Row& r) { return shape_cell(r.actual); }},
    {"my_max_value", kPair, of_actual<kMaximum>},
    {"my_min_value", kPair, of_actual<kMinimum>},
    {"my_mean_value", kPair, of_actual<kMean>},
    {"cosine_similarity", kMetric,
     of_metrics<[](const Comparison& c) { return c.cosine_similarity; }>,
     NumberStyle::kTenDecimals},
    {"max_relative_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.max_relative_error; }>},
    {"mean_relative_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.mean_relative_error; }>},
    {"max_absolute_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.max_absolute_error; }>},
    {"mean_absolute_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.mean_absolute_error; }>},
    {"kl_divergence", kMetric, of_metrics<[](const Comparison& c) { return c.kl_divergence; }>},
    {"relative_euclidean_distance", kMetric,
     of_metrics<[](const Comparison& c) { return c.relative_euclidean_distance; }>},
    {"cmp_fail_reason", kReason, [](const Row& r) { return Cell(r.reason); }},

    {"zero_golden_mismatch", kExtended,
     of_comparison<[](const Comparison& c) { return c.zero_golden_mismatch; }>},
    {"golden_nan", kExtended, of_golden<kNan>},
    {"golden_inf", kExtended, of_golden<kInf>},
    {"my_nan", kExtended, of_actual<kNan>},
    {"my_inf", kExtended, of_actual<kInf>},
    {"non_finite_agree", kExtended,
     of_comparison<[](const Comparison& c) { return c.non_finite_agree; }>},
    {"differing_elements", kExtended,
     of_comparison<[](const Comparison& c) { return c.differing; }>},
    {"elements", kExtended, of_comparison<[](const Comparison& c) { return c.elements; }>},
    {"worst_index", kExtended, of_metrics<[](const Comparison& c) { return c.worst_index; }>},
    {"worst_golden", kExtended, of_metrics<[](const Comparison& c) { return c.worst_golden; }>},
    {"worst_my", kExtended, of_metrics<[](const Comparison& c) { return c.worst_actual; }>},
    {"worst_row", kPerRow, of_rows<[](const RowFinding& f) { return f.worst_row; }>},
    {"worst_row_cosine", kPerRow, of_rows<[](const RowFinding& f) { return f.worst_row_cosine; }>,
     NumberStyle::kTenDecimals},
    {"kl_divergence_per_row_mean", kPerRow, of_rows<[](const RowFinding& f) { return f.kl_mean; }>},
    {"kl_divergence_per_row_max", kPerRow, of_rows<[](const RowFinding& f) { return f.kl_max; }>},
    {"identical", kExtended, of_comparison<[](const Comparison& c) { return c.identical; }>},
    {"golden_l2norm", kExtended, of_golden<kNorm>},
    {"my_l2norm", kExtended, of_actual<kNorm>},
    {"golden_operation", kOrigin, [](const Row& r) { return Cell(r.golden.operation); }},
    {"golden_op_type", kOrigin, [](const Row& r) { return Cell(r.golden.type); }},
    {"golden_rank", kOrigin, [](const Row& r) { return Cell(r.golden.rank); }},
    {"golden_transform", kOrigin, [](const Row& r) { return Cell(r.golden.transform); }},
    {"my_operation", kOrigin, [](const Row& r) { return Cell(r.actual.operation); }},
    {"my_op_type", kOrigin, [](const Row& r) { return Cell(r.actual.type); }},
    {"my_rank", kOrigin, [](const Row& r) { return Cell(r.actual.rank); }},
    {"my_transform", kOrigin, [](const Row& r) { return Cell(r.actual.transform); }},
    {"pairing", kOrigin, [](const Row& r) { return Cell(r.pairing); }},
    {"pairing_reason", kOrigin, [](const Row& r) { return Cell(r.pairing_reason); }},
});

}  // namespace

std::span<const Column> all_columns() { return kColumns; }

std::vector<const Column*> columns(bool extended) {
  std::vector<const Column*> out;
  for (const Column& column : kColumns)
    if (extended || column.group < kExtended) out.push_back(&column);
  return out;
}

const Column* find_column(std::string_view name) {
  const auto found = std::find_if(kColumns.begin(), kColumns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == kColumns.end() ? nullptr : &*found;
}

std::vector<std::string> column_names(std::span<const Column* const> columns) {
  std::vector<std::string> out;
  for (const Column* column : columns) out.emplace_back(column->name);
  return out;
}

std::vector<std::string> column_texts(std::span<const Column* const> columns, const Row& row) {
  std::vector<std::string> out;
  for (const Column* column : columns) out.push_back(cell_text(column->value(row), column->style));
  return out;
}

}  // namespace ait::compare
