#include "models/llama_weights.h"

#include <fmt/format.h>

#include <cstring>

namespace atb_speed {
namespace {

using ait::fail;
using ait::Result;
using atb::DataType;

Slice part_of(const LlamaPlan& plan, size_t dimension, int64_t whole) {
  const int64_t part = whole / static_cast<int64_t>(plan.ranks);
  const auto rank = static_cast<int64_t>(plan.rank);
  return {dimension, rank * part, (rank + 1) * part};
}

Result<void> load_linear(const LlamaPlan& plan, const Checkpoint& checkpoint,
                         const std::string& prefix, const LinearSpec& spec,
                         std::map<std::string, Weight>& into) {
  const Slice slice =
      spec.split_rows ? part_of(plan, 0, spec.rows) : part_of(plan, 1, spec.columns);
  const std::string name = prefix + spec.checkpoint;
  const atb::Dims shape{spec.rows, spec.columns};
  // int8 is made from what the checkpoint says, not from a rounded copy.
  auto weight = checkpoint.load(name + ".weight", shape,
                                plan.quantised ? DataType::kFloat : plan.dtype, slice);
  if (!weight) return fail(weight.error());
  if (plan.quantised) {
    auto [stored, scales] = quantise_rows(*weight);
    into[spec.name + ".weight"] = stored;
    into[spec.name + ".scale"] = scales;
  } else {
    into[spec.name + ".weight"] = *weight;
  }
  if (!spec.bias) return {};
  auto bias =
      checkpoint.load(name + ".bias", {spec.rows}, plan.dtype, spec.split_rows ? slice : Slice{});
  if (!bias) return fail(bias.error());
  // The ranks' products are added up: only one of them may bring the bias along.
  into[spec.name + ".bias"] =
      spec.split_rows || plan.rank == 0 ? *bias : allocate(bias->tensor.desc);
  return {};
}

}  // namespace

Result<LlamaWeights> load_weights(const LlamaPlan& plan, const Checkpoint& checkpoint) {
  const LlamaConfig& config = plan.config;
  LlamaWeights weights;
  const auto load = [&](Weight& into, const std::string& name, const atb::Dims& shape,
                        const Slice& slice = {}) -> Result<void> {
    auto weight = checkpoint.load(name, shape, plan.dtype, slice);
    if (!weight) return fail(weight.error());
    into = *weight;
    return {};
  };
  const std::string table = "model.embed_tokens.weight";
  const atb::Dims table_shape{config.vocabulary, config.hidden};
  if (auto done = load(weights.embedding, table, table_shape); !done) return fail(done.error());
  if (auto done = load(weights.final_norm, "model.norm.weight", {config.hidden}); !done)
    return fail(done.error());
  const bool tied = config.tied_embeddings;
  const Slice head = plan.split_head ? part_of(plan, 0, config.vocabulary) : Slice{};
  if (auto done = load(weights.head, tied ? table : "lm_head.weight", table_shape, head); !done)
    return fail(done.error());
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    auto& layer = weights.layers.emplace_back();
    const atb::Dims norm{config.hidden};
    if (auto done = load(layer["input_norm"], prefix + "input_layernorm.weight", norm); !done)
      return fail(done.error());
    if (auto done = load(layer["post_norm"], prefix + "post_attention_layernorm.weight", norm);
        !done)
      return fail(done.error());
    for (const LinearSpec& spec : layer_linears(config))
      if (auto done = load_linear(plan, checkpoint, prefix, spec, layer); !done)
        return fail(done.error());
  }
  return weights;
}

std::map<std::string, Weight> rolled_key_heads(const LlamaPlan& plan,
                                               const std::map<std::string, Weight>& layer) {
  std::map<std::string, Weight> rolled;
  for (const char* name : {"k.weight", "k.bias", "k.scale"}) {
    const auto found = layer.find(name);
    if (found == layer.end()) continue;
    const atb::Tensor& from = found->second.tensor;
    Weight to = allocate(from.desc);
    const uint64_t bytes = from.desc.bytes();
    const uint64_t head = bytes / static_cast<uint64_t>(plan.kv_heads());
    std::memcpy(to.tensor.as<uint8_t>(), from.as<uint8_t>() + head, bytes - head);
    std::memcpy(to.tensor.as<uint8_t>() + bytes - head, from.as<uint8_t>(), head);
    rolled[name] = to;
  }
  return rolled;
}

}  // namespace atb_speed
