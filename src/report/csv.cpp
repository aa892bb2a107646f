#include "report/csv.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "report/utf8.h"

namespace ait::report {
namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() && error == std::errc{};
}

bool looks_like_formula(std::string_view text) {
  static constexpr std::array<std::string_view, 13> kStarts = {
      "+", "-", "=", "%", "@", "\t", "\r", "\n", "＋", "－", "＝", "％", "＠"};
  // Spreadsheets may trim blanks on import, so what follows them decides.
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return false;
  text.remove_prefix(first);
  if (std::isalnum(static_cast<unsigned char>(text[0]))) return false;
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return text.starts_with(start); }) &&
         !is_number(text);
}

// What a byte asks for. Nearly all cells ask for nothing, which one look at each byte tells.
enum : uint8_t { kNothing = 0, kQuotes = 1, kCare = 2 };
constexpr std::array<uint8_t, 256> kAsks = [] {
  std::array<uint8_t, 256> asks{};
  asks.fill(kCare);
  for (size_t c = ' '; c <= '~'; ++c) asks[c] = kNothing;
  asks[','] = asks['"'] = kQuotes;
  asks['\r'] = asks['\n'] = kQuotes | kCare;
  return asks;
}();

uint8_t asks_for(std::string_view text) {
  uint8_t all = kNothing;
  for (const char c : text) all |= kAsks[static_cast<unsigned char>(c)];
  return all;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  const uint8_t asked = asks_for(text);
  std::string cell = (asked & kCare) != 0 ? safe_text(text) : std::string(text);
  if (looks_like_formula(cell)) cell.insert(0, 1, '\'');
  if ((asked & kQuotes) == 0 || (asks_for(cell) & kQuotes) == 0) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

Result<CsvWriter> CsvWriter::create(const std::string& folder, const std::string& name,
                                    std::span<const std::string> header) {
  auto file = OutputFile::create(folder, name);
  if (!file) return fail(file.error());
  CsvWriter writer(std::move(*file));
  if (auto ok = writer.append(header); !ok) return fail(ok.error());
  return writer;
}

Result<void> CsvWriter::append(std::span<const std::string> cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i]);
  }
  return file_.write(line += '\n');
}

}  // namespace ait::report
