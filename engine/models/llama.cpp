#include "models/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "kernels/simd.h"
#include "models/llama_weights.h"
#include "models/model.h"

namespace atb_speed {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;
using atb::DataType;
using atb::Tensor;

// Tokens in one block of the cache. ATB's models use 128; small blocks keep small dumps small.
constexpr int64_t kBlockTokens = 16;
// More is a mistake in the request, not a batch.
constexpr size_t kMaxBatch = 4096;
// What an fp16 mask adds where nothing may be seen; the other types use zeros and ones.
constexpr float kMaskedOutFp16 = -10000;
// Embedding and positions come before the first layer.
constexpr size_t kFirstLayerNode = 2;

Error from_status(const atb::Status& status) {
  return Error(status.code() == atb::ErrorType::kRtFail ? ErrorCode::kInterrupted
                                                        : ErrorCode::kUnsupported)
         << status.message();
}

std::string model_name(const std::string& model_type, bool prefill) {
  std::string name = model_type;
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name + (prefill ? "PrefillModel" : "DecodeModel");
}

template <class T>
Tensor vector_tensor(DataType dtype, std::vector<T>& values, atb::Dims dims = {}) {
  if (dims.empty()) dims = {static_cast<int64_t>(values.size())};
  return {{dtype, dims}, values.data()};
}

atb::Operation* find_operation(atb::Operation& root, const std::string& name, int64_t& index) {
  for (size_t i = 0; i < root.child_count(); ++i) {
    atb::Operation* child = root.child(i);
    if (child->GetName() == name && index-- == 0) return child;
    if (auto* found = find_operation(*child, name, index)) return found;
  }
  return nullptr;
}

Result<LlamaPlan> make_plan(const LlamaConfig& config, const LlamaOptions& options) {
  LlamaPlan plan;
  plan.config = config;
  plan.quantised = options.type == ModelType::kW8A8;
  plan.dtype = options.type == ModelType::kFp32   ? DataType::kFloat
               : options.type == ModelType::kBf16 ? DataType::kBf16
                                                  : DataType::kFloat16;
  if (options.communicator == nullptr) return plan;
  plan.rank = options.communicator->rank();
  plan.ranks = options.communicator->size();
  const auto ranks = static_cast<int64_t>(plan.ranks);
  if (config.kv_heads % ranks != 0 || config.intermediate % ranks != 0)
    return fail(Error(ErrorCode::kUnsupported)
                << "the model's " << config.kv_heads << " key heads and " << config.intermediate
                << " inner columns cannot be divided among " << ranks << " ranks");
  plan.split_head = ranks > 1 && config.vocabulary % ranks == 0;
  return plan;
}

}  // namespace

Result<ModelType> parse_model_type(const std::string& text) {
  if (text == "fp32") return ModelType::kFp32;
  if (text == "fp16") return ModelType::kFp16;
  if (text == "bf16") return ModelType::kBf16;
  if (text == "w8a8") return ModelType::kW8A8;
  return fail(Error(ErrorCode::kUsage)
              << "\"" << ait::printable(text) << "\" is no type; say fp32, fp16, bf16 or w8a8");
}

Result<float> parse_perturbation(const std::string& text) {
  if (text == "bf16") return 0x1p-8f;
  if (text == "fp16") return 0x1p-11f;
  if (text == "fp32") return 0x1p-24f;
  float unit = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, unit);
  if (read.ec == std::errc() && read.ptr == end && unit > 0 && unit <= 1) return unit;
  return fail(Error(ErrorCode::kUsage)
              << "\"" << ait::printable(text) << "\" is no perturbation; say bf16, fp16, fp32 or a "
              << "number above 0 and up to 1");
}

