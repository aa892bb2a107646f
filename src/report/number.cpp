#include "report/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ait::report {
namespace {

// Python's repr() goes to exponents outside [1e-4, 1e16).
constexpr int kSmallestFixedExponent = -4;
constexpr int kFirstLargeExponent = 16;

template <typename Float>
std::string python_text(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";

  std::array<char, 64> buffer;
  char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size() - 1, value,
                                  std::chars_format::scientific)
                        .ptr;
  *end = '\0';  // for atoi
  std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int exponent = std::atoi(text.data() + e + 1);

  if (exponent < kSmallestFixedExponent || exponent >= kFirstLargeExponent) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string magnitude = std::to_string(std::abs(exponent));
    out += exponent < 0 ? "e-" : "e+";
    if (magnitude.size() < 2) out += '0';
    return out + magnitude;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace

Cell number_cell(double value, bool of_integers) {
  if (!of_integers || value != std::trunc(value)) return value;
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<int64_t>(value);
  if (value > 0 && value < 0x1p64) return static_cast<uint64_t>(value);
  return value;
}

std::string double_text(double value) { return python_text(value); }

std::string number_text(double value) {
  const auto narrow = static_cast<float>(value);
  const bool lost = std::isfinite(value) && (std::isinf(narrow) || (narrow == 0 && value != 0));
  return lost ? python_text(value) : python_text(narrow);
}

std::string ten_decimals_text(double value) {
  if (!std::isfinite(value)) return python_text(value);
  // Longest double in %.10f: 309 digits, point, 10 decimals, sign.
  std::array<char, 352> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.10f", value);
  return python_text(std::strtod(buffer.data(), nullptr));
}

std::string fixed_decimals_text(double value, int decimals) {
  if (!std::isfinite(value)) return number_text(value);
  char text[400];  // the largest double has 309 digits
  const int length = std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return {text, static_cast<size_t>(length)};
}

}  // namespace ait::report
