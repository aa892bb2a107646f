#include "tables/opcheck.h"

#include <array>

#include "report/number.h"

namespace ait::tables {
namespace {

using opcheck::CheckRow;
using opcheck::Verdict;
using report::Cell;
using enum report::ColumnGroup;
using enum report::NumberStyle;

template <typename T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

// "99.9%(error<0.001)"
Cell standard_cell(const CheckRow& row) {
  if (!row.standard) return Cell();
  const auto text = [](double value) {
    std::string out = report::double_text(value);
    if (out.ends_with(".0")) out.resize(out.size() - 2);
    return out;
  };
  return Cell(text(row.standard->rate_percent) + "%(error<" +
              (row.standard->tolerance == 0.0001 ? "0.0001" : text(row.standard->tolerance)) + ")");
}

Cell reasons_cell(const CheckRow& row) {
  std::string out;
  for (const std::string& reason : row.reasons) out += (out.empty() ? "" : ", ") + reason;
  return Cell(out);
}

Cell bound_result_cell(const CheckRow& row) {
  if (!row.of_bound) return Cell();
  return Cell(std::string(row.is_outside_bound() ? "FAILED" : "PASS"));
}

// The name of the metric that a column belongs to, where it is not always there.
constexpr std::string_view kAbsoluteRate = "abs_precision_rate(%)";
constexpr std::string_view kAbsoluteError = "max_abs_error";
constexpr std::string_view kCosine = "cosine_similarity";
constexpr std::string_view kKl = "kl_divergence";

const auto& all_check_columns() {
  static const auto columns = std::to_array<CheckColumn>({
      {"op_id", kSubject, [](const CheckRow& r) { return Cell(r.id); }},
      {"op_name", kSubject, [](const CheckRow& r) { return Cell(r.type); }},
      {"op_param", kSubject, [](const CheckRow& r) { return Cell(r.param); }},
      {"tensor_path", kSubject, [](const CheckRow& r) { return Cell(r.folder); }},
      {"out_tensor_id", kMetric,
       [](const CheckRow& r) { return r.output ? Cell(uint64_t{*r.output}) : Cell(); }},
      {"precision_standard", kMetric, standard_cell},
      {"precision_result", kSubject,
       [](const CheckRow& r) { return Cell(std::string(verdict_text(r.verdict))); }},
      {"rel_precision_rate(%)", kMetric,
       [](const CheckRow& r) { return cell_of(r.relative_rate_percent); }, kSixteenDecimals},
      {"max_rel_error", kMetric, [](const CheckRow& r) { return cell_of(r.max_relative_error); },
       kSixteenDecimals},
      {kAbsoluteRate, kMetric, [](const CheckRow& r) { return cell_of(r.absolute_rate_percent); },
       kSixteenDecimals},
      {kAbsoluteError, kMetric, [](const CheckRow& r) { return cell_of(r.max_absolute_error); },
       kSixteenDecimals},
      {kCosine, kMetric, [](const CheckRow& r) { return cell_of(r.cosine_similarity); },
       kTenDecimals},
      {kKl, kMetric, [](const CheckRow& r) { return cell_of(r.kl_divergence); }, kSixteenDecimals},
      {"fail_reason", kReason, reasons_cell},
      {"rank", kOrigin, [](const CheckRow& r) { return Cell(r.rank); }},
      {"round", kOrigin, [](const CheckRow& r) { return Cell(r.round); }},
      {"error_of_bound", kExtended, [](const CheckRow& r) { return cell_of(r.of_bound); }},
      {"bound_result", kExtended, bound_result_cell},
      {"form", kExtended, [](const CheckRow& r) { return Cell(r.form); }},
      {"source", kExtended, [](const CheckRow& r) { return Cell(r.source); }},
      {"error_data", kExtended, [](const CheckRow& r) { return Cell(r.error_data); }},
      {"again", kExtended, [](const CheckRow& r) { return Cell(r.again); }},
  });
  return columns;
}

}  // namespace

CheckColumns check_columns(const opcheck::Metrics& metrics) {
  return report::choose<CheckRow>(all_check_columns(), [&](const CheckColumn& column) {
    if (column.name == kAbsoluteRate || column.name == kAbsoluteError) return metrics.absolute;
    if (column.name == kCosine) return metrics.cosine;
    if (column.name == kKl) return metrics.kl;
    return true;
  });
}

std::vector<std::string> check_texts(const CheckColumns& columns, const CheckRow& row) {
  std::vector<std::string> texts;
  texts.reserve(columns.size());
  for (const CheckColumn* column : columns) {
    texts.push_back(column->text(row));
    if (texts.back().empty() && column->group == kMetric) texts.back() = "NaN";
  }
  return texts;
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kNoGolden:
      return "addition failed";
    default:
      return "FAILED";
  }
}

}  // namespace ait::tables
