#include "report/table.h"

#include <algorithm>

#include "report/utf8.h"

namespace ait::report {

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = visible(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(bool coloured) const {
  static constexpr std::string_view kGap = "  ";
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(display_width(column.title));
  }
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));

  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - display_width(cells[i]), ' ');
      if (i > 0) out += kGap;
      out += columns_[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };

  std::string out;
  const bool titled =
      std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); });
  if (titled) out = (coloured ? "\033[1m" + line(titles) + "\033[0m" : line(titles)) + "\n";
  for (const auto& row : rows_) out += line(row) + "\n";
  return out;
}

}  // namespace ait::report
