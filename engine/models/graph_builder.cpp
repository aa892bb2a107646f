#include "models/graph_builder.h"

namespace atb_speed {

GraphBuilder::GraphBuilder(std::string name, std::vector<std::string> inputs,
                           std::vector<std::string> outputs) {
  param_.name = std::move(name);
  param_.inTensorNum = static_cast<uint32_t>(inputs.size());
  param_.outTensorNum = static_cast<uint32_t>(outputs.size());
  for (const auto* names : {&inputs, &outputs})
    for (const std::string& one : *names) ids_.emplace(one, static_cast<uint32_t>(ids_.size()));
}

uint32_t GraphBuilder::id(const std::string& name) {
  const auto [place, fresh] = ids_.emplace(name, static_cast<uint32_t>(ids_.size()));
  if (fresh) ++param_.internalTensorNum;
  return place->second;
}

void GraphBuilder::add(const std::string& type, const std::string& param,
                       const std::vector<std::string>& in, const std::vector<std::string>& out,
                       std::vector<atb::ReshapeFunc> reshape) {
  add(atb::CreateOperation(type, param), in, out, std::move(reshape));
}

void GraphBuilder::add(atb::CreateResult operation, const std::vector<std::string>& in,
                       const std::vector<std::string>& out, std::vector<atb::ReshapeFunc> reshape) {
  if (!operation.status.ok()) {
    if (status_.ok()) status_ = operation.status;
    return;
  }
  atb::Node node;
  node.operation = std::move(operation.operation);
  for (const std::string& name : in) node.inTensorIds.push_back(id(name));
  for (const std::string& name : out) node.outTensorIds.push_back(id(name));
  node.inTensorReshapeFuncs = std::move(reshape);
  param_.nodes.push_back(std::move(node));
}

atb::CreateResult GraphBuilder::build() {
  if (!status_.ok()) return {nullptr, status_};
  return atb::GraphOperation::create(std::move(param_));
}

}  // namespace atb_speed
