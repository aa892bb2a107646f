// RopeOperation: rotary position embedding of queries and keys.
#include <fmt/format.h>

#include "kernels/loops.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

struct RopeParam {
  int64_t rotaryCoeff = 4, cosFormat = 0;

  void visit(ParamFields& fields) {
    fields.field("rotaryCoeff", rotaryCoeff);
    fields.field("cosFormat", cosFormat);
  }
  Status check() const {
    if (rotaryCoeff < 2 || rotaryCoeff % 2 != 0)
      return invalid_param("rotaryCoeff is an even number: 2, 4 or the head size");
    return {};
  }
};

// A head is cut into segments of two halves (u, v); each becomes (u cos - v sin, v cos + u sin).
struct RopeTiling {
  uint64_t tokens, head_size, query_heads, key_heads, half;
};

class RopeOperation final : public ParamOperation<RopeParam> {
 public:
  RopeOperation() : ParamOperation("RopeOperation") {}

  size_t GetInputNum() const override { return 5; }  // q, k, cos, sin, seqLen
  size_t GetOutputNum() const override { return 2; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    RopeTiling tiling;
    if (auto status = tiling_of(in, tiling); !status.ok()) return status;
    out = {in[0], in[1]};
    return {};
  }

 private:
  Status tiling_of(const std::vector<TensorDesc>& in, RopeTiling& tiling) const {
    const Dims& cos = in[2].dims;
    if (cos.size() != 2 || !(in[3].dims == cos) || cos[1] <= 0 || cos[0] <= 0)
      return invalid_tensor("cos and sin of RopeOperation are both [tokens, head size]");
    const int64_t tokens = cos[0], head = cos[1];
    if (head % param().rotaryCoeff != 0)
      return invalid_param(fmt::format("rotaryCoeff {} does not divide the head size {}",
                                       param().rotaryCoeff, head));
    for (size_t i = 0; i < 4; ++i)
      if (!is_floating(in[i].dtype))
        return invalid_tensor("RopeOperation takes floating queries, keys, cos and sin");
    for (size_t i = 0; i < 2; ++i) {
      const int64_t elements = in[i].dims.count();
      const int64_t leading = in[i].dims.size() == 4 ? in[i].dims[0] * in[i].dims[1]
                              : in[i].dims.empty()   ? 0
                                                     : in[i].dims[0];
      if (leading != tokens || elements % (tokens * head) != 0)
        return invalid_tensor(fmt::format(
            "input {} of RopeOperation is [{}], but cos is for {} tokens and heads of {}", i,
            in[i].dims.text(), tokens, head));
    }
    const auto heads = [&](size_t i) {
      return static_cast<uint64_t>(in[i].dims.count() / (tokens * head));
    };
    tiling = {static_cast<uint64_t>(tokens), static_cast<uint64_t>(head), heads(0), heads(1),
              static_cast<uint64_t>(head / param().rotaryCoeff)};
    return {};
  }

  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    RopeTiling tiling;
    if (auto status = tiling_of(in, tiling); !status.ok()) return status;
    plan.kernels.push_back({kernel_name("Rope", in[0].dtype), Tiling(tiling), {}, {}});
    return {};
  }

  static void rotate(const Tensor& x, const Tensor& out, uint64_t heads, const RopeTiling& cut,
                     size_t token, const float* cos, const float* sin, std::vector<float>& row) {
    const DataType dtype = x.desc.dtype;
    const size_t width = heads * cut.head_size;
    const size_t at = token * width * element_bytes(dtype);
    row.resize(2 * width);
    float* from = row.data();
    float* to = row.data() + width;
    kernels::widen(dtype, x.as<uint8_t>() + at, width, from);
    for (size_t segment = 0; segment < width; segment += 2 * cut.half)
      for (size_t i = 0; i < cut.half; ++i) {
        const size_t u = segment + i, v = u + cut.half;
        const size_t cu = u % cut.head_size, cv = v % cut.head_size;
        to[u] = from[u] * cos[cu] - from[v] * sin[cu];
        to[v] = from[v] * cos[cv] + from[u] * sin[cv];
      }
    kernels::narrow(to, width, dtype, out.as<uint8_t>() + at);
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<RopeTiling>();
    const size_t cost = (cut.query_heads + cut.key_heads) * cut.head_size * 4;
    kernels::for_ranges(cut.tokens, kernels::grain_for(cost), [&](size_t begin, size_t end) {
      std::vector<float> cos(cut.head_size), sin(cut.head_size), row;
      for (size_t token = begin; token < end; ++token) {
        const auto widen = [&](const Tensor& table, std::vector<float>& to) {
          kernels::widen(
              table.desc.dtype,
              table.as<uint8_t>() + token * cut.head_size * element_bytes(table.desc.dtype),
              cut.head_size, to.data());
        };
        widen(in[2], cos);
        widen(in[3], sin);
        rotate(in[0], out[0], cut.query_heads, cut, token, cos.data(), sin.data(), row);
        rotate(in[1], out[1], cut.key_heads, cut, token, cos.data(), sin.data(), row);
      }
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_rope() { return std::make_unique<RopeOperation>(); }

}  // namespace atb
