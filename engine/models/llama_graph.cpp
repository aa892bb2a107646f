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

Names Joined(std::initializer_list<Names> lists) {
  Names all;
  for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::string RmsNormParam(const LlamaPlan& plan) {
  return fmt::format(R"({{"layerType":1,"normParam":{{"epsilon":{}}}}})", plan.config.epsilon);
}

std::string CollectiveParam(const LlamaPlan& plan) {
  return fmt::format(R"({{"rank":{},"rankSize":{}}})", plan.rank, plan.ranks);
}

// [n, heads * size] as [n, heads, size], and back.
atb::ReshapeFunc ToHeads(int64_t heads) {
  return [heads](const atb::Dims& dims) {
    return atb::Dims{dims[0], heads, heads == 0 ? 0 : dims.Count(1) / heads};
  };
}
atb::Dims FlatRows(const atb::Dims& dims) { return {dims[0], dims.Count(1)}; }

const LinearSpec& Find(const std::vector<LinearSpec>& specs, const std::string& name) {
  for (const LinearSpec& spec : specs)
    if (spec.name == name) return spec;
  return specs.front();
}

// Where int8 weights are used the input has been quantised to `x`.q and `x`.s before.
void AddLinear(GraphBuilder& graph, const LlamaPlan& plan, const LinearSpec& spec,
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
    graph.Add("LinearOperation", spec.bias ? R"({"hasBias":true})" : kNoBias, in, {y}, shapes);
    return;
  }
  // A scale for each token leaves no room for an int32 bias: it is added afterwards.
  const std::string product = spec.bias ? y + ".product" : y;
  graph.Add("LinearOperation",
            fmt::format(R"({{"hasBias":false,"outDataType":{},"quantMode":2}})",
                        static_cast<int>(plan.dtype)),
            {x + ".q", weight, spec.name + ".scale", x + ".s"}, {product});
  if (spec.bias) graph.Add("ElewiseOperation", kAdd, {product, bias}, {y});
}

void AddQuant(GraphBuilder& graph, const LlamaPlan& plan, const std::string& x,
              const atb::ReshapeFunc& reshape = {}) {
  if (!plan.quantised) return;
  std::vector<atb::ReshapeFunc> shapes;
  if (reshape) shapes.push_back(reshape);
  graph.Add("ElewiseOperation", kDynamicQuant, {x}, {x + ".q", x + ".s"}, shapes);
}

// The part of a split product that this rank has computed becomes the whole.
void AddReduction(GraphBuilder& graph, const LlamaPlan& plan, const std::string& part,
                  const std::string& whole) {
  if (plan.ranks > 1) graph.Add("AllReduceOperation", CollectiveParam(plan), {part}, {whole});
}

Names HostTensors(bool prefill) {
  return prefill ? Names{"cos", "sin", "seq_len", "mask", "k_cache", "v_cache", "slots"}
                 : Names{"cos", "sin", "seq_len", "k_cache", "v_cache", "slots", "block_tables"};
}

