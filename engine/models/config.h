// What config.json of a Hugging Face folder says about a decoder-only model of the llama family.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace atb_speed {

enum class RopeKind : uint8_t { kDefault, kLinear, kLlama3 };

struct RopeConfig {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000;
  double factor = 1;
  // llama3 only.
  double low_freq_factor = 1, high_freq_factor = 4, original_positions = 8192;
};

struct LlamaConfig {
  std::string model_type;  // llama, qwen2 or mistral
  int64_t hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0,
          vocabulary = 0, max_positions = 0;
  int64_t sliding_window = 0;  // 0: none
  float epsilon = 1e-6f;
  bool tied_embeddings = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  int64_t pad_token = 0;
  RopeConfig rope;
};

// Fails when the file is missing or broken, for other model types, and for variants that this
// library does not compute (other activations, partial rotary embedding).
ait::Result<LlamaConfig> read_config(const std::string& folder);

// Angle per position for each pair of a head: head_size / 2 numbers.
std::vector<float> rope_frequencies(const LlamaConfig& config);

}  // namespace atb_speed
