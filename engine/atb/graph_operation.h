// An operation made of other operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "atb/operation.h"

namespace atb {

// Another shape for the same elements, for one node's eyes.
using ReshapeFunc = std::function<Dims(const Dims&)>;

// Tensor ids count the graph's inputs, then its outputs, then its internal tensors.
struct Node {
  std::unique_ptr<Operation> operation;
  std::vector<uint32_t> inTensorIds;
  std::vector<uint32_t> outTensorIds;
  std::vector<ReshapeFunc> inTensorReshapeFuncs;  // empty, or one for each input (null: as it is)
};

struct GraphParam {
  std::string name;  // the type name of the whole, "Prefill_layer"
  uint32_t inTensorNum = 0;
  uint32_t outTensorNum = 0;
  uint32_t internalTensorNum = 0;
  std::vector<Node> nodes;  // in order of execution
};

class AIT_ATB_API GraphOperation final : public Operation {
 public:
  // Fails when a node is missing, an id is out of range, or a tensor is read before it is written.
  static CreateResult create(GraphParam param);

  size_t GetInputNum() const override { return param_.inTensorNum; }
  size_t GetOutputNum() const override { return param_.outTensorNum; }
  Status InferShape(const std::vector<TensorDesc>& in, std::vector<TensorDesc>& out) const override;
  size_t child_count() const override { return param_.nodes.size(); }
  Operation* child(size_t index) override { return param_.nodes[index].operation.get(); }

  // Gives a node other inputs from the next Setup on; for planting wiring faults.
  void rewire(size_t node, std::vector<uint32_t> in_tensor_ids);
  const Node& node(size_t index) const { return param_.nodes[index]; }

 private:
  explicit GraphOperation(GraphParam param);

  void number(Operation* parent, size_t index, std::vector<int64_t> ids) override;
  void ask_children() override;
  void set_directory(std::string directory) override;
  Status prepare(const VariantPack& pack, uint64_t& workspace_bytes, Context& context) override;
  void fill_tiling() override;
  Status run(const VariantPack& pack, uint8_t* workspace, Context& context) override;
  std::string runner_name() const override { return GetName() + "GraphRunner"; }
  bool is_graph() const override { return true; }
  std::string graph_json(const GraphPlace* place) const override;

  Status propagate(const std::vector<TensorDesc>& in, std::vector<TensorDesc>& all) const;
  Status plan(const std::vector<TensorDesc>& in);

  GraphParam param_;
  // For the shapes of the last Setup: each child's pack without addresses, and where internal
  // tensors lie in the workspace.
  std::vector<TensorDesc> planned_in_;
  bool planned_ = false;
  std::vector<VariantPack> packs_;
  std::vector<uint64_t> offsets_;  // of internal tensors
  uint64_t internal_bytes_ = 0;
};

}  // namespace atb