Names WeightsOf(const LlamaPlan& plan, const Names& linears) {
  const auto specs = LayerLinears(plan.config);
  Names names;
  for (const std::string& name : linears) {
    const Names own = LinearTensors(plan, Find(specs, name));
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

atb::CreateResult MakeAttention(const LlamaPlan& plan, bool prefill) {
  const auto specs = LayerLinears(plan.config);
  GraphBuilder graph("Attention",
                     Joined({{"x"}, WeightsOf(plan, {"q", "k", "v", "o"}), HostTensors(prefill)}),
                     {"y"});
  AddQuant(graph, plan, "x");
  for (const char* name : {"q", "k", "v"}) AddLinear(graph, plan, Find(specs, name), "x", name);
  graph.Add("RopeOperation", R"({"rotaryCoeff":2})", {"q", "k", "cos", "sin", "seq_len"},
            {"q.rope", "k.rope"});
  const auto heads = ToHeads(plan.Heads()), kv_heads = ToHeads(plan.KvHeads());
  graph.Add("ReshapeAndCacheOperation", "{}", {"k.rope", "v", "k_cache", "v_cache", "slots"},
            {"k_cache", "v_cache"}, {kv_heads, kv_heads, {}, {}, {}});
  const float scale = 1 / std::sqrt(static_cast<float>(plan.config.head_size));
  const std::string common = fmt::format(R"("headNum":{},"kvHeadNum":{},"qkScale":{})",
                                         plan.Heads(), plan.KvHeads(), scale);
  if (prefill)
    graph.Add("SelfAttentionOperation", fmt::format(R"({{{},"calcType":3,"maskType":1}})", common),
              {"q.rope", "k.rope", "v", "mask", "seq_len"}, {"context"},
              {heads, kv_heads, kv_heads, {}, {}});
  else
    graph.Add("PagedAttentionOperation", fmt::format("{{{}}}", common),
              {"q.rope", "k_cache", "v_cache", "block_tables", "seq_len"}, {"context"},
              {heads, {}, {}, {}, {}});
  AddQuant(graph, plan, "context", FlatRows);
  AddLinear(graph, plan, Find(specs, "o"), "context", plan.ranks > 1 ? "part" : "y", FlatRows);
  AddReduction(graph, plan, "part", "y");
  return graph.Build();
}

atb::CreateResult MakeMlp(const LlamaPlan& plan) {
  const auto specs = LayerLinears(plan.config);
  GraphBuilder graph("Mlp", Joined({{"x"}, WeightsOf(plan, {"gate", "up", "down"})}), {"y"});
  AddQuant(graph, plan, "x");
  AddLinear(graph, plan, Find(specs, "gate"), "x", "gate");
  AddLinear(graph, plan, Find(specs, "up"), "x", "up");
  graph.Add("ActivationOperation", kSwish, {"gate"}, {"gate.active"});
  graph.Add("ElewiseOperation", kMul, {"gate.active", "up"}, {"inner"});
  AddQuant(graph, plan, "inner");
  AddLinear(graph, plan, Find(specs, "down"), "inner", plan.ranks > 1 ? "part" : "y");
  AddReduction(graph, plan, "part", "y");
  return graph.Build();
}

}  // namespace

std::vector<LinearSpec> LayerLinears(const LlamaConfig& c) {
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

Names LinearTensors(const LlamaPlan& plan, const LinearSpec& spec) {
  Names names{spec.name + ".weight"};
  if (spec.bias) names.push_back(spec.name + ".bias");
  if (plan.quantised) names.push_back(spec.name + ".scale");
  return names;
}

Names LayerInputs(const LlamaPlan& plan, bool prefill) {
  return Joined({{"hidden", "input_norm"},
                 WeightsOf(plan, {"q", "k", "v", "o"}),
                 {"post_norm"},
                 WeightsOf(plan, {"gate", "up", "down"}),
                 HostTensors(prefill)});
}

atb::CreateResult MakeWordEmbedding() {
  GraphBuilder graph("WordEmbedding", {"table", "tokens"}, {"hidden"});
  graph.Add("GatherOperation", "{}", {"table", "tokens"}, {"hidden"});
  return graph.Build();
}

atb::CreateResult MakePositionEmbedding() {
  GraphBuilder graph("PositionEmbedding", {"cos_table", "sin_table", "positions"}, {"cos", "sin"});
  graph.Add("GatherOperation", "{}", {"cos_table", "positions"}, {"cos"});
  graph.Add("GatherOperation", "{}", {"sin_table", "positions"}, {"sin"});
  return graph.Build();
}

atb::CreateResult MakeLayer(const LlamaPlan& plan, bool prefill) {
  GraphBuilder graph(prefill ? "Prefill_layer" : "Decoder_layer", LayerInputs(plan, prefill),
                     {"out"});
  const Names attention_weights = WeightsOf(plan, {"q", "k", "v", "o"});
  graph.Add("RmsNormOperation", RmsNormParam(plan), {"hidden", "input_norm"}, {"normed"});
  graph.Add(MakeAttention(plan, prefill),
            Joined({{"normed"}, attention_weights, HostTensors(prefill)}), {"attended"});
  graph.Add("ElewiseOperation", kAdd, {"hidden", "attended"}, {"middle"});
  graph.Add("RmsNormOperation", RmsNormParam(plan), {"middle", "post_norm"}, {"middle.normed"});
  graph.Add(MakeMlp(plan), Joined({{"middle.normed"}, WeightsOf(plan, {"gate", "up", "down"})}),
            {"expanded"});
  graph.Add("ElewiseOperation", kAdd, {"middle", "expanded"}, {"out"});
  return graph.Build();
}

atb::CreateResult MakeFinalNorm(const LlamaPlan& plan) {
  return atb::CreateOperation("RmsNormOperation", RmsNormParam(plan));
}

atb::CreateResult MakeLmHead(const LlamaPlan& plan, bool prefill) {
  Names inputs{"hidden", "weight"};
  if (prefill) inputs.push_back("last_rows");
  GraphBuilder graph("LmHead", inputs, {"logits"});
  std::string rows = "hidden";
  if (prefill) {
    // Only the last token of each sequence has a successor to predict.
    graph.Add("GatherOperation", "{}", {"hidden", "last_rows"}, {"last"});
    rows = "last";
  }
  if (!plan.split_head) {
    graph.Add("LinearOperation", kNoBias, {rows, "weight"}, {"logits"});
    return graph.Build();
  }
  graph.Add("LinearOperation", kNoBias, {rows, "weight"}, {"part"});
  graph.Add("AllGatherOperation", CollectiveParam(plan), {"part"}, {"parts"});
  graph.Add("TransposeOperation", R"({"perm":[1,0,2]})", {"parts"}, {"logits"});
  return graph.Build();
}

}  // namespace atb_speed
