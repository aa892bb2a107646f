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

void append_cell(std::string& out, std::string_view text) {
  const uint8_t asked = asks_for(text);
  std::string safe;
  if ((asked & kCare) != 0) text = safe = safe_text(text);
  const bool is_formula = looks_like_formula(text);
  if ((asked & kQuotes) == 0 || (asks_for(text) & kQuotes) == 0) {
    if (is_formula) out += '\'';
    out += text;
    return;
  }
  out += '"';
  if (is_formula) out += '\'';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string out;
  append_cell(out, text);
  return out;
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
  line_.clear();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line_ += ',';
    append_cell(line_, cells[i]);
  }
  return file_.write(line_ += '\n');
}

}  // namespace ait::report
