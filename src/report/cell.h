// One value of a report, whatever it will be printed as: csv, JSON or a terminal table.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ait::report {

// Nothing, a flag, a count, a measured number, text, or a shape.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
                          std::vector<int64_t>>;

enum class NumberStyle : uint8_t { kShort, kTenDecimals };

// As csv and tables show it: "" for nothing, True and False, "[1, 13, 4096]" for a shape.
std::string cell_text(const Cell& cell, NumberStyle style = NumberStyle::kShort);

}  // namespace ait::report
