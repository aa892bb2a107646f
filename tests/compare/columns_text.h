// Rows as one text, every column of them: equal texts mean equal results to the last digit of a
// report.
#pragma once

#include <string>
#include <vector>

#include "compare/columns.h"

namespace ait::compare {

inline std::string all_text(const std::vector<Row>& rows) {
  std::string out;
  for (const Row& row : rows) {
    for (const std::string& cell : column_texts(columns(true), row)) out += cell + ",";
    out += "\n";
  }
  return out;
}

}  // namespace ait::compare
