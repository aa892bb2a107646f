// The columns of checks of single operators. Readers depend on names and order; a new column is one
// line in opcheck.cpp.
#pragma once

#include "opcheck/row.h"
#include "report/column.h"

namespace ait::tables {

using CheckColumn = report::Column<opcheck::CheckRow>;
using CheckColumns = report::ColumnList<opcheck::CheckRow>;

// Those of the metrics that were not asked for are left out.
CheckColumns check_columns(const opcheck::Metrics& metrics);

// As the csv has it: "NaN" where nothing was compared.
std::vector<std::string> check_texts(const CheckColumns& columns, const opcheck::CheckRow& row);

// "PASS", "FAILED", "addition failed"
std::string_view verdict_text(opcheck::Verdict verdict);

}  // namespace ait::tables
