#include "tables/api_check.h"

#include <array>

namespace ait::tables {
namespace {

using api_check::ApiResult;
using api_check::Output;
using api_check::OverflowResult;
using report::Cell;
using report::Column;
using enum report::ColumnGroup;
using enum report::NumberStyle;

Cell if_measured(const Output& output, double value) {
  return output.is_measured ? Cell(value) : Cell();
}

Cell cosine(const Output& output) {
  return output.is_measured && output.difference.cosine ? Cell(*output.difference.cosine) : Cell();
}

// Of integers the share of elements that differ, of other values whether they are equal.
Cell builtin(const Output& output) {
  if (!output.equal) return Cell();
  return output.builtin_message.empty() ? Cell(*output.equal) : Cell(output.error_rate);
}

Cell roundings(const Output& output) { return if_measured(output, output.difference.roundings); }

const auto& result_columns() {
  static const auto columns = std::to_array<Column<ApiResult>>({
      {"API name", kSubject, [](const ApiResult& r) { return Cell(r.name); }},
      {"Forward Test Success", kMetric, [](const ApiResult& r) { return Cell(r.forward); }},
      {"Backward Test Success", kMetric, [](const ApiResult& r) { return Cell(r.backward); }},
      {"Message", kReason, [](const ApiResult& r) { return Cell(r.message); }},
      {"Forward Within Rounding", kExtended,
       [](const ApiResult& r) { return Cell(r.forward_within); }},
      {"Backward Within Rounding", kExtended,
       [](const ApiResult& r) { return Cell(r.backward_within); }},
  });
  return columns;
}

const auto& overflow_columns() {
  static const auto columns = std::to_array<Column<OverflowResult>>({
      {"API name", kSubject, [](const OverflowResult& r) { return Cell(r.name); }},
      {"Verdict", kMetric, [](const OverflowResult& r) { return Cell(r.verdict); }},
      {"CPU overflow", kMetric, [](const OverflowResult& r) { return Cell(r.on_cpu); }},
      {"Device overflow", kMetric, [](const OverflowResult& r) { return Cell(r.on_device); }},
      {"Bench overflow (raised)", kMetric, [](const OverflowResult& r) { return Cell(r.raised); }},
      {"Max", kMetric, [](const OverflowResult& r) { return Cell(r.high); }},
      {"Min", kMetric, [](const OverflowResult& r) { return Cell(r.low); }},
      {"Message", kReason, [](const OverflowResult& r) { return Cell(r.message); }},
  });
  return columns;
}

// What is measured is in kMetric: cells of these are never empty.
const auto& output_columns() {
  static const auto columns = std::to_array<Column<Output>>({
      {"Npu Name", kSubject, [](const Output& o) { return Cell(o.name); }},
      {"Bench Dtype", kMetric, [](const Output& o) { return Cell(o.bench_type); }},
      {"NPU Dtype", kMetric, [](const Output& o) { return Cell(o.device_type); }},
      {"Shape", kMetric, [](const Output& o) { return Cell(o.shape); }},
      {"Cosine Similarity", kMetric, cosine, kFourteenDecimals},
      {"Cosine Similarity Message", kReason,
       [](const Output& o) { return Cell(o.cosine_message); }},
      {"Max Rel Error", kMetric,
       [](const Output& o) { return if_measured(o, o.difference.max_relative); },
       kFourteenDecimals},
      {"Max Rel Err Message", kReason, [](const Output&) { return Cell(); }},
      {"Max Abs Error", kMetric,
       [](const Output& o) { return if_measured(o, o.difference.max_absolute); },
       kFourteenDecimals},
      {"Max Abs Err Message", kReason, [](const Output&) { return Cell(); }},
      {"Relative Error (dual thousandth)", kMetric,
       [](const Output& o) { return if_measured(o, o.difference.share_below(1)); },
       kFourteenDecimals},
      {"Relative Error (dual thousandth) Message", kReason, [](const Output&) { return Cell(); }},
      {"Relative Error (dual ten thousandth)", kMetric,
       [](const Output& o) { return if_measured(o, o.difference.share_below(2)); },
       kFourteenDecimals},
      {"Relative Error (dual ten thousandth) Message", kReason,
       [](const Output& o) { return Cell(o.ten_thousandth_message); }},
      {"Compare Builtin Type", kMetric, builtin, kFourteenDecimals},
      {"Builtin Type Message", kReason, [](const Output& o) { return Cell(o.builtin_message); }},
      {"Pass", kMetric, [](const Output& o) { return Cell(o.passes); }},
      {"Within Rounding", kMetric, [](const Output& o) { return Cell(o.within); }},
      {"Roundings", kMetric, roundings},
      {"Typical Roundings", kMetric,
       [](const Output& o) { return if_measured(o, o.difference.typical); }},
      {"Roundings Allowed", kMetric, [](const Output& o) { return if_measured(o, o.limit); }},
      {"Message", kReason, [](const Output& o) { return Cell(o.message); }},
  });
  return columns;
}

}  // namespace

report::ColumnList<ApiResult> api_result_columns() {
  return report::choose<ApiResult>(result_columns(), true);
}

report::ColumnList<OverflowResult> api_overflow_columns() {
  return report::choose<OverflowResult>(overflow_columns(), true);
}

report::ColumnList<Output> api_output_columns() {
  return report::choose<Output>(output_columns(), true);
}

std::vector<std::string> api_output_texts(const Output& output) {
  std::vector<std::string> texts;
  for (const auto* column : api_output_columns()) {
    texts.push_back(column->text(output));
    if (texts.back().empty() && column->group == kMetric) texts.back() = "N/A";
  }
  return texts;
}

}  // namespace ait::tables
