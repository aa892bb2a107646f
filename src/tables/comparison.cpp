#include "tables/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/number.h"

namespace ait::tables {
namespace {

using capture::TensorRecord;
using compare::Judgement;
using compare::metrics_of;
using compare::Row;
using compare::Side;
using metrics::Comparison;
using metrics::ErrorProfile;
using metrics::Estimate;
using metrics::RowFinding;
using report::Cell;
using report::NumberStyle;

Cell dtype_cell(const Side& side) {
  return side.dtype ? Cell("torch." + std::string(name(*side.dtype))) : Cell();
}

Cell shape_cell(const Side& side) { return side.was_read() ? Cell(side.shape) : Cell(); }

std::string first_of(const Side& side, std::string TensorRecord::* what) {
  return side.records.empty() ? std::string() : side.records.front().*what;
}

// "0", "0;1": every rank that took part.
std::string ranks_text(const Side& side) {
  std::string out = first_of(side, &TensorRecord::rank);
  for (const TensorRecord& record : side.records)
    if (record.rank != side.records.front().rank) out += ";" + record.rank;
  return out;
}

std::string certainty_text(const Row& row) {
  return row.certainty ? match::word(*row.certainty) : "";
}

// The getters below are templates over what they read, so that a column is a line: `get` is a
// lambda without captures, and a row that lacks the part gives an empty cell.
template <auto side, auto get>
Cell of_side(const Row& row) {
  const auto& statistics = (row.*side).statistics;
  return statistics && statistics->elements > 0 ? Cell(get(*statistics)) : Cell();
}

// Only known where the data were looked at.
template <auto side, auto get>
Cell of_data(const Row& row) {
  return (row.*side).kept == capture::Kept::kBytes ? of_side<side, get>(row) : Cell();
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

template <auto get>
Cell of_profile(const Row& row) {
  return row.comparison && row.comparison->profile ? Cell(get(*row.comparison->profile)) : Cell();
}

template <auto get>
Cell of_estimate(const Row& row) {
  return row.estimate ? Cell(get(*row.estimate)) : Cell();
}

template <auto get>
Cell of_judgement(const Row& row) {
  return row.judgement ? Cell(get(*row.judgement)) : Cell();
}

// How many times larger my values could be before the largest of them exceeds a type's limit.
template <double limit>
Cell headroom(const Row& row) {
  const auto& statistics = row.actual.statistics;
  if (!statistics || statistics->elements == 0) return Cell();
  const double largest = std::max(std::fabs(statistics->minimum), std::fabs(statistics->maximum));
  return largest > 0 ? Cell(limit / largest) : Cell();
}

bool is_integer(const Side& side) {
  return side.dtype && info(*side.dtype).kind == DTypeKind::kInteger;
}

// Values that tensors of integers hold, or that are the difference of two of them.
template <auto side, auto get>
Cell value_of_side(const Row& row) {
  const auto& statistics = (row.*side).statistics;
  if (!statistics || statistics->elements == 0) return Cell();
  return report::number_cell(get(*statistics), is_integer(row.*side));
}

template <auto get>
Cell value_of_metrics(const Row& row, bool of_integers) {
  const Comparison* comparison = metrics_of(row);
  return comparison != nullptr ? report::number_cell(get(*comparison), of_integers) : Cell();
}

constexpr auto kMinimum = [](const metrics::Side& s) { return s.minimum; };
constexpr auto kMaximum = [](const metrics::Side& s) { return s.maximum; };
constexpr auto kLargestError = [](const Comparison& c) { return c.max_absolute_error; };
constexpr auto kWorstGolden = [](const Comparison& c) { return c.worst_golden; };
constexpr auto kWorstActual = [](const Comparison& c) { return c.worst_actual; };
constexpr auto kMean = [](const metrics::Side& s) { return s.mean; };
constexpr auto kNorm = [](const metrics::Side& s) { return s.l2_norm; };
constexpr auto kNan = [](const metrics::Side& s) { return s.nan; };
constexpr auto kInf = [](const metrics::Side& s) { return s.inf(); };

using enum report::ColumnGroup;

constexpr auto kColumns = std::to_array<ComparisonColumn>({
    {"token_id", kSubject, [](const Row& r) { return Cell(r.token); }},
    {"data_id", kSubject, [](const Row& r) { return Cell(data_id(r.subject)); }},
    {"golden_data_path", kSubject, [](const Row& r) { return Cell(path_text(r.golden)); }},
    {"golden_dtype", kSubject, [](const Row& r) { return dtype_cell(r.golden); }},
    {"golden_shape", kSubject, [](const Row& r) { return shape_cell(r.golden); }},
    {"golden_max_value", kSubject, value_of_side<&Row::golden, kMaximum>},
    {"golden_min_value", kSubject, value_of_side<&Row::golden, kMinimum>},
    {"golden_mean_value", kSubject, of_side<&Row::golden, kMean>},
    {"my_data_path", kSubject, [](const Row& r) { return Cell(path_text(r.actual)); }},
    {"my_dtype", kSubject, [](const Row& r) { return dtype_cell(r.actual); }},
    {"my_shape", kSubject, [](const Row& r) { return shape_cell(r.actual); }},
    {"my_max_value", kSubject, value_of_side<&Row::actual, kMaximum>},
    {"my_min_value", kSubject, value_of_side<&Row::actual, kMinimum>},
    {"my_mean_value", kSubject, of_side<&Row::actual, kMean>},
    {"cosine_similarity", kMetric,
     of_metrics<[](const Comparison& c) { return c.cosine_similarity; }>,
     NumberStyle::kTenDecimals},
    {"max_relative_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.max_relative_error; }>},
    {"mean_relative_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.mean_relative_error; }>},
    {"max_absolute_error", kMetric,
     [](const Row& r) {
       return value_of_metrics<kLargestError>(r, is_integer(r.golden) && is_integer(r.actual));
     }},
    {"mean_absolute_error", kMetric,
     of_metrics<[](const Comparison& c) { return c.mean_absolute_error; }>},
    {"kl_divergence", kMetric, of_metrics<[](const Comparison& c) { return c.kl_divergence; }>},
    {"relative_euclidean_distance", kMetric,
     of_metrics<[](const Comparison& c) { return c.relative_euclidean_distance; }>},
    {"cmp_fail_reason", kReason, [](const Row& r) { return Cell(r.reason); }},

    {"zero_golden_mismatch", kExtended,
     of_comparison<[](const Comparison& c) { return c.zero_golden_mismatch; }>},
    {"golden_nan", kExtended, of_data<&Row::golden, kNan>},
    {"golden_inf", kExtended, of_data<&Row::golden, kInf>},
    {"my_nan", kExtended, of_data<&Row::actual, kNan>},
    {"my_inf", kExtended, of_data<&Row::actual, kInf>},
    {"non_finite_agree", kExtended,
     of_comparison<[](const Comparison& c) { return c.non_finite_agree; }>},
    {"differing_elements", kExtended,
     of_comparison<[](const Comparison& c) { return c.differing; }>},
    {"elements", kExtended, of_comparison<[](const Comparison& c) { return c.elements; }>},
    {"worst_index", kExtended, of_metrics<[](const Comparison& c) { return c.worst_index; }>},
    {"worst_golden", kExtended,
     [](const Row& r) { return value_of_metrics<kWorstGolden>(r, is_integer(r.golden)); }},
    {"worst_my", kExtended,
     [](const Row& r) { return value_of_metrics<kWorstActual>(r, is_integer(r.actual)); }},
    {"worst_row", kPerRow, of_rows<[](const RowFinding& f) { return f.worst_row; }>},
    {"worst_row_cosine", kPerRow, of_rows<[](const RowFinding& f) { return f.worst_row_cosine; }>,
     NumberStyle::kTenDecimals},
    {"kl_divergence_per_row_mean", kPerRow, of_rows<[](const RowFinding& f) { return f.kl_mean; }>},
    {"kl_divergence_per_row_max", kPerRow, of_rows<[](const RowFinding& f) { return f.kl_max; }>},
    {"identical", kExtended, of_comparison<[](const Comparison& c) { return c.identical; }>},
    {"golden_l2norm", kExtended, of_side<&Row::golden, kNorm>},
    {"my_l2norm", kExtended, of_side<&Row::actual, kNorm>},
    {"golden_operation", kOrigin,
     [](const Row& r) { return Cell(first_of(r.golden, &TensorRecord::operation)); }},
    {"golden_op_type", kOrigin,
     [](const Row& r) { return Cell(first_of(r.golden, &TensorRecord::type)); }},
    {"golden_rank", kOrigin, [](const Row& r) { return Cell(ranks_text(r.golden)); }},
    {"golden_transform", kOrigin, [](const Row& r) { return Cell(r.golden.transform.text()); }},
    {"my_operation", kOrigin,
     [](const Row& r) { return Cell(first_of(r.actual, &TensorRecord::operation)); }},
    {"my_op_type", kOrigin,
     [](const Row& r) { return Cell(first_of(r.actual, &TensorRecord::type)); }},
    {"my_rank", kOrigin, [](const Row& r) { return Cell(ranks_text(r.actual)); }},
    {"my_transform", kOrigin, [](const Row& r) { return Cell(r.actual.transform.text()); }},
    {"pairing", kOrigin, [](const Row& r) { return Cell(certainty_text(r)); }},
    {"pairing_reason", kOrigin, [](const Row& r) { return Cell(r.certainty_reason); }},
    {"verdict", kOrigin, of_judgement<[](const Judgement& j) { return word(j.verdict); }>},
    {"verdict_error", kOrigin, of_judgement<[](const Judgement& j) { return j.error; }>},
    {"verdict_expected", kOrigin, of_judgement<[](const Judgement& j) { return j.expected; }>},
    {"verdict_reason", kOrigin, of_judgement<[](const Judgement& j) { return j.reason; }>},
    {"my_headroom_fp16", kExtended, headroom<65504.0>},
    {"my_headroom_bf16", kExtended, headroom<0x1.fep127>},
    {"my_headroom_fp8", kExtended, headroom<448.0>},
    {"my_saturated", kExtended, of_profile<[](const ErrorProfile& p) { return p.saturated; }>},
    {"my_flushed_to_zero", kExtended, of_profile<[](const ErrorProfile& p) { return p.flushed; }>},
    {"distance_at_least", kExtended,
     [](const Row& r) { return r.distance_at_least ? Cell(*r.distance_at_least) : Cell(); }},
    {"estimated_distance", kExtended,
     of_estimate<[](const Estimate& e) { return e.distance.value; }>},
    {"estimated_distance_most", kExtended,
     of_estimate<[](const Estimate& e) { return e.distance.most; }>},
    {"estimated_cosine", kExtended, of_estimate<[](const Estimate& e) { return e.cosine.value; }>,
     NumberStyle::kTenDecimals},
});

}  // namespace

std::span<const ComparisonColumn> all_comparison_columns() { return kColumns; }

ComparisonColumns comparison_columns(bool extended) {
  return report::choose<Row>(kColumns, extended);
}

const ComparisonColumn* find_comparison_column(std::string_view name) {
  return report::find_column<Row>(kColumns, name);
}

std::string data_id(const match::Subject& subject) {
  std::string out = subject.name;
  if (!subject.tensor.empty()) out += "/" + subject.tensor;
  if (!subject.rank.empty()) out += "@" + subject.rank;
  if (subject.first_column) out += ":" + std::to_string(*subject.first_column);
  if (!subject.member.empty() && subject.member != out) out += ":" + subject.member;
  return out;
}

std::string path_text(const Side& side) {
  std::string out;
  if (side.is_missing()) return out;
  for (const TensorRecord& record : side.records) {
    if (!out.empty()) out += ";";
    out += record.path;
    if (!record.member.empty()) out += ":" + record.member;
  }
  return out;
}

}  // namespace ait::tables
