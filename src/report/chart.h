// Small charts of block characters for the terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ait::report {

// A bar of `fraction` (0 to 1) of `width` columns, in eighths of a column; anything above 0 shows.
std::string bar(double fraction, size_t width);

// One line for each bin: its lower edge, its bar and its count. The bins are equal steps from
// minimum to maximum.
std::string histogram_chart(std::span<const size_t> counts, double minimum, double maximum,
                            size_t width);

}  // namespace ait::report
