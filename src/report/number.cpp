#include "report/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

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
  // "-1.25e-07": the digits are brought together, which leaves all that is needed in one place.
  char* first = buffer.data();
  std::string out;
  if (*first == '-') {
    out += '-';
    ++first;
  }
  const size_t e = std::string_view(first, static_cast<size_t>(end - first)).find('e');
  const int exponent = std::atoi(first + e + 1);
  const size_t count = e > 2 ? e - 1 : 1;
  if (count > 1) std::swap(first[0], first[1]);
  const std::string_view digits(count > 1 ? first + 1 : first, count);

  if (exponent < kSmallestFixedExponent || exponent >= kFirstLargeExponent) {
    out += digits[0];
    if (count > 1) (out += '.') += digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    const int magnitude = std::abs(exponent);
    if (magnitude < 10) out += '0';
    return out += std::to_string(magnitude);
  }
  if (exponent < 0) {
    out += "0.";
    return out.append(static_cast<size_t>(-exponent - 1), '0') += digits;
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (count <= whole) return (out += digits).append(whole - count, '0') += ".0";
  return ((out += digits.substr(0, whole)) += '.') += digits.substr(whole);
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
  const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                        std::chars_format::fixed, 10)
                              .ptr;
  double rounded = value;
  std::from_chars(buffer.data(), end, rounded);
  return python_text(rounded);
}

std::string fixed_decimals_text(double value, int decimals) {
  if (!std::isfinite(value)) return number_text(value);
  char text[400];  // the largest double has 309 digits
  const int length = std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return {text, static_cast<size_t>(length)};
}

}  // namespace ait::report
