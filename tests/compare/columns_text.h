// Rows as one text, every column of them: equal texts mean equal results to the last digit of a
// report.
#pragma once

#include <string>
#include <vector>

#include "tables/comparison.h"

namespace ait::compare {

inline std::string all_text(const std::vector<Row>& rows) {
  std::string out;
  for (const Row& row : rows) {
    for (const std::string& cell : report::column_texts(tables::comparison_columns(true), row))
      out += cell + ",";
    out += "\n";
  }
  return out;
}

}  // namespace ait::compare
