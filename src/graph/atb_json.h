// The topology files that a dump of the acceleration library holds: layer/{PID}/{opName}.json and
// model/{PID}/{modelName}.json. docs/topology.md describes them.
//
//   {"opName":"TinyLayer_4","opType":"TinyLayer","param":"","inTensors":["TinyLayer_4_input_0"],…,
//    "nodes":[{"opName":"LinearOperation_4_0",…},…]}
//   {"modelName":"TinyModel","inTensors":[…],…,"weightTensors":[…],"nodes":[…]}
//
// What the acceleration library says while it runs, of which they are made, is atb_reports.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/topology.h"

namespace ait::graph {

// A model of a hundred layers is about a megabyte.
inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;

// Reads a layer's or a model's file. A node without opType gets its opName without the ids; unknown
// keys are passed over. Fails on anything that is not such a file, with the place (kCorrupt), and
// on more than kMaxJsonBytes or kMaxLevels.
Result<Topology> read_topology(const std::string& path);
Result<Topology> parse_topology(std::string_view json);

// One line of JSON and its end. Keys in the order opName or modelName, opType (not of a model's
// root), param, inTensors, outTensors, internalTensors, weightTensors, nodes; empty lists and a
// param that was never there are left out.
std::string to_json(const Topology& topology);

}  // namespace ait::graph
