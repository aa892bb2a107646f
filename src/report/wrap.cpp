#include "report/wrap.h"

#include <algorithm>

#include "report/utf8.h"

namespace ait::report {
namespace {

void add_line(std::string& out, std::string_view line, size_t columns) {
  if (display_width(line) <= columns) {
    out += line;
    return;
  }
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  out += line.substr(0, indent);
  size_t used = indent;
  bool is_first = true;
  for (size_t at = indent; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const size_t width = display_width(word);
    if (!is_first && used + 1 + width > columns) {
      out += '\n' + std::string(indent + 2, ' ');
      used = indent + 2;
    } else if (!is_first) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
    is_first = false;
    at = end + 1;
  }
}

}  // namespace

std::string wrapped(std::string_view text, size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    add_line(out, text.substr(0, end), columns);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace ait::report
