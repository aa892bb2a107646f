// The table of operations of a dump with `--type op`, operation_tensors_{n}.csv: which operations
// there were, with their parameters. Cells are separated by '|', lists in a cell by ';'; columns
// are found by their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::opcheck {

struct OperationRow {
  std::string type;           // "LinearOperation"
  std::vector<uint64_t> ids;  // {3, 1, 0}
  std::string param;          // JSON
  std::vector<std::string> input_files;
  std::vector<std::string> output_files;
};

struct OperationRows {
  std::vector<OperationRow> rows;  // of equal ids the last
  std::vector<Error> problems;     // rows that make no sense
};

// Fails where the file cannot be read or lacks the columns OpName and OutDType.
Result<OperationRows> read_operation_rows(const std::string& path);
Result<OperationRows> parse_operation_rows(std::string_view text, const std::string& path);

}  // namespace ait::opcheck
