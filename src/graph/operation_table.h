// Element types and shapes of tensors, from the table of operations that a dump with `--type op`
// holds: operation_io_tensors/{PID}/operation_tensors_{n}.csv.
//
// Cells are separated by '|', lists in a cell by ';', dimensions by ','. The table is decoration to
// a topology: a row that cannot be understood is passed over, and its tensors stay without a shape.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/topology.h"

namespace ait::graph {

// TensorProto.DataType of ONNX; 0 (UNDEFINED) where it knows no such type.
int32_t onnx_element_type(std::string_view atb_name);

struct TensorType {
  int32_t element_type = 0;
  std::vector<int64_t> dims;

  bool operator==(const TensorType&) const = default;
};

class ShapeTable {
 public:
  struct Row {
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
  };

  // Fails where the file cannot be read or is no such table.
  static Result<ShapeTable> read(const std::string& path);
  static Result<ShapeTable> parse(std::string_view text);

  // The row of the node: by name, or by ids where the table knows a plugin by its own name. Null
  // where there is none, or where it has another number of inputs or outputs than the node.
  const Row* find(const Node& node) const;

  size_t size() const { return rows_.size(); }

 private:
  std::map<std::string, Row, std::less<>> rows_;
  std::map<std::vector<uint64_t>, std::string> names_;
};

// The table of the first round that belongs to a topology file, {ROOT}/layer/{PID}/x.json or
// {ROOT}/model/{PID}/x.json: the lowest {n} in {ROOT}/operation_io_tensors/{PID}. Nothing where
// there is none.
std::optional<std::string> find_operation_table(const std::string& json_path);

}  // namespace ait::graph
