// The columns of the two reports of the pre-check of torch's functions. Readers depend on names and
// order of the old ones; ours stand behind them. A new column is one line in api_check.cpp.
#pragma once

#include "api_check/output.h"
#include "api_check/result.h"
#include "report/column.h"

namespace ait::tables {

// accuracy_checking_result.csv: a line for each call.
report::ColumnList<api_check::ApiResult> api_result_columns();

// accuracy_checking_details.csv: a line for each output of a call.
report::ColumnList<api_check::Output> api_output_columns();

// overflow_check_result.csv: a line for each overflow.
report::ColumnList<api_check::OverflowResult> api_overflow_columns();

// As the csv has it: "N/A" where nothing was measured.
std::vector<std::string> api_output_texts(const api_check::Output& output);

}  // namespace ait::tables
