// A model: top-level operations that hand tensors to each other, run one after another.
//
//   Model model("LlamaPrefillModel", 0, {"tokens"}, {"logits"});
//   model.add_weight("embedding", tensor);
//   model.add_node(std::move(operation), {"embedding", "tokens"}, {"hidden"});
//   std::vector<atb::Tensor> out;
//   auto status = model.Execute({tokens}, out, context);  // out lives until the next Execute
//
// After each execution the probe is offered the model's topology.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atb/operation.h"

namespace atb_speed {

class Model {
 public:
  // `order` numbers the models of one process, for the folders of saved tensors.
  Model(std::string name, size_t order, std::vector<std::string> inputs,
        std::vector<std::string> outputs);

  void add_weight(const std::string& name, const atb::Tensor& tensor);
  // Another tensor for a weight that was added before.
  void set_weight(const std::string& name, const atb::Tensor& tensor);
  void add_node(std::unique_ptr<atb::Operation> operation, const std::vector<std::string>& in,
                const std::vector<std::string>& out);

  atb::Operation& node_operation(size_t node) { return *nodes_[node].operation; }

  // Gives one node another tensor as one of its inputs, until clear_overrides: for wiring faults.
  void override_input(size_t node, size_t input, const atb::Tensor& tensor);
  void clear_overrides() { overrides_.clear(); }

  atb::Status Execute(const std::vector<atb::Tensor>& in, std::vector<atb::Tensor>& out,
                      atb::Context& context);

 private:
  enum class Kind : uint8_t { kInput, kOutput, kInternal, kWeight };
  struct Place {
    Kind kind;
    size_t index;
  };
  struct ModelNode {
    std::unique_ptr<atb::Operation> operation;
    std::vector<Place> in, out;
  };
  struct Buffer {
    std::shared_ptr<void> memory;
    uint64_t bytes = 0;
  };

  Place place_of(const std::string& name);
  atb::Status run_node(size_t node, const std::vector<atb::Tensor>& in, atb::Context& context);
  const atb::Tensor& tensor_at(const Place& place, const std::vector<atb::Tensor>& in) const;
  static void* reserve(Buffer& buffer, uint64_t bytes);
  std::string topology() const;

  std::string name_;
  size_t order_;
  uint64_t executions_ = 0;
  atb::TaskRound task_round_;
  size_t input_count_, output_count_, internal_count_ = 0;
  std::map<std::string, Place> places_;
  std::vector<atb::Tensor> weights_;
  std::vector<ModelNode> nodes_;
  std::map<std::pair<size_t, size_t>, atb::Tensor> overrides_;
  // What the nodes wrote in this execution: outputs first, then internal tensors.
  std::vector<atb::Tensor> written_;
  std::vector<Buffer> buffers_;
  Buffer workspace_;
};

}  // namespace atb_speed
