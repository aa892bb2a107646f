#include "report/utf8.h"

#include <algorithm>
#include <array>

namespace ait::report {
namespace {

struct Range {
  char32_t first, last;
};

template <size_t N>
bool within(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](Range r) { return code >= r.first && code <= r.last; });
}

// East Asian wide and full-width blocks and emoji, coarsely: a table that is a column out is no
// disaster.
constexpr std::array<Range, 10> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0xa4cf},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1faff},
                                          {0x20000, 0x3fffd}}};
constexpr std::array<Range, 4> kCombining = {
    {{0x0300, 0x036f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}}};
// C0, DEL, C1 and the marks that reorder what a person sees.
constexpr std::array<Range, 5> kUnsafe = {
    {{0x00, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}}};

std::string hex_bytes(std::string_view bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

template <typename Keep>
std::string replace_unless(std::string_view text, Keep keep) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::string_view bytes = text.substr(0, c.bytes);
    if (keep(c)) {
      out += bytes;
    } else {
      out += hex_bytes(bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80) return {};
    code = (code << 6) | (next & 0x3fu);
  }
  static constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes, true};
}

bool is_unsafe(char32_t code) { return within(kUnsafe, code); }

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    width += within(kCombining, c.code) ? 0 : within(kWide, c.code) ? 2 : 1;
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string valid_utf8(std::string_view text) {
  return replace_unless(text, [](const Character& c) { return c.valid; });
}

std::string safe_text(std::string_view text) {
  return replace_unless(text, [](const Character& c) {
    return c.valid && (c.code == '\t' || c.code == '\n' || !is_unsafe(c.code));
  });
}

std::string visible(std::string_view text) {
  return replace_unless(text, [](const Character& c) { return c.valid && !is_unsafe(c.code); });
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  std::string out = visible(text);
  if (!out.empty() && out.find_first_not_of(kPlain) == std::string::npos) return out;
  for (size_t i = 0; (i = out.find('\'', i)) != std::string::npos; i += 4)
    out.replace(i, 1, "'\\''");
  return "'" + out + "'";
}

}  // namespace ait::report
