#include "json_text.h"

#include <string>
#include <string_view>

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

// Valid JSON without spaces between its parts, laid out as json.dumps(…, indent=width) does it.
nb::bytes indented_json(const nb::bytes& compact, size_t width) {
  const std::string_view text(compact.c_str(), compact.size());
  std::string out;
  out.reserve(text.size() * 2);
  size_t depth = 0;
  const auto new_line = [&] { out.append(1, '\n').append(depth * width, ' '); };
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size())
        out += text[++i];
      else if (c == '"')
        in_string = false;
      continue;
    }
    const bool closes_empty =
        (c == ']' || c == '}') && i > 0 && (text[i - 1] == '[' || text[i - 1] == '{');
    if ((c == ']' || c == '}') && depth > 0) {
      --depth;
      if (!closes_empty) new_line();
    }
    out += c;
    in_string = c == '"';
    if (c == ':') out += ' ';
    if (c == ',') new_line();
    if (c == '[' || c == '{') {
      ++depth;
      if (i + 1 < text.size() && text[i + 1] != ']' && text[i + 1] != '}') new_line();
    }
  }
  return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_json_text(nb::module_& module) {
  module.def("indented_json", &indented_json, "compact"_a, "width"_a);
}

}  // namespace ait::python
