#include "convert/table.h"

#include <algorithm>
#include <vector>

#include "report/csv.h"
#include "report/number.h"

namespace ait::convert {
namespace {

// "(1, 7, 64)", "(3,)", "()"
std::string tuple_text(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

// The last number in a name, 0 for none.
std::string last_number(const std::string& tensor) {
  const std::string last = tensor.substr(tensor.rfind('_') + 1);
  return !last.empty() &&
                 std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; })
             ? last
             : "0";
}

}  // namespace

std::string table_line(const std::string& operation, const std::string& type,
                       const std::string& tensor, DType dtype, const Shape& shape,
                       const std::optional<formats::Description::Statistics>& statistics) {
  std::vector<std::string> cells = {operation,
                                    type,
                                    tensor.starts_with("input") ? "Input" : "Output",
                                    last_number(tensor),
                                    std::string(name(dtype)),
                                    tuple_text(shape)};
  if (statistics) {
    for (const double value :
         {statistics->maximum, statistics->minimum, statistics->mean, statistics->l2_norm})
      cells.push_back(report::number_text(value));
  } else {
    cells.insert(cells.end(), 4, "");
  }
  std::string out;
  for (const std::string& cell : cells) (out += report::csv_cell(cell)) += ',';
  return out + report::csv_cell(tensor) + "\r\n";
}

}  // namespace ait::convert
