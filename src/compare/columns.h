// The columns of a comparison report. One table drives csv, JSON, the terminal and --fail-on.
//
//   for (const Column* column : columns(extended)) cells.push_back(column->value(row));
//
// Names and order of the first part are the old tools' (readers depend on both); ours stand after
// cmp_fail_reason and only where asked for. A new column is one line in columns.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/measure.h"
#include "report/cell.h"

namespace ait::compare {

enum class ColumnGroup : uint8_t {
  kPair,      // which tensors: identity, paths, types, shapes, per-side values
  kMetric,    // the seven metrics
  kReason,    // cmp_fail_reason
  kExtended,  // ours
  kPerRow,    // ours, and only measured with Options::rows
  kOrigin,    // ours: which operations, and how sure it is that they belong together
};

struct Column {
  std::string_view name;
  ColumnGroup group;
  report::Cell (*value)(const Row& row);  // nothing where it was not measured
  report::NumberStyle style = report::NumberStyle::kShort;
};

std::span<const Column> all_columns();
std::vector<const Column*> columns(bool extended);
const Column* find_column(std::string_view name);  // nullptr where there is none

// Header and line of a csv report.
std::vector<std::string> column_names(std::span<const Column* const> columns);
std::vector<std::string> column_texts(std::span<const Column* const> columns, const Row& row);

}  // namespace ait::compare
