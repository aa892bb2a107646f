// The operations of llama-family models, as graphs.
#pragma once

#include <string>
#include <vector>

#include "atb/graph_operation.h"
#include "models/config.h"

namespace atb_speed {

// How one rank runs a model.
struct LlamaPlan {
  LlamaConfig config;
  atb::DataType dtype = atb::DataType::kFloat;  // of activations
  bool quantised = false;                       // int8 weights in the layers
  size_t rank = 0, ranks = 1;
  bool split_head = false;  // the rows of the output matrix are divided among the ranks

  int64_t Heads() const { return config.heads / static_cast<int64_t>(ranks); }
  int64_t KvHeads() const { return config.kv_heads / static_cast<int64_t>(ranks); }
  int64_t Intermediate() const { return config.intermediate / static_cast<int64_t>(ranks); }
};

// One matrix of a layer: its name in the graph ("q"), its place in a checkpoint and its size.
struct LinearSpec {
  std::string name, checkpoint;
  int64_t rows, columns;  // of the whole matrix
  bool bias;
  bool split_rows;  // what the ranks divide: rows, else columns
};
std::vector<LinearSpec> LayerLinears(const LlamaConfig& config);

// The tensors of one matrix: "q.weight", ["q.bias"], ["q.scale"].
std::vector<std::string> LinearTensors(const LlamaPlan& plan, const LinearSpec& spec);

// Names of the layer's inputs in order: "hidden", its weights, then what the host provides.
std::vector<std::string> LayerInputs(const LlamaPlan& plan, bool prefill);

atb::CreateResult MakeWordEmbedding();
atb::CreateResult MakePositionEmbedding();
atb::CreateResult MakeLayer(const LlamaPlan& plan, bool prefill);
atb::CreateResult MakeFinalNorm(const LlamaPlan& plan);
atb::CreateResult MakeLmHead(const LlamaPlan& plan, bool prefill);

}  // namespace atb_speed
