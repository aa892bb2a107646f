#include "base/csv_line.h"

#include <algorithm>

namespace ait {

CsvLine take_csv_line(std::string_view& rest, size_t most_cells) {
  CsvLine line;
  line.cells.emplace_back();
  const auto add = [&](std::string_view text) {
    if (line.count <= most_cells) line.cells.back() += text;
  };
  size_t at = 0;
  for (; at < rest.size(); ++at) {
    // A stretch of plain characters at once.
    const size_t special =
        std::min(rest.find_first_of(line.is_cut ? "\"" : "\",\n\r", at), rest.size());
    add(rest.substr(at, special - at));
    at = special;
    if (at == rest.size()) break;
    const char c = rest[at];
    if (line.is_cut) {
      if (at + 1 < rest.size() && rest[at + 1] == '"')
        add(rest.substr(++at, 1));
      else
        line.is_cut = false;
    } else if (c == '"') {
      line.is_cut = true;
    } else if (c == ',') {
      if (line.count++ < most_cells) line.cells.emplace_back();
    } else if (c == '\n') {
      break;
    }
  }
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return line;
}

}  // namespace ait
