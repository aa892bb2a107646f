#include "report/cell.h"

#include <utility>

#include "report/number.h"

namespace ait::report {
namespace {

struct Text {
  NumberStyle style;

  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(int64_t count) const { return std::to_string(count); }
  std::string operator()(uint64_t count) const { return std::to_string(count); }
  std::string operator()(double number) const {
    switch (style) {
      case NumberStyle::kTenDecimals:
        return ten_decimals_text(number);
      case NumberStyle::kFourteenDecimals:
        return fixed_decimals_text(number, 14);
      case NumberStyle::kSixteenDecimals:
        return fixed_decimals_text(number, 16);
      default:
        return number_text(number);
    }
  }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const std::vector<int64_t>& shape) const {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i > 0) out += ", ";
      out += std::to_string(shape[i]);
    }
    return out + "]";
  }
};

}  // namespace

std::string cell_text(const Cell& cell, NumberStyle style) { return std::visit(Text{style}, cell); }

std::string cell_text(Cell&& cell, NumberStyle style) {
  if (auto* text = std::get_if<std::string>(&cell)) return std::move(*text);
  return std::visit(Text{style}, cell);
}

}  // namespace ait::report
