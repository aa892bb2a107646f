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

// The parameters of an operation take less than a kilobyte; what is longer than this is none.
inline constexpr size_t kMaxParamBytes = 65536;
// More inputs or outputs than any operation has; a file name or a table may hold any number.
inline constexpr size_t kMaxTensors = 256;

struct OperationRow {
  std::string type;           // "LinearOperation"; the whole OpName where it makes no sense
  std::vector<uint64_t> ids;  // {3, 1, 0}
  std::string param;          // JSON
  std::vector<std::string> input_files;
  std::vector<std::string> output_files;
  std::vector<std::string> input_shapes;  // "12,4096"
  std::vector<std::string> output_shapes;
  std::string problem;  // why the row makes no sense, with its file and line; empty: it does
};

// In the order of the table, of equal ids the last. Fails where the file cannot be read or lacks
// the columns OpName and OutDType.
Result<std::vector<OperationRow>> read_operation_rows(const std::string& path);
Result<std::vector<OperationRow>> parse_operation_rows(std::string_view text,
                                                       const std::string& path);

}  // namespace ait::opcheck
