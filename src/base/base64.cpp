#include "base/base64.h"

#include <array>
#include <cstdint>

namespace ait {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> values_of_digits() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}

constexpr auto kValues = values_of_digits();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + k]))
                                  : 0U;
    };
    const uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<size_t> base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  return text.size() / 4 * 3 - padding;
}

bool from_base64(std::string_view text, std::span<std::byte> out) {
  if (base64_bytes(text) != out.size()) return false;
  const size_t digits = (out.size() * 8 + 5) / 6;
  uint32_t bits = 0;
  size_t at = 0;
  for (size_t i = 0; i < digits; ++i) {
    const uint8_t value = kValues[static_cast<unsigned char>(text[i])];
    if (value == kNoDigit) return false;
    bits = bits << 6 | value;
    // After the second, third and fourth digit of a group another byte is known.
    if (i % 4 != 0) out[at++] = static_cast<std::byte>(bits >> (2 * (3 - i % 4)) & 0xFF);
  }
  return true;
}

std::optional<std::string> from_base64(std::string_view text) {
  const auto bytes = base64_bytes(text);
  if (!bytes) return std::nullopt;
  std::string out(*bytes, '\0');
  if (!from_base64(text, std::as_writable_bytes(std::span(out)))) return std::nullopt;
  return out;
}

}  // namespace ait
