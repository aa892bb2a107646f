#include "page/csv_reader.h"

#include "base/csv_line.h"

namespace ait::page {

Result<CsvRows> read_csv(std::string_view text) {
  constexpr std::string_view kGuarded = "+-=%@\t\r\n";
  CsvRows out;
  while (!text.empty()) {
    CsvLine line = take_csv_line(text);
    if (line.is_cut)
      return fail(Error(ErrorCode::kCorrupt)
                  << "has a quote without its end; the file was cut short");
    for (std::string& cell : line.cells)
      if (cell.size() > 1 && cell[0] == '\'' && kGuarded.find(cell[1]) != std::string_view::npos)
        cell.erase(0, 1);
    out.push_back(std::move(line.cells));
  }
  if (out.empty()) return fail(Error(ErrorCode::kCorrupt) << "holds no line");
  return out;
}

}  // namespace ait::page
