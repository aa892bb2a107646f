// What the acceleration library reports of itself while it runs, and how that becomes topology
// files.
//
// A graph is reported once for each top-level operation, when it is first set up. Its tensors are
// positions in a list:
//
//   {"inTensorNum":3,"internalTensorNum":1,
//    "nodes":[{"inTensorIds":[0,1],"opName":"LinearOperation_4_0","outTensorIds":[4],…},…],
//    "opName":"TinyLayer_4","opType":"TinyLayer","outTensorNum":1,"param":""}
//
// A model is reported when it has run. Its tensors have names, but its nodes are types without a
// number:
//
//   {"modelName":"TinyModel","inTensors":["TinyModel_input_0"],…,
//    "nodes":[{"opName":"TinyLayer","inTensors":[…],"outTensors":[…]},…]}
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/topology.h"

namespace ait::graph {

// Of all the tensor names that one report gives rise to. A report only counts its tensors, so a
// short one could ask for any number of names.
inline constexpr size_t kMaxNameBytes = size_t{256} << 20;

// The layer that a reported graph describes, its tensors named {opName}_input_{i}, _output_ and
// _internal_. Fails where the report is damaged, where opName, opType, inTensorNum or outTensorNum
// is missing or opName is not `reported_name`, and where a position lies outside its list.
Result<Topology> name_tensors(std::string_view raw_json, std::string_view reported_name);

struct Report {
  std::string name;  // under which it was delivered
  std::string json;
};

// The models of one process, each of its nodes with its number and, inside, the graph that was
// reported under that name; both lists in the order of their delivery. One answer for each model.
// Of a damaged graph only the name is used; name_tensors says what is wrong with it.
//
// A model's node does not say which operation it is. Counting the nodes of all models from 0 gives
// the operations' numbers if the models' operations were the first to be set up, in this order.
// That is believed unless a reported graph contradicts it: by its type or by its number of inputs
// and outputs. Otherwise the nodes of each type take the graphs of that type and size by ascending
// number; the only graph of a type serves all its nodes (a shared operation). A node that finds
// none then keeps its type as its name.
std::vector<Result<Topology>> merge_models(std::span<const Report> graphs,
                                           std::span<const Report> models);

}  // namespace ait::graph