class Llama::Impl {
 public:
  Impl(LlamaPlan plan, LlamaWeights weights, const LlamaOptions& options)
      : plan_(std::move(plan)),
        weights_(std::move(weights)),
        options_(options),
        context_(options.device),
        prefill_(model_name(plan_.config.model_type, true), 0, prefill_inputs(), {"logits"}),
        decode_(model_name(plan_.config.model_type, false), 1, decode_inputs(), {"logits"}),
        frequencies_(rope_frequencies(plan_.config)) {
    context_.set_communicator(options.communicator);
    context_.set_perturbation(options.perturbation);
    for (const Fault& fault : options_.faults)
      kernel_faults_.push_back(fault.kernel().value_or(atb::KernelFault{}));
  }

  Result<void> build() {
    for (const bool prefill : {true, false})
      if (auto status = build_model(prefill); !status.ok()) return fail(from_status(status));
    return check_faults();
  }

  int64_t vocabulary() const { return plan_.config.vocabulary; }

  Result<std::vector<float>> prefill(const std::vector<std::vector<int64_t>>& prompts,
                                     size_t more_tokens) {
    if (auto checked = check_prompts(prompts, more_tokens); !checked) return fail(checked.error());
    lengths_.clear();
    size_t longest = 0;
    for (const auto& prompt : prompts) {
      lengths_.push_back(static_cast<int64_t>(prompt.size()));
      longest = std::max(longest, prompt.size());
    }
    round_ = 0;
    make_cache(static_cast<int64_t>(longest + more_tokens));
    make_position_tables(static_cast<int64_t>(longest + more_tokens));
    std::vector<int64_t> tokens, positions, last_rows;
    std::vector<int32_t> slots, rows;
    for (size_t b = 0; b < prompts.size(); ++b) {
      const size_t pads = options_.padding == Padding::kLeft ? longest - prompts[b].size() : 0;
      for (size_t i = 0; i < pads; ++i) {
        tokens.push_back(plan_.config.pad_token);
        positions.push_back(0);
        slots.push_back(-1);
      }
      for (size_t i = 0; i < prompts[b].size(); ++i) {
        tokens.push_back(prompts[b][i]);
        positions.push_back(static_cast<int64_t>(i));
        slots.push_back(slot(b, static_cast<int64_t>(i)));
      }
      rows.push_back(static_cast<int32_t>(pads + prompts[b].size()));
      last_rows.push_back(static_cast<int64_t>(tokens.size()) - 1);
    }
    const Weight mask = make_mask(prompts, static_cast<int64_t>(longest));
    std::vector<Tensor> in{
        vector_tensor(DataType::kInt64, tokens), vector_tensor(DataType::kInt64, positions),
        vector_tensor(DataType::kInt32, rows),   mask.tensor,
        vector_tensor(DataType::kInt32, slots),  vector_tensor(DataType::kInt64, last_rows)};
    return run(prefill_, true, in, positions);
  }

  Result<std::vector<float>> decode(const std::vector<int64_t>& tokens) {
    if (tokens.size() != lengths_.size() || tokens.empty())
      return fail(Error(ErrorCode::kUsage) << "decoding takes one token for each of the "
                                           << lengths_.size() << " sequences of the prefill");
    if (auto checked = check_tokens(tokens); !checked) return fail(checked.error());
    for (const int64_t length : lengths_)
      if (length >= capacity_)
        return fail(Error(ErrorCode::kUsage)
                    << "the cache has room for " << capacity_ << " tokens of a sequence");
    std::vector<int64_t> ids = tokens, positions = lengths_;
    std::vector<int32_t> slots, context, tables(lengths_.size() * static_cast<size_t>(blocks_), -1);
    for (size_t b = 0; b < tokens.size(); ++b) {
      slots.push_back(slot(b, lengths_[b]));
      ++lengths_[b];
      context.push_back(static_cast<int32_t>(lengths_[b]));
      const int64_t used = (lengths_[b] + kBlockTokens - 1) / kBlockTokens;
      for (int64_t j = 0; j < used; ++j)
        tables[b * static_cast<size_t>(blocks_) + static_cast<size_t>(j)] = block(b, j);
    }
    ++round_;
    std::vector<Tensor> in{
        vector_tensor(DataType::kInt64, ids), vector_tensor(DataType::kInt64, positions),
        vector_tensor(DataType::kInt32, context), vector_tensor(DataType::kInt32, slots),
        vector_tensor(DataType::kInt32, tables, {static_cast<int64_t>(tokens.size()), blocks_})};
    return run(decode_, false, in, positions);
  }

