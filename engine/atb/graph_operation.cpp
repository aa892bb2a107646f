#include "atb/graph_operation.h"

#include <fmt/format.h>

#include "atb/align.h"
#include "atb/probe.h"

namespace atb {
namespace {

std::string id_list(const std::vector<uint32_t>& ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

Status check_graph(const GraphParam& param) {
  const uint32_t total = param.inTensorNum + param.outTensorNum + param.internalTensorNum;
  std::vector<bool> written(total, false);
  for (uint32_t i = 0; i < param.inTensorNum; ++i) written[i] = true;
  const auto wrong = [&](size_t node, const std::string& what) {
    return Status(ErrorType::kInvalidGraph,
                  fmt::format("node {} of graph {} {}", node, param.name, what));
  };
  for (size_t i = 0; i < param.nodes.size(); ++i) {
    const Node& node = param.nodes[i];
    if (!node.operation) return wrong(i, "has no operation");
    if (node.inTensorIds.size() != node.operation->GetInputNum() ||
        node.outTensorIds.size() != node.operation->GetOutputNum())
      return wrong(i, "has another number of tensors than its " + node.operation->GetName());
    if (!node.inTensorReshapeFuncs.empty() &&
        node.inTensorReshapeFuncs.size() != node.inTensorIds.size())
      return wrong(i, "does not have one reshape function for each input");
    for (const uint32_t id : node.inTensorIds)
      if (id >= total || !written[id])
        return wrong(i, fmt::format("reads tensor {}, which nobody wrote", id));
    for (const uint32_t id : node.outTensorIds) {
      if (id >= total) return wrong(i, fmt::format("writes tensor {}, which does not exist", id));
      written[id] = true;
    }
  }
  for (uint32_t i = 0; i < total; ++i)
    if (!written[i])
      return {ErrorType::kInvalidGraph,
              fmt::format("graph {} leaves tensor {} unwritten", param.name, i)};
  return {};
}

}  // namespace

GraphOperation::GraphOperation(GraphParam param)
    : Operation(param.name), param_(std::move(param)) {}

CreateResult GraphOperation::create(GraphParam param) {
  if (auto status = check_graph(param); !status.ok()) return {nullptr, status};
  return {std::unique_ptr<Operation>(new GraphOperation(std::move(param))), {}};
}

void GraphOperation::rewire(size_t node, std::vector<uint32_t> in_tensor_ids) {
  param_.nodes[node].inTensorIds = std::move(in_tensor_ids);
  planned_ = false;
}

void GraphOperation::number(Operation* parent, size_t index, std::vector<int64_t> ids) {
  for (size_t i = 0; i < param_.nodes.size(); ++i) {
    auto child_ids = ids;
    child_ids.push_back(static_cast<int64_t>(i));
    param_.nodes[i].operation->number(this, i, std::move(child_ids));
  }
  Operation::number(parent, index, std::move(ids));
}

void GraphOperation::ask_children() {
  for (Node& node : param_.nodes) {
    Operation& child = *node.operation;
    child.ask_children();
    child.need_save_ = Probe::IsTensorNeedSave(child.ids_, child.name_);
  }
}

void GraphOperation::set_directory(std::string directory) {
  for (size_t i = 0; i < param_.nodes.size(); ++i)
    param_.nodes[i].operation->set_directory(
        fmt::format("{}/{}_{}", directory, i, param_.nodes[i].operation->GetName()));
  Operation::set_directory(std::move(directory));
}

Status GraphOperation::propagate(const std::vector<TensorDesc>& in,
                                 std::vector<TensorDesc>& all) const {
  if (in.size() != param_.inTensorNum)
    return invalid_tensor(
        fmt::format("{} takes {} inputs, not {}", GetName(), param_.inTensorNum, in.size()));
  all.assign(param_.inTensorNum + param_.outTensorNum + param_.internalTensorNum, {});
  std::copy(in.begin(), in.end(), all.begin());
  std::vector<TensorDesc> node_in, node_out;
  for (size_t n = 0; n < param_.nodes.size(); ++n) {
    const Node& node = param_.nodes[n];
    node_in.clear();
    for (size_t i = 0; i < node.inTensorIds.size(); ++i) {
      TensorDesc desc = all[node.inTensorIds[i]];
      if (!node.inTensorReshapeFuncs.empty() && node.inTensorReshapeFuncs[i]) {
        const Dims shaped = node.inTensorReshapeFuncs[i](desc.dims);
        if (shaped.count() != desc.dims.count())
          return invalid_tensor(
              fmt::format("input {} of node {} of {} cannot be seen as [{}]: it is "
                          "[{}]",
                          i, n, GetName(), shaped.text(), desc.dims.text()));
        desc.dims = shaped;
      }
      node_in.push_back(desc);
    }
    if (auto status = node.operation->InferShape(node_in, node_out); !status.ok())
      return {status.code(), fmt::format("node {} of {}: {}", n, GetName(), status.message())};
    for (size_t i = 0; i < node.outTensorIds.size(); ++i) {
      const uint32_t id = node.outTensorIds[i];
      // A tensor that is also an input is written in place and keeps its shape.
      if (id < param_.inTensorNum) {
        if (all[id].bytes() != node_out[i].bytes())
          return invalid_tensor(
              fmt::format("node {} of {} writes an input of another size", n, GetName()));
      } else {
        all[id] = node_out[i];
      }
    }
  }
  return {};
}

Status GraphOperation::InferShape(const std::vector<TensorDesc>& in,
                                  std::vector<TensorDesc>& out) const {
  std::vector<TensorDesc> all;
  if (auto status = propagate(in, all); !status.ok()) return status;
  out.assign(all.begin() + param_.inTensorNum,
             all.begin() + param_.inTensorNum + param_.outTensorNum);
  return {};
}

Status GraphOperation::plan(const std::vector<TensorDesc>& in) {
  std::vector<TensorDesc> all;
  if (auto status = propagate(in, all); !status.ok()) return status;
  const uint32_t first_internal = param_.inTensorNum + param_.outTensorNum;
  offsets_.clear();
  internal_bytes_ = 0;
  for (size_t id = first_internal; id < all.size(); ++id) {
    offsets_.push_back(internal_bytes_);
    internal_bytes_ += aligned(all[id].bytes());
  }
  packs_.assign(param_.nodes.size(), {});
  for (size_t n = 0; n < param_.nodes.size(); ++n) {
    const Node& node = param_.nodes[n];
    for (size_t i = 0; i < node.inTensorIds.size(); ++i) {
      TensorDesc desc = all[node.inTensorIds[i]];
      if (!node.inTensorReshapeFuncs.empty() && node.inTensorReshapeFuncs[i])
        desc.dims = node.inTensorReshapeFuncs[i](desc.dims);
      packs_[n].inTensors.push_back({desc, nullptr});
    }
    for (const uint32_t id : node.outTensorIds) packs_[n].outTensors.push_back({all[id], nullptr});
  }
  planned_in_ = in;
  planned_ = true;
  return {};
}

Status GraphOperation::prepare(const VariantPack& pack, uint64_t& workspace_bytes,
                               Context& context) {
  std::vector<TensorDesc> in;
  in.reserve(pack.inTensors.size());
  for (const Tensor& tensor : pack.inTensors) in.push_back(tensor.desc);
  if (!planned_ || in != planned_in_)
    if (auto status = plan(in); !status.ok()) return status;
  uint64_t largest_child = 0;
  for (size_t n = 0; n < param_.nodes.size(); ++n) {
    uint64_t child_bytes = 0;
    if (auto status = param_.nodes[n].operation->setup_runner(packs_[n], child_bytes, context);
        !status.ok())
      return status;
    largest_child = std::max(largest_child, child_bytes);
  }
  workspace_bytes = internal_bytes_ + aligned(largest_child);
  return {};
}

void GraphOperation::fill_tiling() {
  for (Node& node : param_.nodes) node.operation->fill_tiling();
}

Status GraphOperation::run(const VariantPack& pack, uint8_t* workspace, Context& context) {
  const uint32_t first_internal = param_.inTensorNum + param_.outTensorNum;
  const auto address = [&](uint32_t id) -> void* {
    if (id < param_.inTensorNum) return pack.inTensors[id].data;
    if (id < first_internal) return pack.outTensors[id - param_.inTensorNum].data;
    return workspace + offsets_[id - first_internal];
  };
  for (size_t n = 0; n < param_.nodes.size(); ++n) {
    const Node& node = param_.nodes[n];
    for (size_t i = 0; i < node.inTensorIds.size(); ++i)
      packs_[n].inTensors[i].data = address(node.inTensorIds[i]);
    for (size_t i = 0; i < node.outTensorIds.size(); ++i)
      packs_[n].outTensors[i].data = address(node.outTensorIds[i]);
    uint8_t* rest = workspace == nullptr ? nullptr : workspace + internal_bytes_;
    if (auto status = node.operation->execute_runner(packs_[n], rest, context); !status.ok())
      return status;
  }
  return {};
}

std::string GraphOperation::graph_json(const GraphPlace* place) const {
  std::string nodes;
  for (const Node& node : param_.nodes) {
    const GraphPlace child{id_list(node.inTensorIds), id_list(node.outTensorIds)};
    if (!nodes.empty()) nodes += ',';
    nodes += node.operation->graph_json(&child);
  }
  return fmt::format(
      R"({{{}"inTensorNum":{},"internalTensorNum":{},"nodes":[{}],"opName":"{}","opType":"{}",{}"outTensorNum":{},"param":""}})",
      place ? "\"inTensorIds\":" + place->in_ids + "," : "", param_.inTensorNum,
      param_.internalTensorNum, nodes, op_name(), GetName(),
      place ? "\"outTensorIds\":" + place->out_ids + "," : "", param_.outTensorNum);
}

}  // namespace atb
