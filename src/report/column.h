// A column of a report: its name, and how it reads a row. One kind of column serves every table,
// whatever its rows are; csv, JSON and the terminal all go through it.
//
//   constexpr auto kColumns = std::to_array<Column<Person>>({
//       {"name", ColumnGroup::kSubject, [](const Person& p) { return Cell(p.name); }},
//       {"height", ColumnGroup::kMetric, [](const Person& p) { return Cell(p.height); }},
//   });
//   const auto chosen = choose<Person>(kColumns, [](const auto& c) { return true; });
//   csv.append(column_texts<Person>(chosen, person));
//
// The tables of ait stand in the library `tables`: a new column is one line in one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/cell.h"
#include "report/json.h"

namespace ait::report {

// What a column is about. Readers of the old reports know the first three; ours stand behind them
// and are shown only where asked for.
enum class ColumnGroup : uint8_t {
  kSubject,   // what was looked at: identity, paths, types, shapes, values of each side
  kMetric,    // what was measured
  kReason,    // why something was not
  kExtended,  // ours
  kPerRow,    // ours, and only measured where asked for
  kOrigin,    // ours: where the subject comes from
};

template <typename Row>
struct Column {
  std::string_view name;
  ColumnGroup group;
  Cell (*value)(const Row& row);  // nothing where it was not measured
  NumberStyle style = NumberStyle::kShort;

  std::string text(const Row& row) const { return cell_text(value(row), style); }
};

template <typename Row>
using ColumnList = std::vector<const Column<Row>*>;

template <typename Row, typename Wanted>
ColumnList<Row> choose(std::span<const Column<Row>> columns, Wanted wanted) {
  ColumnList<Row> out;
  for (const Column<Row>& column : columns)
    if (wanted(column)) out.push_back(&column);
  return out;
}

// Without ours, unless `extended`.
template <typename Row>
ColumnList<Row> choose(std::span<const Column<Row>> columns, bool extended) {
  return choose<Row>(columns, [&](const Column<Row>& column) {
    return extended || column.group < ColumnGroup::kExtended;
  });
}

// nullptr where there is none.
template <typename Row>
const Column<Row>* find_column(std::span<const Column<Row>> columns, std::string_view name) {
  for (const Column<Row>& column : columns)
    if (column.name == name) return &column;
  return nullptr;
}

// Header and line of a csv report.
template <typename Row>
std::vector<std::string> column_names(const ColumnList<Row>& columns) {
  std::vector<std::string> out;
  out.reserve(columns.size());
  for (const Column<Row>* column : columns) out.emplace_back(column->name);
  return out;
}

template <typename Row>
std::vector<std::string> column_texts(const ColumnList<Row>& columns, const Row& row) {
  std::vector<std::string> out;
  out.reserve(columns.size());
  for (const Column<Row>* column : columns) out.push_back(column->text(row));
  return out;
}

template <typename Row>
JsonObject column_json(const ColumnList<Row>& columns, const Row& row) {
  JsonObject out;
  for (const Column<Row>* column : columns) out.set(column->name, column->value(row));
  return out;
}

}  // namespace ait::report
