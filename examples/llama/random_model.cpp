#include "random_model.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "formats/write.h"
#include "record/atomic_file.h"

namespace ait_llama {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;

constexpr int64_t kHidden = 64, kInner = 160, kLayers = 4, kHeads = 4, kKeyHeads = 2, kTokens = 256;
constexpr int64_t kKeyWidth = kHidden / kHeads * kKeyHeads;
// Large enough that every layer matters to the result.
constexpr float kWeightSpread = 0.15f, kNormSpread = 0.1f;

std::string config_text() {
  return fmt::format(
      R"({{
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "hidden_act": "silu",
  "hidden_size": {},
  "intermediate_size": {},
  "max_position_embeddings": 1024,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": {},
  "num_hidden_layers": {},
  "num_key_value_heads": {},
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "float32",
  "vocab_size": {}
}}
)",
      kHidden, kInner, kHeads, kLayers, kKeyHeads, kTokens);
}

// Four uniform numbers make one that is normal enough; unlike the standard library's own
// distributions they are the same everywhere.
float next_normal(std::mt19937& random) {
  constexpr float kOneStep = 0x1p-32f;
  constexpr float kSpread = 1.7320508f;  // of a sum of four on [-1/2, 1/2], the inverse
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(random()) * kOneStep - 0.5f;
  return sum * kSpread;
}

class Weights {
 public:
  Result<void> add(const std::string& name, const ait::Shape& shape) {
    const bool norm = shape.size() == 1;
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    const auto values = std::make_shared<std::vector<float>>(count);
    for (float& value : *values)
      value = norm ? 1 + kNormSpread * next_normal(random_) : kWeightSpread * next_normal(random_);
    auto tensor = ait::Tensor::contiguous(values, std::as_bytes(std::span(*values)),
                                          ait::DType::kFloat32, shape);
    if (!tensor) return fail(tensor.error());
    tensors_.push_back({name, *tensor});
    return {};
  }
  const std::vector<ait::formats::NamedTensor>& tensors() const { return tensors_; }

 private:
  std::mt19937 random_{20240229};
  std::vector<ait::formats::NamedTensor> tensors_;
};

Result<void> fill(Weights& weights) {
  struct Part {
    const char* name;
    ait::Shape shape;
  };
  const std::vector<Part> layer_parts{
      {"input_layernorm", {kHidden}},
      {"self_attn.q_proj", {kHidden, kHidden}},
      {"self_attn.k_proj", {kKeyWidth, kHidden}},
      {"self_attn.v_proj", {kKeyWidth, kHidden}},
      {"self_attn.o_proj", {kHidden, kHidden}},
      {"post_attention_layernorm", {kHidden}},
      {"mlp.gate_proj", {kInner, kHidden}},
      {"mlp.up_proj", {kInner, kHidden}},
      {"mlp.down_proj", {kHidden, kInner}},
  };
  if (auto added = weights.add("model.embed_tokens.weight", {kTokens, kHidden}); !added)
    return added;
  for (int64_t layer = 0; layer < kLayers; ++layer)
    for (const Part& part : layer_parts)
      if (auto added =
              weights.add(fmt::format("model.layers.{}.{}.weight", layer, part.name), part.shape);
          !added)
        return added;
  if (auto added = weights.add("model.norm.weight", {kHidden}); !added) return added;
  return weights.add("lm_head.weight", {kTokens, kHidden});
}

}  // namespace

Result<void> write_random_model(const std::string& folder) {
  Weights weights;
  if (auto filled = fill(weights); !filled) return filled;
  if (auto written = ait::formats::write_tensor_file(
          folder + "/model.safetensors", weights.tensors(), ait::formats::FileFormat::kSafetensors);
      !written)
    return written;
  std::string config = config_text();
  const std::string path = folder + "/config.json";
  const iovec part{config.data(), config.size()};
  const auto status = ait::record::write_file(path.c_str(), &part, 1);
  if (!status.ok())
    return fail(Error(ErrorCode::kUnwritable, path)
                << "cannot " << status.step << ": " << ait::system_message(status.error_number));
  return {};
}

}  // namespace ait_llama
