// Lines of comma-separated text, one at a time.
//
//   while (!rest.empty()) {
//     const CsvLine line = take_csv_line(rest);
//     use(line.cells);
//   }
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ait {

struct CsvLine {
  std::vector<std::string> cells;  // at least one; the first ones, where there are too many
  size_t count = 1;                // how many there are in all
  bool is_cut = false;             // a quote has no end
};

// Takes one line off the front of `rest`. A quoted cell may hold commas, line ends and, twice, quotes.
CsvLine take_csv_line(std::string_view& rest,
                      size_t most_cells = std::numeric_limits<size_t>::max());

}  // namespace ait
