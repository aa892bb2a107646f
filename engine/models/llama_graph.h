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

  int64_t heads() const { return config.heads / static_cast<int64_t>(ranks); }
  int64_t kv_heads() const { return config.kv_heads / static_cast<int64_t>(ranks); }
  int64_t intermediate() const { return config.intermediate / static_cast<int64_t>(ranks); }
};

// One matrix of a layer: its name in the graph ("q"), its place in a checkpoint and its size.
struct LinearSpec {
  std::string name, checkpoint;
  int64_t rows, columns;  // of the whole matrix
  bool bias;
  bool split_rows;  // what the ranks divide: rows, else columns
};
std::vector<LinearSpec> layer_linears(const LlamaConfig& config);

// The tensors of one matrix: "q.weight", ["q.bias"], ["q.scale"].
std::vector<std::string> linear_tensors(const LlamaPlan& plan, const LinearSpec& spec);

// Names of the layer's inputs in order: "hidden", its weights, then what the host provides.
std::vector<std::string> layer_inputs(const LlamaPlan& plan, bool prefill);

atb::CreateResult make_word_embedding();
atb::CreateResult make_position_embedding();
atb::CreateResult make_layer(const LlamaPlan& plan, bool prefill);
atb::CreateResult make_final_norm(const LlamaPlan& plan);
atb::CreateResult make_lm_head(const LlamaPlan& plan, bool prefill);

}  // namespace atb_speed
