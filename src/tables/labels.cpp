#include "tables/labels.h"

#include <array>

namespace ait::tables {
namespace {

using compare::Row;
using compare::Side;
using report::Cell;
using enum report::ColumnGroup;

// "(1, 7, 4096)", "(3,)": a Python tuple, as the old csv has it.
Cell shape_cell(const Side& side) {
  if (!side.was_read()) return Cell();
  std::string out = "(";
  for (size_t i = 0; i < side.shape.size(); ++i)
    out += (i > 0 ? ", " : "") + std::to_string(side.shape[i]);
  return Cell(out + (side.shape.size() == 1 ? ",)" : ")"));
}

Cell dtype_cell(const Side& side) {
  return side.dtype ? Cell(std::string(name(*side.dtype))) : Cell();
}

// Reasons name sides as the columns of a comparison do; here these are called pta and acl.
std::string in_words_of_labels(const Row& row) {
  std::string out = row.reason;
  for (const auto& [own, here] :
       {std::pair<std::string_view, std::string_view>("golden_data", "pta_data"),
        {"my_data", "acl_data"}})
    for (size_t at = out.find(own); at != std::string::npos; at = out.find(own, at + here.size())) {
      const bool is_word = at == 0 || out[at - 1] == ' ';  // and no part of a path
      if (is_word) out.replace(at, own.size(), here);
    }
  return out;
}

// The comparison's own column under the name that it has here.
ComparisonColumn as(std::string_view name, report::ColumnGroup group, std::string_view column) {
  const ComparisonColumn* own = find_comparison_column(column);
  return {name, group, own->value, own->style};
}

const auto& all_label_columns() {
  static const auto columns = std::to_array<ComparisonColumn>({
      as("data_id", kSubject, "data_id"),
      as("pta_data_path", kSubject, "golden_data_path"),
      {"pta_dtype", kSubject, [](const Row& row) { return dtype_cell(row.golden); }},
      {"pta_shape", kSubject, [](const Row& row) { return shape_cell(row.golden); }},
      as("acl_data_path", kSubject, "my_data_path"),
      {"acl_dtype", kSubject, [](const Row& row) { return dtype_cell(row.actual); }},
      {"acl_shape", kSubject, [](const Row& row) { return shape_cell(row.actual); }},
      // Every row has been dealt with by the time it is written.
      {"cmp_flag", kSubject, [](const Row&) { return Cell(true); }},
      as("cosine_similarity", kMetric, "cosine_similarity"),
      as("max_relative_error", kMetric, "max_relative_error"),
      as("mean_relative_error", kMetric, "mean_relative_error"),
      as("relative_euclidean_distance", kMetric, "relative_euclidean_distance"),
      {"cmp_fail_reason", kReason, [](const Row& row) { return Cell(in_words_of_labels(row)); }},
      as("pta_max_value", kExtended, "golden_max_value"),
      as("pta_min_value", kExtended, "golden_min_value"),
      as("pta_mean_value", kExtended, "golden_mean_value"),
      as("acl_max_value", kExtended, "my_max_value"),
      as("acl_min_value", kExtended, "my_min_value"),
      as("acl_mean_value", kExtended, "my_mean_value"),
  });
  return columns;
}

}  // namespace

ComparisonColumns label_columns(bool extended) {
  return report::choose<Row>(all_label_columns(), extended);
}

}  // namespace ait::tables
