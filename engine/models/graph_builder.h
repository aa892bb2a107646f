// Graphs by the names of their tensors.
//
//   GraphBuilder mlp("Mlp", {"x", "gate.weight", …}, {"y"});
//   mlp.add("LinearOperation", R"({"hasBias":false})", {"x", "gate.weight"}, {"gate"});
//   …
//   auto graph = mlp.build();
//
// Names that are neither inputs nor outputs become internal tensors, in order of appearance. The
// first thing that goes wrong is what build() returns.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atb/graph_operation.h"

namespace atb_speed {

class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::vector<std::string> inputs, std::vector<std::string> outputs);

  void add(const std::string& type, const std::string& param, const std::vector<std::string>& in,
           const std::vector<std::string>& out, std::vector<atb::ReshapeFunc> reshape = {});
  void add(atb::CreateResult operation, const std::vector<std::string>& in,
           const std::vector<std::string>& out, std::vector<atb::ReshapeFunc> reshape = {});
  atb::CreateResult build();

 private:
  uint32_t id(const std::string& name);

  atb::GraphParam param_;
  std::map<std::string, uint32_t> ids_;
  atb::Status status_;
};

}  // namespace atb_speed