 private:
  std::vector<std::string> with_caches(std::vector<std::string> names) const {
    for (int64_t i = 0; i < plan_.config.layers; ++i) {
      names.push_back(fmt::format("k_cache.{}", i));
      names.push_back(fmt::format("v_cache.{}", i));
    }
    return names;
  }
  std::vector<std::string> prefill_inputs() const {
    return with_caches({"tokens", "positions", "seq_len", "mask", "slots", "last_rows"});
  }
  std::vector<std::string> decode_inputs() const {
    return with_caches({"tokens", "positions", "seq_len", "slots", "block_tables"});
  }

  atb::Status build_model(bool prefill) {
    Model& model = prefill ? prefill_ : decode_;
    atb::Status status;
    const auto add = [&](atb::CreateResult made, const std::vector<std::string>& in,
                         const std::vector<std::string>& out) {
      if (made.status.ok())
        model.add_node(std::move(made.operation), in, out);
      else if (status.ok())
        status = made.status;
    };
    model.add_weight("embedding", weights_.embedding.tensor);
    model.add_weight("cos_table", {});
    model.add_weight("sin_table", {});
    add(make_word_embedding(), {"embedding", "tokens"}, {"hidden.0"});
    add(make_position_embedding(), {"cos_table", "sin_table", "positions"}, {"cos", "sin"});
    const auto inputs = layer_inputs(plan_, prefill);
    for (int64_t i = 0; i < plan_.config.layers; ++i) {
      const auto& layer = weights_.layers[static_cast<size_t>(i)];
      std::vector<std::string> names;
      for (const std::string& input : inputs) {
        const auto weight = layer.find(input);
        if (weight != layer.end()) {
          names.push_back(fmt::format("layer.{}.{}", i, input));
          model.add_weight(names.back(), weight->second.tensor);
        } else if (input == "hidden" || input == "k_cache" || input == "v_cache") {
          names.push_back(fmt::format("{}.{}", input, i));
        } else {
          names.push_back(input);
        }
      }
      add(make_layer(plan_, prefill), names, {fmt::format("hidden.{}", i + 1)});
    }
    model.add_weight("norm", weights_.final_norm.tensor);
    model.add_weight("head", weights_.head.tensor);
    add(make_final_norm(plan_), {fmt::format("hidden.{}", plan_.config.layers), "norm"}, {"final"});
    std::vector<std::string> head_inputs{"final", "head"};
    if (prefill) head_inputs.push_back("last_rows");
    add(make_lm_head(plan_, prefill), head_inputs, {"logits"});
    return status;
  }

  Result<void> check_tokens(const std::vector<int64_t>& tokens) const {
    for (const int64_t token : tokens)
      if (token < 0 || token >= plan_.config.vocabulary)
        return fail(Error(ErrorCode::kUsage)
                    << "token " << token << " is outside the vocabulary of "
                    << plan_.config.vocabulary);
    return {};
  }

