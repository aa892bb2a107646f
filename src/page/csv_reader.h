// Reads the csv files that report/csv.h writes: cells with commas, quotes and line ends in quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::page {

using CsvRows = std::vector<std::vector<std::string>>;

// Header and rows, at least the header. A ' that keeps a spreadsheet from running a cell is taken
// off. kCorrupt where a quote has no end, or there is nothing.
Result<CsvRows> read_csv(std::string_view text);

}  // namespace ait::page
