// Small charts of block characters for the terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ait::report {

// A bar of `fraction` (0 to 1) of `width` columns, in eighths of a column; anything above 0 shows.
std::string bar(double fraction, size_t width);

// One block for each value of 0 to 1, at most `width`: where there are more values, each block shows
// the largest of several. A value below 0 is a blank.
std::string sparkline(std::span<const double> values, size_t width);

// One line for each bin: its lower edge, its bar and its count. The bins are equal steps from
// minimum to maximum.
std::string histogram_chart(std::span<const size_t> counts, double minimum, double maximum,
                            size_t width);

}  // namespace ait::report
