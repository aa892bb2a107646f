#include "page/csv_reader.h"

namespace ait::page {

Result<CsvRows> read_csv(std::string_view text) {
  CsvRows out;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false;
  const auto end_cell = [&] {
    if (cell.size() > 1 && cell[0] == '\'' &&
        std::string_view("+-=%@\t\r\n").find(cell[1]) != std::string_view::npos)
      cell.erase(0, 1);
    row.push_back(std::move(cell));
    cell.clear();
  };
  const auto end_row = [&] {
    end_cell();
    out.push_back(std::move(row));
    row.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        cell += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        cell += text[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      cell += c;
    }
  }
  if (quoted)
    return fail(Error(ErrorCode::kCorrupt)
                << "has a quote without its end; the file was cut short");
  if (!cell.empty() || !row.empty()) end_row();
  if (out.empty()) return fail(Error(ErrorCode::kCorrupt) << "holds no line");
  return out;
}

}  // namespace ait::page
