#include "summary/one_pair.h"

#include <fmt/format.h>

#include "report/table.h"
#include "report/utf8.h"
#include "summary/elements.h"
#include "tables/comparison.h"

namespace ait::summary {
namespace {

using compare::Row;
using report::Align;
using report::ColumnGroup;
using report::Table;
using tables::ComparisonColumn;

std::string metrics_table(const Row& row, bool extended, bool coloured) {
  Table table({{"metric"}, {"value"}});
  for (const ComparisonColumn* column : tables::comparison_columns(extended)) {
    if (column->group == ColumnGroup::kSubject || column->group == ColumnGroup::kReason ||
        column->group == ColumnGroup::kOrigin)
      continue;
    const std::string text = column->text(row);
    table.add({std::string(column->name), text.empty() ? "-" : text});
  }
  return table.text(coloured);
}

std::string sides_table(const Row& row, bool coloured) {
  Table table({{"side"},
               {"dtype"},
               {"shape"},
               {"min", Align::kRight},
               {"max", Align::kRight},
               {"mean", Align::kRight},
               {"nan", Align::kRight},
               {"inf", Align::kRight}});
  const auto add = [&](std::string_view side, std::string_view prefix) {
    std::vector<std::string> cells = {std::string(side)};
    for (const char* column :
         {"_dtype", "_shape", "_min_value", "_max_value", "_mean_value", "_nan", "_inf"})
      cells.push_back(tables::find_comparison_column(std::string(prefix) + column)->text(row));
    table.add(std::move(cells));
  };
  add("golden", "golden");
  add("my", "my");
  return table.text(coloured);
}

// "[1, 0, 2] (flat index 14): golden 0.25, my 0.75". Complex numbers count as two.
std::string place_text(const Tensor& golden, const Tensor& actual, size_t index) {
  const bool complex = info(golden.dtype()).kind == DTypeKind::kComplex;
  const size_t element = complex ? index / 2 : index;
  const char* part = !complex ? "" : index % 2 == 0 ? ", real part" : ", imaginary part";
  const auto text = [&](const Tensor& tensor) {
    return element_text(tensor.dtype(), element_at(tensor.view(), element));
  };
  return fmt::format("{}{} (flat index {}): golden {}, my {}",
                     coordinates_text(golden.shape(), element), part, index, text(golden),
                     text(actual));
}

// How many values differ, and where most. Metrics leave out what is not finite, so it comes first.
std::string differences_text(const PairResult& result, const compare::Content& golden,
                             const compare::Content& actual) {
  const Row& row = result.row;
  const auto& broken = result.broken;
  std::string out;
  if (broken)
    out = fmt::format("{} of {} values are NaN or infinite on one side only; the first is at {}\n",
                      broken->count, row.comparison->elements,
                      place_text(*golden.tensor, *actual.tensor, broken->first_index));
  const metrics::Comparison* c = compare::metrics_of(row);
  if (c == nullptr) return out;
  if (c->identical) return "Every element is identical.\n";
  const size_t others = c->differing - (broken ? broken->count : 0);
  if (others == 0)
    return out +
           (broken ? "Every other value is the same.\n" : "Every element has the same value.\n");
  const std::string how_many =
      broken ? fmt::format("{} other {}", others, others == 1 ? "value differs" : "values differ")
             : fmt::format("{} of {} values differ", others, c->elements);
  return out + fmt::format("{}; the largest difference is at {}\n", how_many,
                           place_text(*golden.tensor, *actual.tensor, c->worst_index));
}

}  // namespace

PairResult measure_pair(const compare::Content& golden, const compare::Content& actual,
                        const compare::Options& options) {
  PairResult out{compare::measure(golden, actual, options), {}};
  if (out.row.comparison && compare::non_finite_differ(out.row))
    out.broken = compare::find_non_finite_difference(*golden.tensor, *actual.tensor);
  return out;
}

std::string old_result_line(const Row& row) {
  std::string out = "Compared results: {";
  for (const ComparisonColumn& column : tables::all_comparison_columns()) {
    if (column.group != ColumnGroup::kMetric) continue;
    const std::string text = column.text(row);
    out += fmt::format("'{}': {}, ", column.name, text.empty() ? "''" : text);
  }
  // As Python would quote it: with " where the text holds a '.
  const char quote = row.reason.find('\'') == std::string::npos ? '\'' : '"';
  return out + fmt::format("'cmp_fail_reason': {0}{1}{0}}}", quote, printable(row.reason, 4096));
}

std::string pair_text(const PairResult& result, const compare::Content& golden,
                      const compare::Content& actual, bool extended, bool coloured) {
  const Row& row = result.row;
  std::string out =
      metrics_table(row, extended, coloured) + "\n" + sides_table(row, coloured) + "\n";
  out += differences_text(result, golden, actual);
  if (!row.reason.empty()) out += "Reason: " + report::visible(row.reason) + "\n";
  return out;
}

report::Json broken_json(const PairResult& result) {
  if (!result.broken) return report::Cell();
  report::JsonObject out;
  return out.set("elements", uint64_t{result.broken->count})
      .set("first_index", uint64_t{result.broken->first_index})
      .set("golden", result.broken->golden)
      .set("my", result.broken->actual);
}

}  // namespace ait::summary
