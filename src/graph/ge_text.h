// The graph that TorchAir hands to Ascend's graph engine (GE), as it leaves it beside a dump:
// dynamo_original_{graph}_rank_{rank}_pid_{pid}_ts_{time}.txt, protobuf's text form of a GraphDef.
//
//   auto graph = read_ge_text(path);
//   if (!graph) return fail(graph.error());     // no such file, or no text of this form
//   for (const GeOperation& operation : graph->operations) …
//
// What it looks like:
//
//     name: "graph_1"
//     op {
//       name: "Add_2"
//       type: "Add"
//       input: "Cast_1:0"
//       output_desc {
//         attr { key: "_fx_tensor_name" value { s: "add_1-aten.add.Tensor.OUTPUT.0" } }
//       }
//     }
//
// Only that is kept; all else, weights of many megabytes among it, is passed over without a copy.
// Operations stand in the order in which they were built, which is one in which they can run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::graph {

// Real files nest about ten levels deep.
inline constexpr size_t kMaxTextDepth = 256;

struct GeOperation {
  // Where an input comes from: "Cast_1:0". Control edges and absent inputs are left out.
  struct Source {
    std::string operation;
    uint32_t output = 0;
    bool operator==(const Source&) const = default;
  };

  std::string name;
  std::string type;
  std::vector<Source> inputs;
  // Of each output, what it is called in the FX graph: "add_1-aten.add.Tensor.OUTPUT.0"; empty where
  // the output is none of that graph's.
  std::vector<std::string> fx_tensors;

  bool operator==(const GeOperation&) const = default;
};

struct GeGraph {
  std::string name;
  std::vector<GeOperation> operations;

  bool operator==(const GeGraph&) const = default;
};

// The file is mapped, whatever its size. Errors name the line.
Result<GeGraph> read_ge_text(const std::string& path);
Result<GeGraph> parse_ge_text(std::string_view text);

}  // namespace ait::graph