  Result<void> check_prompts(const std::vector<std::vector<int64_t>>& prompts,
                             size_t more_tokens) const {
    if (prompts.empty() || prompts.size() > kMaxBatch)
      return fail(Error(ErrorCode::kUsage) << "a batch has 1 to " << kMaxBatch << " prompts");
    const auto& config = plan_.config;
    int64_t limit = config.max_positions;
    if (config.sliding_window > 0) limit = std::min(limit, config.sliding_window);
    for (const auto& prompt : prompts) {
      if (prompt.empty()) return fail(Error(ErrorCode::kUsage) << "a prompt has no tokens");
      if (auto checked = check_tokens(prompt); !checked) return checked;
      if (more_tokens > static_cast<size_t>(limit) ||
          prompt.size() > static_cast<size_t>(limit) - more_tokens)
        return fail(
            Error(ErrorCode::kUnsupported)
            << prompt.size() << " tokens and " << more_tokens << " more exceed the " << limit
            << " that the model "
            << (limit == config.max_positions ? "was made for" : "sees at once (sliding window)"));
    }
    return {};
  }

  // Blocks of different sequences alternate, so that no sequence lies in one piece.
  int32_t block(size_t sequence, int64_t index) const {
    return static_cast<int32_t>(index * static_cast<int64_t>(lengths_.size()) +
                                static_cast<int64_t>(sequence));
  }
  int32_t slot(size_t sequence, int64_t position) const {
    return static_cast<int32_t>(block(sequence, position / kBlockTokens) * kBlockTokens +
                                position % kBlockTokens);
  }

  void make_cache(int64_t tokens) {
    capacity_ = tokens;
    blocks_ = (tokens + kBlockTokens - 1) / kBlockTokens;
    const atb::TensorDesc desc{plan_.dtype,
                               {blocks_ * static_cast<int64_t>(lengths_.size()), kBlockTokens,
                                plan_.kv_heads(), plan_.config.head_size}};
    caches_.clear();
    for (int64_t i = 0; i < 2 * plan_.config.layers; ++i) caches_.push_back(allocate(desc));
  }

