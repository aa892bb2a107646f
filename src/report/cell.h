// One value of a report, whatever it will be printed as: csv, JSON or a terminal table.
//
//   const std::vector<Cell> row = {std::string("layers.0"), 0.5, std::vector<int64_t>{2, 3}};
//   std::vector<std::string> texts;
//   for (const Cell& cell : row) texts.push_back(cell_text(cell));  // "layers.0", "0.5", "[2, 3]"
//   auto csv = CsvWriter::create(folder, "report.csv", header);     // csv.h
//   if (!csv) return fail(csv.error());
//   if (auto done = csv->append(texts); !done) return fail(done.error());
//   return csv->finish();  // the path; until here no report is to be seen
//
// tests/report/example_test.cpp runs this example.
//
// This is the main header of `report`, which knows plain values only and nothing of what they mean.
// csv.h, json.h and table.h print cells, number.h says how numbers are spelled, utf8.h makes text
// of outside origin safe, column.h makes tables of any kind of row, chart.h draws.
// A new kind of output is a file pair beside these.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ait::report {

// Nothing, a flag, a count, a measured number, text, or a shape.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
                          std::vector<int64_t>>;

enum class NumberStyle : uint8_t { kShort, kTenDecimals, kFourteenDecimals, kSixteenDecimals };

// As csv and tables show it: "" for nothing, True and False, "[1, 13, 4096]" for a shape.
std::string cell_text(const Cell& cell, NumberStyle style = NumberStyle::kShort);
std::string cell_text(Cell&& cell, NumberStyle style = NumberStyle::kShort);

}  // namespace ait::report
