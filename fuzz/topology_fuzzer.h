// Everything that src/graph does with text of outside origin: a topology file, a reported graph, a
// reported model, a table of operations and the text of a graph. The replay of the corpus (tests/graph) includes it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "graph/atb_json.h"
#include "graph/atb_reports.h"
#include "graph/ge_text.h"
#include "graph/onnx.h"

namespace ait::fuzz {

inline void convert(const graph::Topology& topology, const graph::ShapeTable* table) {
  // What was understood is written, and what was written is understood as the same.
  const std::string json = graph::to_json(topology);
  const auto again = graph::parse_topology(json);
  if (!again || graph::to_json(*again) != json) std::abort();
  for (const int64_t level : {graph::kAllLevels, int64_t{0}, int64_t{1}})
    if (!graph::to_onnx(topology, level, table)) std::abort();
}

// The input is a name, a line end and text, as the probe leaves it, or text alone.
inline int read_as_topology(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line_end = std::min(text.find('\n'), size);
  const std::string name(text.substr(0, line_end));
  const std::string rest(text.substr(std::min(line_end + 1, size)));
  const auto table = graph::ShapeTable::parse(text);
  if (const auto topology = graph::parse_topology(text))
    convert(*topology, table ? &*table : nullptr);
  if (const auto layer = graph::name_tensors(rest, name)) convert(*layer, nullptr);
  const std::vector<graph::Report> reports = {{name, rest}};
  static const std::vector<graph::Report> kModel = {
      {"M", R"({"modelName":"M","nodes":[{"opName":"L","inTensors":["a"],"outTensors":["b"]}]})"}};
  for (const auto& model : graph::merge_models(reports, kModel))
    if (model) convert(*model, nullptr);
  for (const auto& model : graph::merge_models({}, reports))
    if (model) convert(*model, nullptr);
  return 0;
}

// A table of operations alone: its rows are found again.
inline int read_as_operation_table(const uint8_t* data, size_t size) {
  const auto table = graph::ShapeTable::parse({reinterpret_cast<const char*>(data), size});
  if (!table) return 0;
  for (const char* name : {"LinearOperation_4_0", "X_1", "PluginOperation_3", ""}) {
    graph::Node node;
    node.name = name;
    node.type = "PluginOperation";
    for (size_t tensors = 0; tensors < 3; ++tensors) {
      static_cast<void>(table->find(node));
      node.inputs.emplace_back("i");
      node.outputs.assign(1, "o");
    }
  }
  return 0;
}

// The text of a compiled graph: it is read to its end or refused.
inline int read_as_ge_text(const uint8_t* data, size_t size) {
  const auto graph = graph::parse_ge_text({reinterpret_cast<const char*>(data), size});
  if (graph && graph->operations.size() > size) std::abort();
  return 0;
}

}  // namespace ait::fuzz
