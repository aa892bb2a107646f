// A topology as an ONNX file, to be looked at in a viewer such as Netron.
//
//   auto file = convert_to_onnx("ait_dump/layer/4711/DecoderLayer_2.json", 1);
//   if (!file) return fail(file.error());
//   open_in_viewer(file->path);  // ait_dump/layer/4711/DecoderLayer_2.onnx
//
// Onnx's checker accepts every result; no runtime can execute it, because the operations are not
// ONNX's own. They are in the domain kOnnxDomain.
//
//   node      name = opName, op_type = opType, attributes from param (docs/topology.md)
//   tensor    its name. ONNX lets a name be written once, so a tensor that is written again, in
//             place, goes on as name#1, name#2 …, and whoever reads it later reads the newest
//   input     the root's inputs and weights, then whatever else is read without having been written
//   output    the root's outputs, in their last version. Where the root lists no tensors at all,
//             what its children write and none of them reads afterwards
//   type      from the table of operations where it has the tensor. ONNX has no tensor type without
//             a shape for inputs and outputs, so where nothing is known the type is opaque,
//             ait.unrecorded
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/operation_table.h"
#include "graph/topology.h"

namespace ait::graph {

// Version 10 of 2024 has all the element types that an operation table can name.
inline constexpr int64_t kOnnxIrVersion = 10;
inline constexpr std::string_view kOnnxDomain = "ait.atb";
inline constexpr int64_t kOnnxDomainVersion = 1;

// How deep to look: everything down to the leaves.
inline constexpr int64_t kAllLevels = -1;

// The bytes of the file. At level 0 the root is one node; at level k a node k levels below the root
// is not opened; `table` may be null. Fails on a negative level other than kAllLevels (kUsage).
Result<std::string> to_onnx(const Topology& topology, int64_t level, const ShapeTable* table);

struct OnnxFile {
  std::string path;
  std::optional<Error> table_problem;  // why there are no shapes although there is a table
};

// Reads x.json and writes x.onnx beside it, with shapes where the dump has a table of operations.
Result<OnnxFile> convert_to_onnx(const std::string& json_path, int64_t level);

// x.onnx for x.json; fails on any other name (kUsage).
Result<std::string> onnx_path_of(const std::string& json_path);

// Puts `bytes` at `path`, whole or not at all.
Result<void> write_bytes(const std::string& path, const std::string& bytes);

}  // namespace ait::graph
