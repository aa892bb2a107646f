#include "models/llama_graph.h"

#include <fmt/format.h>

#include <cmath>

#include "models/graph_builder.h"

namespace atb_speed {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kNoBias = R"({"hasBias":false})";
constexpr const char* kAdd = R"({"elewiseType":8})";
constexpr const char* kMul = R"({"elewiseType":9})";
constexpr const char* kDynamicQuant = R"({"elewiseType":19})";
constexpr const char* kSwish = R"({"activationType":4})";

Names joined(std::initializer_list<Names> lists) {
  Names all;
  for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::string rms_norm_param(const LlamaPlan& plan) {
  return fmt::format(R"({{"layerType":1,"normParam":{{"epsilon":{}}}}})", plan.config.epsilon);
}

std::string collective_param(const LlamaPlan& plan) {
  return fmt::format(R"({{"rank":{},"rankSize":{}}})", plan.rank, plan.ranks);
}

// [n, heads * size] as [n, heads, size], and back.
atb::ReshapeFunc to_heads(int64_t heads) {
  return [heads](const atb::Dims& dims) {
    return atb::Dims{dims[0], heads, heads == 0 ? 0 : dims.count(1) / heads};
  };
}
atb::Dims flat_rows(const atb::Dims& dims) { return {dims[0], dims.count(1)}; }

const LinearSpec& find(const std::vector<LinearSpec>& specs, const std::string& name) {
  for (const LinearSpec& spec : specs)
    if (spec.name == name) return spec;
  return specs.front();
}

// Where int8 weights are used the input has been quantised to `x`.q and `x`.s before.
void add_linear(GraphBuilder& graph, const LlamaPlan& plan, const LinearSpec& spec,
                const std::string& x, const std::string& y, const atb::ReshapeFunc& reshape = {}) {
  const std::string weight = spec.name + ".weight", bias = spec.name + ".bias";
  if (!plan.quantised) {
    Names in{x, weight};
    if (spec.bias) in.push_back(bias);
    std::vector<atb::ReshapeFunc> shapes;
    if (reshape) {
      shapes.resize(in.size());
      shapes[0] = reshape;
    }
    graph.add("LinearOperation", spec.bias ? R"({"hasBias":true})" : kNoBias, in, {y}, shapes);
    return;
  }
  // A scale for each token leaves no room for an int32 bias: it is added afterwards.
  const std::string product = spec.bias ? y + ".product" : y;
  graph.add("LinearOperation",
            fmt::format(R"({{"hasBias":false,"outDataType":{},"quantMode":2}})",
                        static_cast<int>(plan.dtype)),
            {x + ".q", weight, spec.name + ".scale", x + ".s"}, {product});
  if (spec.bias) graph.add("ElewiseOperation", kAdd, {product, bias}, {y});
}

void add_quant(GraphBuilder& graph, const LlamaPlan& plan, const std::string& x,
               const atb::ReshapeFunc& reshape = {}) {
  if (!plan.quantised) return;
  std::vector<atb::ReshapeFunc> shapes;
  if (reshape) shapes.push_back(reshape);
  graph.add("ElewiseOperation", kDynamicQuant, {x}, {x + ".q", x + ".s"}, shapes);
}

// The part of a split product that this rank has computed becomes the whole.
void add_reduction(GraphBuilder& graph, const LlamaPlan& plan, const std::string& part,
                   const std::string& whole) {
  if (plan.ranks > 1) graph.add("AllReduceOperation", collective_param(plan), {part}, {whole});
}

Names host_tensors(bool prefill) {
  return prefill ? Names{"cos", "sin", "seq_len", "mask", "k_cache", "v_cache", "slots"}
                 : Names{"cos", "sin", "seq_len", "k_cache", "v_cache", "slots", "block_tables"};
}

Names weights_of(const LlamaPlan& plan, const Names& linears) {
  const auto specs = layer_linears(plan.config);
  Names names;
  for (const std::string& name : linears) {
    const Names own = linear_tensors(plan, find(specs, name));
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

atb::CreateResult make_attention(const LlamaPlan& plan, bool prefill) {
  const auto specs = layer_linears(plan.config);
  GraphBuilder graph("Attention",
                     joined({{"x"}, weights_of(plan, {"q", "k", "v", "o"}), host_tensors(prefill)}),
                     {"y"});
  add_quant(graph, plan, "x");
  for (const char* name : {"q", "k", "v"}) add_linear(graph, plan, find(specs, name), "x", name);
  graph.add("RopeOperation", R"({"rotaryCoeff":2})", {"q", "k", "cos", "sin", "seq_len"},
            {"q.rope", "k.rope"});
  const auto heads = to_heads(plan.heads()), kv_heads = to_heads(plan.kv_heads());
  graph.add("ReshapeAndCacheOperation", "{}", {"k.rope", "v", "k_cache", "v_cache", "slots"},
            {"k_cache", "v_cache"}, {kv_heads, kv_heads, {}, {}, {}});
  const float scale = 1 / std::sqrt(static_cast<float>(plan.config.head_size));
  const std::string common = fmt::format(R"("headNum":{},"kvHeadNum":{},"qkScale":{})",
                                         plan.heads(), plan.kv_heads(), scale);
  if (prefill)
    graph.add("SelfAttentionOperation", fmt::format(R"({{{},"calcType":3,"maskType":1}})", common),
              {"q.rope", "k.rope", "v", "mask", "seq_len"}, {"context"},
              {heads, kv_heads, kv_heads, {}, {}});
  else
    graph.add("PagedAttentionOperation", fmt::format("{{{}}}", common),
              {"q.rope", "k_cache", "v_cache", "block_tables", "seq_len"}, {"context"},
              {heads, {}, {}, {}, {}});
  add_quant(graph, plan, "context", flat_rows);
  add_linear(graph, plan, find(specs, "o"), "context", plan.ranks > 1 ? "part" : "y", flat_rows);
  add_reduction(graph, plan, "part", "y");
  return graph.build();
}

atb::CreateResult make_mlp(const LlamaPlan& plan) {
  const auto specs = layer_linears(plan.config);
  GraphBuilder graph("Mlp", joined({{"x"}, weights_of(plan, {"gate", "up", "down"})}), {"y"});
  add_quant(graph, plan, "x");
  add_linear(graph, plan, find(specs, "gate"), "x", "gate");
  add_linear(graph, plan, find(specs, "up"), "x", "up");
  graph.add("ActivationOperation", kSwish, {"gate"}, {"gate.active"});
  graph.add("ElewiseOperation", kMul, {"gate.active", "up"}, {"inner"});
  add_quant(graph, plan, "inner");
  add_linear(graph, plan, find(specs, "down"), "inner", plan.ranks > 1 ? "part" : "y");
  add_reduction(graph, plan, "part", "y");
  return graph.build();
}

}  // namespace

std::vector<LinearSpec> layer_linears(const LlamaConfig& c) {
  const int64_t q = c.heads * c.head_size, kv = c.kv_heads * c.head_size;
  return {
      {"q", "self_attn.q_proj", q, c.hidden, c.qkv_bias, true},
      {"k", "self_attn.k_proj", kv, c.hidden, c.qkv_bias, true},
      {"v", "self_attn.v_proj", kv, c.hidden, c.qkv_bias, true},
      {"o", "self_attn.o_proj", c.hidden, q, c.output_bias, false},
      {"gate", "mlp.gate_proj", c.intermediate, c.hidden, c.mlp_bias, true},
      {"up", "mlp.up_proj", c.intermediate, c.hidden, c.mlp_bias, true},
      {"down", "mlp.down_proj", c.hidden, c.intermediate, c.mlp_bias, false},
  };
}

Names linear_tensors(const LlamaPlan& plan, const LinearSpec& spec) {
  Names names{spec.name + ".weight"};
  if (spec.bias) names.push_back(spec.name + ".bias");
  if (plan.quantised) names.push_back(spec.name + ".scale");
  return names;
}

Names layer_inputs(const LlamaPlan& plan, bool prefill) {
  return joined({{"hidden", "input_norm"},
                 weights_of(plan, {"q", "k", "v", "o"}),
                 {"post_norm"},
                 weights_of(plan, {"gate", "up", "down"}),
                 host_tensors(prefill)});
}

atb::CreateResult make_word_embedding() {
  GraphBuilder graph("WordEmbedding", {"table", "tokens"}, {"hidden"});
  graph.add("GatherOperation", "{}", {"table", "tokens"}, {"hidden"});
  return graph.build();
}

atb::CreateResult make_position_embedding() {
  GraphBuilder graph("PositionEmbedding", {"cos_table", "sin_table", "positions"}, {"cos", "sin"});
  graph.add("GatherOperation", "{}", {"cos_table", "positions"}, {"cos"});
  graph.add("GatherOperation", "{}", {"sin_table", "positions"}, {"sin"});
  return graph.build();
}

atb::CreateResult make_layer(const LlamaPlan& plan, bool prefill) {
  GraphBuilder graph(prefill ? "Prefill_layer" : "Decoder_layer", layer_inputs(plan, prefill),
                     {"out"});
  const Names attention_weights = weights_of(plan, {"q", "k", "v", "o"});
  graph.add("RmsNormOperation", rms_norm_param(plan), {"hidden", "input_norm"}, {"normed"});
  graph.add(make_attention(plan, prefill),
            joined({{"normed"}, attention_weights, host_tensors(prefill)}), {"attended"});
  graph.add("ElewiseOperation", kAdd, {"hidden", "attended"}, {"middle"});
  graph.add("RmsNormOperation", rms_norm_param(plan), {"middle", "post_norm"}, {"middle.normed"});
  graph.add(make_mlp(plan), joined({{"middle.normed"}, weights_of(plan, {"gate", "up", "down"})}),
            {"expanded"});
  graph.add("ElewiseOperation", kAdd, {"middle", "expanded"}, {"out"});
  return graph.build();
}

atb::CreateResult make_final_norm(const LlamaPlan& plan) {
  return atb::CreateOperation("RmsNormOperation", rms_norm_param(plan));
}

atb::CreateResult make_lm_head(const LlamaPlan& plan, bool prefill) {
  Names inputs{"hidden", "weight"};
  if (prefill) inputs.push_back("last_rows");
  GraphBuilder graph("LmHead", inputs, {"logits"});
  std::string rows = "hidden";
  if (prefill) {
    // Only the last token of each sequence has a successor to predict.
    graph.add("GatherOperation", "{}", {"hidden", "last_rows"}, {"last"});
    rows = "last";
  }
  if (!plan.split_head) {
    graph.add("LinearOperation", kNoBias, {rows, "weight"}, {"logits"});
    return graph.build();
  }
  graph.add("LinearOperation", kNoBias, {rows, "weight"}, {"part"});
  graph.add("AllGatherOperation", collective_param(plan), {"part"}, {"parts"});
  graph.add("TransposeOperation", R"({"perm":[1,0,2]})", {"parts"}, {"logits"});
  return graph.build();
}

}  // namespace atb_speed
