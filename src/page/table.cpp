#include "page/table.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace ait::page {
namespace {

using report::Cell;

// Not-a-numbers of their own for what is missing, since a value may be not a number.
constexpr uint64_t kMissing64 = 0x7ff8000000000a17;
constexpr uint32_t kMissing32 = 0x7fc00a17;
const double kMissing = std::bit_cast<double>(kMissing64);

constexpr double kExactInFloat32 = 1 << 24;

bool is_missing(double value) { return std::bit_cast<uint64_t>(value) == kMissing64; }

// The first bytes of all values, then their second bytes and so on: equal ones then stand together
// and take little room once compressed.
template <typename T>
std::string planes(std::span<const T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &values[i], sizeof(T));
    for (size_t k = 0; k < sizeof(T); ++k) out[k * values.size() + i] = bytes[k];
  }
  return out;
}

// A whole number, or one that float32 has room for, loses nothing in it that a report shows.
bool needs_float64(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (std::fabs(value) >= kExactInFloat32 && std::trunc(value) == value) return true;
    const auto narrow = static_cast<float>(value);
    if (std::isinf(narrow) || (narrow == 0 && value != 0)) return true;
  }
  return false;
}

std::string as_float32(std::span<const double> values) {
  std::vector<uint32_t> out;
  out.reserve(values.size());
  for (const double value : values)
    out.push_back(is_missing(value) ? kMissing32
                                    : std::bit_cast<uint32_t>(static_cast<float>(value)));
  return planes<uint32_t>(out);
}

}  // namespace

size_t Table::add_column(std::string_view name, bool exact) {
  Column& column = columns_.emplace_back();
  column.name = name;
  column.exact = exact;
  return columns_.size() - 1;
}

void Table::set_number(Column& column, double value) const {
  column.numbers.resize(rows_, kMissing);
  column.numbers.push_back(value);
}

void Table::set_text(Column& column, std::string text) const {
  if (text.empty()) return;
  if (column.texts.empty()) column.texts.emplace_back();
  const auto [place, is_new] =
      column.known.try_emplace(std::move(text), static_cast<uint32_t>(column.texts.size()));
  if (is_new) column.texts.push_back(place->first);
  column.indices.resize(rows_, 0);
  column.indices.push_back(place->second);
}

void Table::set(size_t number, const Cell& cell) {
  Column& column = columns_[number];
  if (const auto* real = std::get_if<double>(&cell)) return set_number(column, *real);
  if (const auto* whole = std::get_if<int64_t>(&cell))
    return set_number(column, static_cast<double>(*whole));
  if (const auto* count = std::get_if<uint64_t>(&cell))
    return set_number(column, static_cast<double>(*count));
  if (const auto* flag = std::get_if<bool>(&cell)) return set_number(column, *flag ? 1 : 0);
  set_text(column, report::cell_text(cell));
}

report::JsonArray Table::pack(std::vector<Section>& out) const {
  report::JsonArray described;
  for (const Column& column : columns_) {
    if (column.numbers.empty() && column.indices.empty()) continue;
    const std::string id = "c" + std::to_string(described.size());
    report::JsonObject about;
    about.set("name", column.name).set("id", id);
    if (column.indices.empty()) {
      std::vector<double> numbers = column.numbers;
      numbers.resize(rows_, kMissing);
      const bool wide = column.exact || needs_float64(numbers);
      about.set("kind", wide ? "f64" : "f32");
      out.push_back({id, wide ? planes<double>(numbers) : as_float32(numbers)});
    } else {
      std::vector<uint32_t> indices = column.indices;
      indices.resize(rows_, 0);
      about.set("kind", "text");
      out.push_back({id, planes<uint32_t>(indices)});
      std::string texts = "[";
      for (const std::string& text : column.texts) {
        if (texts.size() > 1) texts += ",\n";
        texts += report::Json(text).text();
      }
      out.push_back({id + "t", texts + "]"});
    }
    described.emplace_back(std::move(about));
  }
  return described;
}

}  // namespace ait::page
