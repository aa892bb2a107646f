#include "models/model.h"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "atb/align.h"
#include "atb/probe.h"

namespace atb_speed {

Model::Model(std::string name, size_t order, std::vector<std::string> inputs,
             std::vector<std::string> outputs)
    : name_(std::move(name)),
      order_(order),
      input_count_(inputs.size()),
      output_count_(outputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) places_[inputs[i]] = {Kind::kInput, i};
  for (size_t i = 0; i < outputs.size(); ++i) places_[outputs[i]] = {Kind::kOutput, i};
}

void Model::add_weight(const std::string& name, const atb::Tensor& tensor) {
  places_[name] = {Kind::kWeight, weights_.size()};
  weights_.push_back(tensor);
}

void Model::set_weight(const std::string& name, const atb::Tensor& tensor) {
  weights_[places_.at(name).index] = tensor;
}

Model::Place Model::place_of(const std::string& name) {
  const auto [place, fresh] = places_.try_emplace(name, Place{Kind::kInternal, internal_count_});
  if (fresh) ++internal_count_;
  return place->second;
}

void Model::add_node(std::unique_ptr<atb::Operation> operation, const std::vector<std::string>& in,
                     const std::vector<std::string>& out) {
  ModelNode node;
  node.operation = std::move(operation);
  for (const std::string& name : in) node.in.push_back(place_of(name));
  for (const std::string& name : out) node.out.push_back(place_of(name));
  nodes_.push_back(std::move(node));
}

void Model::override_input(size_t node, size_t input, const atb::Tensor& tensor) {
  overrides_[{node, input}] = tensor;
}

void* Model::reserve(Buffer& buffer, uint64_t bytes) {
  if (buffer.bytes >= bytes && buffer.memory) return buffer.memory.get();
  const uint64_t size = atb::aligned(std::max<uint64_t>(1, bytes));
  buffer.memory.reset(std::aligned_alloc(atb::kAlignmentBytes, size), std::free);
  if (!buffer.memory) throw std::bad_alloc();
  buffer.bytes = size;
  return buffer.memory.get();
}

const atb::Tensor& Model::tensor_at(const Place& place, const std::vector<atb::Tensor>& in) const {
  switch (place.kind) {
    case Kind::kInput:
      return in[place.index];
    case Kind::kWeight:
      return weights_[place.index];
    case Kind::kOutput:
      return written_[place.index];
    case Kind::kInternal:
      break;
  }
  return written_[output_count_ + place.index];
}

atb::Status Model::run_node(size_t index, const std::vector<atb::Tensor>& in,
                            atb::Context& context) {
  ModelNode& node = nodes_[index];
  atb::VariantPack pack;
  std::vector<atb::TensorDesc> in_descs, out_descs;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const auto replaced = overrides_.find({index, i});
    pack.inTensors.push_back(replaced == overrides_.end() ? tensor_at(node.in[i], in)
                                                          : replaced->second);
    in_descs.push_back(pack.inTensors.back().desc);
  }
  if (auto status = node.operation->InferShape(in_descs, out_descs); !status.ok()) return status;
  for (size_t i = 0; i < node.out.size(); ++i) {
    const Place& place = node.out[i];
    const size_t slot = place.index + (place.kind == Kind::kInternal ? output_count_ : 0);
    written_[slot] = {out_descs[i], reserve(buffers_[slot], out_descs[i].bytes())};
    pack.outTensors.push_back(written_[slot]);
  }
  context.place().node = index;
  uint64_t workspace_bytes = 0;
  if (auto status = node.operation->Setup(pack, workspace_bytes, context); !status.ok())
    return status;
  auto* workspace = static_cast<uint8_t*>(reserve(workspace_, workspace_bytes));
  return node.operation->Execute(pack, workspace, workspace_bytes, context);
}

atb::Status Model::Execute(const std::vector<atb::Tensor>& in, std::vector<atb::Tensor>& out,
                           atb::Context& context) {
  if (in.size() != input_count_)
    return atb::invalid_tensor(
        fmt::format("{} takes {} inputs, not {}", name_, input_count_, in.size()));
  written_.resize(output_count_ + internal_count_);
  buffers_.resize(written_.size());
  context.place().folder = fmt::format("{}_{}", order_, name_);
  if (atb::save_tensor_on()) context.place().round = task_round_.of(executions_);
  ++executions_;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (auto status = run_node(i, in, context); !status.ok()) {
      context.place().folder.clear();
      return {status.code(), fmt::format("{}, node {}: {}", name_, i, status.message())};
    }
  context.place().folder.clear();
  out.assign(written_.begin(), written_.begin() + static_cast<std::ptrdiff_t>(output_count_));
  if (SpeedProbe::IsReportModelTopoInfo(name_)) SpeedProbe::ReportModelTopoInfo(name_, topology());
  return {};
}

std::string Model::topology() const {
  const auto names = [&](const char* kind, size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i)
      list += fmt::format("{}\"{}_{}_{}\"", i > 0 ? "," : "", name_, kind, i);
    return "[" + list + "]";
  };
  const auto places = [&](const std::vector<Place>& list) {
    static constexpr const char* kKinds[] = {"input", "output", "internal", "weight"};
    std::string text;
    for (const Place& place : list)
      text += fmt::format("{}\"{}_{}_{}\"", text.empty() ? "" : ",", name_,
                          kKinds[static_cast<size_t>(place.kind)], place.index);
    return "[" + text + "]";
  };
  std::string nodes;
  for (const ModelNode& node : nodes_)
    nodes += fmt::format(R"({}{{"inTensors":{},"opName":"{}","outTensors":{}}})",
                         nodes.empty() ? "" : ",", places(node.in), node.operation->GetName(),
                         places(node.out));
  return fmt::format(
      R"({{"inTensors":{},"internalTensors":{},"modelName":"{}","nodes":[{}],"outTensors":{},"weightTensors":{}}})",
      names("input", input_count_), names("internal", internal_count_), name_, nodes,
      names("output", output_count_), names("weight", weights_.size()));
}

}  // namespace atb_speed
