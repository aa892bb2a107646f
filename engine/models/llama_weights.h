// The weights of one rank, by the names that the graphs use.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/llama_graph.h"

namespace atb_speed {

struct LlamaWeights {
  Weight embedding, final_norm, head;
  std::vector<std::map<std::string, Weight>> layers;  // "q.weight", "input_norm", …
};

ait::Result<LlamaWeights> load_weights(const LlamaPlan& plan, const Checkpoint& checkpoint);

// The tensors of the key projection with every head moved to its neighbour's place.
std::map<std::string, Weight> rolled_key_heads(const LlamaPlan& plan,
                                               const std::map<std::string, Weight>& layer);

}  // namespace atb_speed
