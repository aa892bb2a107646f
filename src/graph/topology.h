// What a recorded run consists of: operations, the tensors between them, and what contains what.
//
//   auto topology = read_topology(path);  // "ait_dump/model/4711/LlamaModel.json", by atb_json.h
//   if (!topology) return fail(topology.error());
//   walk(topology->root, [&](const Node& node, std::span<const Node* const> parents) {
//     if (node.is_leaf()) leaves.push_back({node.type, ids_of(node), parents.size()});
//   });
//
// gives {"LinearOperation", {3, 1}, 2} for the second operation of a model's layer 3.
// tests/graph/example_test.cpp runs this example.
//
// Tensors are names: two nodes are connected where one writes a name that the other reads. A node
// and its children speak of the same tensors by the same names. A tensor may be written more than
// once (in place); the order of the nodes is the order in which they run.
//
// This is the main header of `graph`. A new kind of topology file is a file pair like atb_json.h
// whose reader returns a Topology; onnx.h then shows it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ait::graph {

// Deeper nesting is refused by all readers, so that walking a topology may recurse.
inline constexpr size_t kMaxLevels = 1000;

struct Node {
  std::string name;  // the type and its ids: LinearOperation_3_1. A model's root: the model's name
  std::string type;

  // The parameters as JSON text without white space, numbers as they were written: an object, null,
  // or "" (two quotes) for a graph. Empty where the file has none.
  std::string param;

  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> internals;  // of a graph: what its children hand to each other
  std::vector<std::string> weights;    // of a model
  std::vector<Node> nodes;

  bool is_leaf() const { return nodes.empty(); }
};

struct Topology {
  bool is_model = false;  // of a whole model, not of one layer (a top-level operation)
  Node root;
};

// The numbers at the end of the name: {3, 1} for LinearOperation_3_1. The first is the operation's
// number in its process, each further one the position in its parent. Nothing for a model's root.
std::vector<uint64_t> ids_of(const Node& node);

// Visits `root` and everything below it, parents before children, in the order in which they run.
// `parents` leads from the root to the node's own parent; it is empty for the root.
using NodeVisitor = std::function<void(const Node& node, std::span<const Node* const> parents)>;
void walk(const Node& root, const NodeVisitor& visit);

}  // namespace ait::graph