  // cos and sin of every position from `first` on, in the model's type.
  std::pair<Weight, Weight> rotations(const std::function<int64_t(int64_t)>& position,
                                      int64_t rows) const {
    const int64_t size = plan_.config.head_size;
    Weight cos = allocate({plan_.dtype, {rows, size}}), sin = allocate(cos.tensor.desc);
    std::vector<float> c(static_cast<size_t>(size)), s(c.size());
    const size_t row_bytes = c.size() * element_bytes(plan_.dtype);
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < frequencies_.size(); ++i) {
        const float angle = static_cast<float>(position(row)) * frequencies_[i];
        c[i] = c[i + frequencies_.size()] = std::cos(angle);
        s[i] = s[i + frequencies_.size()] = std::sin(angle);
      }
      const size_t at = static_cast<size_t>(row) * row_bytes;
      atb::kernels::narrow(c.data(), c.size(), plan_.dtype, cos.tensor.as<uint8_t>() + at);
      atb::kernels::narrow(s.data(), s.size(), plan_.dtype, sin.tensor.as<uint8_t>() + at);
    }
    return {cos, sin};
  }

  void make_position_tables(int64_t rows) {
    tables_ = rotations([](int64_t row) { return row; }, rows);
    for (Model* model : {&prefill_, &decode_}) {
      model->set_weight("cos_table", tables_.first.tensor);
      model->set_weight("sin_table", tables_.second.tensor);
    }
  }

  // [S, S] where the sequences lie one after another: causal. With padding [batch, S, S], and the
  // padding is out of sight too.
  Weight make_mask(const std::vector<std::vector<int64_t>>& prompts, int64_t longest) const {
    const bool padded = options_.padding == Padding::kLeft;
    const auto size = static_cast<size_t>(longest);
    const size_t masks = padded ? prompts.size() : 1;
    atb::Dims dims{longest, longest};
    if (padded) dims = {static_cast<int64_t>(masks), longest, longest};
    Weight mask = allocate({plan_.dtype, dims});
    const float hidden = plan_.dtype == DataType::kFloat16 ? kMaskedOutFp16 : 1;
    std::vector<float> values(size * size);
    for (size_t b = 0; b < masks; ++b) {
      const size_t pads = padded ? size - prompts[b].size() : 0;
      for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) values[i * size + j] = j > i || j < pads ? hidden : 0;
      atb::kernels::narrow(
          values.data(), values.size(), plan_.dtype,
          mask.tensor.as<uint8_t>() + b * values.size() * element_bytes(plan_.dtype));
    }
    return mask;
  }

  Result<std::vector<float>> run(Model& model, bool prefill, std::vector<Tensor>& in,
                                 const std::vector<int64_t>& positions) {
    for (const Weight& cache : caches_) in.push_back(cache.tensor);
    std::vector<std::function<void()>> undo;
    std::vector<Weight> replaced;  // tensors that a fault put in the place of others
    plant_faults(model, prefill, positions, undo, replaced);
    std::vector<Tensor> out;
    const auto status = model.Execute(in, out, context_);
    for (auto step = undo.rbegin(); step != undo.rend(); ++step) (*step)();
    model.clear_overrides();
    if (!status.ok()) return fail(from_status(status));
    std::vector<float> logits(static_cast<size_t>(out[0].desc.dims.count()));
    atb::kernels::widen(out[0].desc.dtype, out[0].data, logits.size(), logits.data());
    return logits;
  }

  // Every fault must have something to act on, in both phases.
  Result<void> check_faults() {
    for (const Fault& fault : options_.faults) {
      if (fault.layer >= plan_.config.layers)
        return fail(Error(ErrorCode::kUsage) << "a fault names layer " << fault.layer
                                             << ", but the model has " << plan_.config.layers);
      const size_t ranks = options_.communicator == nullptr ? 1 : options_.communicator->size();
      if (fault.rank && static_cast<size_t>(*fault.rank) >= ranks)
        return fail(Error(ErrorCode::kUsage)
                    << "a fault names rank " << *fault.rank << ", but "
                    << (ranks == 1 ? "there is only rank 0"
                                   : fmt::format("the last rank is {}", ranks - 1)));
      if (fault.kind == FaultKind::kHeadMapping && plan_.kv_heads() < 2)
        return fail(Error(ErrorCode::kUsage) << "with one key head a head mapping cannot be wrong");
      if (target_of(decode_, fault) == nullptr)
        return fail(Error(ErrorCode::kUsage)
                    << "a layer has no " << fault.op << "Operation number " << fault.index);
    }
    return {};
  }

  atb::Operation* target_of(Model& model, const Fault& fault) {
    int64_t index = fault.index;
    std::string op = fault.op;
    // The two phases attend by different operations; either name means what the phase has.
    const bool prefill = &model == &prefill_;
    if (op == "SelfAttention" || op == "PagedAttention")
      op = prefill ? "SelfAttention" : "PagedAttention";
    atb::Operation& layer = layer_operation(model, fault.layer);
    if (fault.kind == FaultKind::kResidual) {
      for (size_t i = 0; i < layer.child_count(); ++i)
        if (layer.child(i)->GetName() == "ElewiseOperation" && index-- == 0) return layer.child(i);
      return nullptr;
    }
    return find_operation(layer, op + "Operation", index);
  }

  static atb::Operation& layer_operation(Model& model, int64_t layer) {
    return model.node_operation(kFirstLayerNode + static_cast<size_t>(layer));
  }

  void plant_faults(Model& model, bool prefill, const std::vector<int64_t>& positions,
                    std::vector<std::function<void()>>& undo, std::vector<Weight>& replaced) {
    for (size_t i = 0; i < options_.faults.size(); ++i) {
      const Fault& fault = options_.faults[i];
      if (!fault.in_round(round_) || !fault.on_rank(context_.device())) continue;
      atb::Operation* target = target_of(model, fault);
      const auto inputs = layer_inputs(plan_, prefill);
      const auto replace = [&](const std::string& name, const Weight& weight) {
        const auto place = std::find(inputs.begin(), inputs.end(), name) - inputs.begin();
        model.override_input(kFirstLayerNode + static_cast<size_t>(fault.layer),
                             static_cast<size_t>(place), weight.tensor);
        replaced.push_back(weight);
      };
      switch (fault.kind) {
        case FaultKind::kRopePairing:
          change(*target, fmt::format(R"({{"rotaryCoeff":{}}})", plan_.config.head_size));
          undo.push_back([target] { change(*target, R"({"rotaryCoeff":2})"); });
          break;
        case FaultKind::kResidual:
          drop_residual(layer_operation(model, fault.layer), *target, undo);
          break;
        case FaultKind::kHeadMapping:
          for (const auto& [name, weight] :
               rolled_key_heads(plan_, weights_.layers[static_cast<size_t>(fault.layer)]))
            replace(name, weight);
          break;
        case FaultKind::kPosition: {
          const auto shift = static_cast<int64_t>(fault.size);
          const auto [cos, sin] =
              rotations([&](int64_t row) { return positions[static_cast<size_t>(row)] + shift; },
                        static_cast<int64_t>(positions.size()));
          replace("cos", cos);
          replace("sin", sin);
          break;
        }
        default:
          target->set_fault(&kernel_faults_[i]);
          undo.push_back([target] { target->set_fault(nullptr); });
      }
    }
  }

  // Parameters that were accepted once; failing here would be a mistake of this file.
  static void change(atb::Operation& operation, const std::string& param) {
    static_cast<void>(operation.UpdateParam(param).ok());
  }

  // x + branch becomes 1 * branch.
  static void drop_residual(atb::Operation& layer, atb::Operation& add,
                            std::vector<std::function<void()>>& undo) {
    auto& graph = static_cast<atb::GraphOperation&>(layer);
    size_t node = 0;
    while (layer.child(node) != &add) ++node;
    const auto ids = graph.node(node).inTensorIds;
    change(add, R"({"elewiseType":2,"mulsParam":{"varAttr":1}})");
    graph.rewire(node, {ids[1]});
    undo.push_back([&add, &graph, node, ids] {
      change(add, R"({"elewiseType":8,"mulsParam":{"varAttr":0}})");
      graph.rewire(node, ids);
    });
  }

  LlamaPlan plan_;
  LlamaWeights weights_;
  LlamaOptions options_;
  atb::Context context_;
  Model prefill_, decode_;
  std::vector<float> frequencies_;
  std::pair<Weight, Weight> tables_;
  std::vector<Weight> caches_;  // keys and values of each layer in turn
  std::vector<int64_t> lengths_;
  int64_t capacity_ = 0, blocks_ = 0, round_ = 0;
  std::vector<atb::KernelFault> kernel_faults_;  // one for each fault, unused by wiring faults
};

Llama::Llama(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Llama::~Llama() = default;
int64_t Llama::vocabulary() const { return impl_->vocabulary(); }

Result<std::unique_ptr<Llama>> Llama::load(const std::string& folder, const LlamaOptions& options) {
  auto config = read_config(folder);
  if (!config) return fail(config.error());
  auto plan = make_plan(*config, options);
  if (!plan) return fail(plan.error());
  auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return fail(checkpoint.error());
  auto weights = load_weights(*plan, *checkpoint);
  if (!weights) return fail(weights.error());
  auto impl = std::make_unique<Impl>(std::move(*plan), std::move(*weights), options);
  if (auto built = impl->build(); !built) return fail(built.error());
  return std::unique_ptr<Llama>(new Llama(std::move(impl)));
}

Result<std::vector<float>> Llama::prefill(const std::vector<std::vector<int64_t>>& prompts,
                                          size_t more_tokens) {
  return impl_->prefill(prompts, more_tokens);
}

Result<std::vector<float>> Llama::decode(const std::vector<int64_t>& tokens) {
  return impl_->decode(tokens);
}

}  // namespace atb_speed
