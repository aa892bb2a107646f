#include "models.h"

namespace host {
namespace {

constexpr int kInt32 = 3;
constexpr int kNd = 2;

using atb::OperationDescription;
using atb::TensorDescription;

TensorDescription main_tensor(const ModelOptions& options) {
  return {options.dtype, options.format, options.dims};
}

const TensorDescription kTokens = {kInt32, kNd, {4}};

// A cache that is not used: no bytes, so no file, and a gap in the numbering of files.
TensorDescription empty_tensor(const ModelOptions& options) {
  return {options.dtype, options.format, {0, 3}};
}

OperationDescription word_embedding(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "WordEmbeddingOperation";
  operation.param = R"({"axis":0,"batchDims":1})";
  operation.inputs = {kTokens, main_tensor(options)};
  operation.outputs = {main_tensor(options)};
  operation.kernels = {{"Gather16Kernel", 32}};
  return operation;
}

OperationDescription position_embedding(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "PositionEmbeddingOperation";
  operation.inputs = {kTokens};
  operation.outputs = {main_tensor(options)};
  return operation;
}

OperationDescription rms_norm(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "RmsNormOperation";
  operation.param = R"({"epsilon":1e-05,"layerType":"RMS_NORM_NORM"})";
  operation.inputs = {main_tensor(options), main_tensor(options)};
  operation.outputs = {main_tensor(options)};
  if (options.has_parameter_names) {
    operation.input_names = {"x", "gamma"};
    operation.output_names = {"output"};
  }
  operation.kernels = {{"RmsNormKernel", 48}};
  return operation;
}

OperationDescription self_attention(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "SelfAttentionOperation";
  operation.param = R"({"headNum":2,"maskType":"MASK_TYPE_NORM","qScale":0})";
  operation.inputs = {main_tensor(options), empty_tensor(options), kTokens};
  operation.outputs = {main_tensor(options)};
  operation.kernels = {{"FlashAttentionKernel", 64}, {"UnpadKernel", 0}};
  return operation;
}

OperationDescription linear(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "LinearOperation";
  operation.param = R"({"hasBias":false,"transposeB":true})";
  operation.inputs = {main_tensor(options), main_tensor(options)};
  operation.outputs = {main_tensor(options)};
  if (options.has_parameter_names) {
    operation.input_names = {"x", "weight"};
    operation.output_names = {"output"};
  }
  operation.kernels = {{"MatMulKernel", 16}};
  return operation;
}

OperationDescription activation(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "ActivationOperation";
  operation.inputs = {main_tensor(options)};
  operation.outputs = {main_tensor(options)};
  operation.in_place = true;
  operation.kernels = {{"SwishKernel", 8}};
  return operation;
}

OperationDescription elewise(const ModelOptions& options) {
  OperationDescription operation;
  operation.type = "ElewiseOperation";
  operation.param = options.param;
  operation.inputs = {main_tensor(options), main_tensor(options)};
  operation.outputs = {main_tensor(options)};
  operation.kernels = {{"AddF16Kernel", 24}};
  return operation;
}

// Tensors: 0, 1 the inputs, 2 the output, which the second node changes in place.
OperationDescription mlp(const ModelOptions& options) {
  OperationDescription graph;
  graph.type = "ParallelMlp";
  graph.inputs = {main_tensor(options), main_tensor(options)};
  graph.outputs = {main_tensor(options)};
  graph.nodes = {{linear(options), {0, 1}, {2}}, {activation(options), {2}, {2}}};
  return graph;
}

// Tensors: 0 hidden states, 1 weights, 2 tokens, 3 cache; 4 the output; 5, 6, 7 internal.
OperationDescription layer(const ModelOptions& options, const std::string& type) {
  OperationDescription graph;
  graph.type = type;
  graph.inputs = {main_tensor(options), main_tensor(options), kTokens, empty_tensor(options)};
  graph.outputs = {main_tensor(options)};
  graph.internal_tensors = 3;
  graph.nodes = {{rms_norm(options), {0, 1}, {5}},
                 {self_attention(options), {5, 3, 2}, {6}},
                 {mlp(options), {6, 1}, {7}},
                 {elewise(options), {7, 0}, {4}}};
  return graph;
}

std::vector<std::string> numbered(const std::string& prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

}  // namespace

Session::Session(const ModelOptions& options, const std::string& suffix) : options_(options) {
  for (int i = 0; i < options.warm_operations; ++i) {
    OperationDescription operation = position_embedding(options);
    operation.type = "WarmOperation" + suffix;
    warm_.push_back(own(std::move(operation)));
  }
  if (options.model == "spec") {
    models_ = {build_spec(suffix), build_spec(suffix)};
    models_[1].nodes[0].operation = models_[0].nodes[0].operation;
  } else {
    models_ = {build_prefill(suffix), build_decode(suffix)};
  }
}

atb::Operation* Session::own(OperationDescription description) {
  operations_.push_back(std::make_unique<atb::Operation>(std::move(description)));
  return operations_.back().get();
}

atb_speed::Model Session::build_prefill(const std::string& suffix) {
  atb_speed::Model model;
  model.name = "TinyPrefillModel" + suffix;
  model.in_tensors = numbered(model.name + "_input_", 2);
  model.out_tensors = numbered(model.name + "_output_", 1);
  model.internal_tensors = numbered(model.name + "_internal_", options_.layers + 1);
  model.weight_tensors = numbered(model.name + "_weight_", options_.layers + 1);
  OperationDescription words = word_embedding(options_);
  words.type += suffix;
  OperationDescription positions = position_embedding(options_);
  positions.type += suffix;
  model.nodes = {{own(std::move(words)),
                  {model.in_tensors[0], model.weight_tensors[0]},
                  {model.internal_tensors[0]}},
                 {own(std::move(positions)), {model.in_tensors[0]}, {model.internal_tensors[1]}}};
  for (int i = 0; i < options_.layers; ++i) {
    const size_t k = static_cast<size_t>(i);
    model.nodes.push_back(
        {own(layer(options_, "PrefillLayer" + suffix)),
         {i == 0 ? model.internal_tensors[0] : model.internal_tensors[k + 1],
          model.weight_tensors[k + 1], model.in_tensors[0], model.in_tensors[1]},
         {i + 1 == options_.layers ? model.out_tensors[0] : model.internal_tensors[k + 2]}});
  }
  return model;
}

atb_speed::Model Session::build_decode(const std::string& suffix) {
  atb_speed::Model model;
  model.name = "TinyDecodeModel" + suffix;
  model.in_tensors = numbered(model.name + "_input_", 3);
  model.out_tensors = numbered(model.name + "_output_", 1);
  model.internal_tensors = numbered(model.name + "_internal_", options_.layers - 1);
  model.weight_tensors = numbered(model.name + "_weight_", options_.layers);
  for (int i = 0; i < options_.layers; ++i) {
    const size_t k = static_cast<size_t>(i);
    model.nodes.push_back(
        {own(layer(options_, "DecodeLayer" + suffix)),
         {i == 0 ? model.in_tensors[2] : model.internal_tensors[k - 1], model.weight_tensors[k],
          model.in_tensors[0], model.in_tensors[1]},
         {i + 1 == options_.layers ? model.out_tensors[0] : model.internal_tensors[k]}});
  }
  return model;
}

// Tensors of the layer: 0, 1, 2 the inputs, 3 the output, 4 internal.
atb_speed::Model Session::build_spec(const std::string& suffix) {
  atb_speed::Model model;
  model.name = "SpecModel" + suffix;
  model.in_tensors = numbered(model.name + "_input_", 3);
  model.out_tensors = numbered(model.name + "_output_", 1);
  OperationDescription graph;
  graph.type = "TinyLayer" + suffix;
  graph.inputs.assign(3, main_tensor(options_));
  graph.outputs = {main_tensor(options_)};
  graph.internal_tensors = 1;
  graph.nodes = {{linear(options_), {0, 1}, {4}}, {elewise(options_), {4, 2}, {3}}};
  graph.nodes[1].operation.kernels = {{"CastF16Kernel", 0}, {"AddF16Kernel", 24}};
  model.nodes = {{own(std::move(graph)), model.in_tensors, model.out_tensors}};
  return model;
}

int Session::run(atb::Operation& operation, atb::Context& context, void (*between)()) const {
  for (int i = 0; i < options_.setups_per_execution; ++i) operation.setup(context);
  for (int i = 0; i < options_.executions_per_setup; ++i) {
    const int status = operation.execute(context);
    if (status != atb::kOk) return status;
  }
  between();
  return atb::kOk;
}

int Session::step(int round, atb::Context& context, void (*between)()) {
  if (round == 0) {
    for (atb::Operation* operation : warm_) run(*operation, context, between);
  }
  const atb_speed::Model& model = models_[round == 0 ? 0 : 1];
  for (const atb_speed::ModelNode& node : model.nodes) {
    const int status = run(*node.operation, context, between);
    if (status != atb::kOk) return status;
  }
  model.report();
  return atb::kOk;
}

}  // namespace host
