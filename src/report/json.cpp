#include "report/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "report/number.h"
#include "report/utf8.h"

namespace ait::report {
namespace {

std::string quoted(std::string_view outside_text) {
  const std::string valid = valid_utf8(outside_text);
  std::string out = "\"";
  for (std::string_view text = valid; !text.empty();) {
    const Character c = first_character(text);
    if (c.code == '"' || c.code == '\\') out += '\\';
    if (is_unsafe(c.code)) {  // all of these have four digits at most
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x",
                    static_cast<unsigned>(c.code & 0xffff));
      out += escape.data();
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out + '"';
}

struct Scalar {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(double number) const {
    return std::isfinite(number) ? double_text(number) : quoted(double_text(number));
  }
  std::string operator()(const std::string& text) const { return quoted(text); }
  template <typename T>
  std::string operator()(const T& value) const {
    return cell_text(Cell(value));
  }
};

std::string one_line(const JsonArray& items) {
  std::string out = "[";
  for (const Json& item : items) {
    if (out.size() > 1) out += ", ";
    out += item.text();
  }
  return out + ']';
}

// "[", items each on its own line, "]"
template <typename Items, typename Text>
std::string block(char open, char close, const Items& items, size_t depth, Text text) {
  if (items.empty()) return {open, close};
  std::string out(1, open);
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += '\n' + std::string(2 * (depth + 1), ' ') + text(item);
  }
  return out + '\n' + std::string(2 * depth, ' ') + close;
}

}  // namespace

JsonObject& JsonObject::set(std::string_view name, Json value) {
  members_.emplace_back(name, std::move(value));
  return *this;
}

std::string Json::text(size_t depth) const {
  if (const auto* cell = std::get_if<Cell>(&value_)) return std::visit(Scalar{}, *cell);
  if (const auto* array = std::get_if<JsonArray>(&value_)) {
    if (std::all_of(array->begin(), array->end(), [](const Json& item) { return item.is_short(); }))
      return one_line(*array);
    return block('[', ']', *array, depth, [&](const Json& item) { return item.text(depth + 1); });
  }
  return block('{', '}', std::get<JsonObject>(value_).members(), depth, [&](const auto& member) {
    return quoted(member.first) + ": " + member.second.text(depth + 1);
  });
}

}  // namespace ait::report
