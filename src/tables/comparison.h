// The columns of a comparison report, and the only place where the facts of a row become text. One
// table drives csv, JSON, the terminal, --fail-on and Python.
//
//   const auto columns = comparison_columns(extended);
//   csv.append(report::column_texts(columns, row));
//
// Names and order of the first part are the old tools' (readers depend on both); ours stand after
// cmp_fail_reason and only where asked for. A new column is one line in comparison.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compare/row.h"
#include "report/column.h"

namespace ait::tables {

using ComparisonColumn = report::Column<compare::Row>;
using ComparisonColumns = report::ColumnList<compare::Row>;

std::span<const ComparisonColumn> all_comparison_columns();
ComparisonColumns comparison_columns(bool extended);
const ComparisonColumn* find_comparison_column(std::string_view name);  // nullptr: there is none

// "2_Layer/0_Linear/outtensor0@1:64": what the column data_id holds.
std::string data_id(const match::Subject& subject);

// "a/x.npy", "weights.safetensors:lm_head.weight", shards joined by ';'; empty for a side that is
// missing.
std::string path_text(const compare::Side& side);

}  // namespace ait::tables
