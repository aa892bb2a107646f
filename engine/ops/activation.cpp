// ActivationOperation and SoftmaxOperation.
#include <fmt/format.h>

#include <cmath>

#include "kernels/loops.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

enum ActivationType : uint8_t {
  kRelu = 1,
  kGelu = 2,
  kFastGelu = 3,
  kSwish = 4,
  kLog = 5,
  kSwiGlu = 6,
  kSigmoid = 8,
  kFasterGelu = 9,
};

struct ActivationParam {
  int64_t activationType = 0, dim = -1, geluMode = 0;
  float scale = 1;

  void visit(ParamFields& fields) {
    fields.field("activationType", activationType);
    fields.field("scale", scale);
    fields.field("dim", dim);
    fields.field("geluMode", geluMode);
  }
  Status check() const {
    if (activationType < kRelu || activationType > kFasterGelu || activationType == 7)
      return invalid_param("activationType is 1 to 6, 8 or 9");
    if (dim != -1) return invalid_param("dim is -1, the last one");
    if (geluMode != 0 && geluMode != 1) return invalid_param("geluMode is 0 (tanh) or 1 (erf)");
    return {};
  }
};

struct RowTiling {
  uint64_t rows, columns, out_columns;
};

void gelu(float* x, size_t count, bool by_tanh) {
  constexpr float kSqrt2OverPi = 0.79788456080286535588f;
  constexpr float kSqrtHalf = 0.70710678118654752440f;
  for (size_t i = 0; i < count; ++i) {
    const float v = x[i];
    const float inner =
        by_tanh ? std::tanh(kSqrt2OverPi * (v + 0.044715f * v * v * v)) : std::erf(v * kSqrtHalf);
    x[i] = 0.5f * v * (1 + inner);
  }
}

class ActivationOperation final : public ParamOperation<ActivationParam> {
 public:
  ActivationOperation() : ParamOperation("ActivationOperation") {}

  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (!is_floating(in[0].dtype) || in[0].dims.empty())
      return invalid_tensor("ActivationOperation takes a floating tensor");
    out = {in[0]};
    if (param().activationType != kSwiGlu) return {};
    Dims& dims = out[0].dims;
    if (dims.back() % 2 != 0)
      return invalid_tensor("SwiGLU needs a last dimension of even size, not " + dims.text());
    dims[dims.size() - 1] /= 2;
    return {};
  }

 private:
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
              KernelPlan& plan) const override {
    const auto columns = static_cast<uint64_t>(in[0].dims.back());
    const uint64_t rows =
        static_cast<uint64_t>(in[0].dims.count()) / std::max<uint64_t>(1, columns);
    plan.kernels.push_back(
        {kernel_name(param().activationType == kSwiGlu ? "SwiGlu" : "Activation", in[0].dtype),
         Tiling(RowTiling{rows, columns, static_cast<uint64_t>(out[0].dims.back())}),
         {},
         {}});
    return {};
  }

  void apply(float* x, size_t count) const {
    switch (param().activationType) {
      case kRelu:
        for (size_t i = 0; i < count; ++i) x[i] = x[i] > 0 || std::isnan(x[i]) ? x[i] : 0;
        return;
      case kGelu:
        return gelu(x, count, param().geluMode == 0);
      case kFastGelu:
        for (size_t i = 0; i < count; ++i)
          x[i] = x[i] * std::exp(0.851f * (x[i] - std::fabs(x[i]))) /
                 (1 + std::exp(-1.702f * std::fabs(x[i])));
        return;
      case kSwish:
        return kernels::swish(x, count, param().scale);
      case kLog:
        for (size_t i = 0; i < count; ++i) x[i] = std::log(x[i]);
        return;
      case kSigmoid:
        for (size_t i = 0; i < count; ++i) x[i] = 1 / (1 + std::exp(-x[i]));
        return;
      case kFasterGelu:
        for (size_t i = 0; i < count; ++i)
          x[i] = x[i] / (1 + std::exp(-1.702f * std::fabs(x[i]))) *
                 std::exp(0.851f * (x[i] - std::fabs(x[i])));
        return;
      default:  // SwiGLU: the first half gates the second
        kernels::swish(x, count / 2, 1);
        for (size_t i = 0; i < count / 2; ++i) x[i] *= x[count / 2 + i];
    }
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<RowTiling>();
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    kernels::for_ranges(cut.rows, kernels::grain_for(8 * cut.columns),
                        [&](size_t begin, size_t end) {
                          std::vector<float> row(cut.columns);
                          for (size_t r = begin; r < end; ++r) {
                            kernels::widen(dtype, in[0].as<uint8_t>() + r * cut.columns * bytes,
                                           cut.columns, row.data());
                            apply(row.data(), cut.columns);
                            kernels::narrow(row.data(), cut.out_columns, dtype,
                                            out[0].as<uint8_t>() + r * cut.out_columns * bytes);
                          }
                        });
    return {};
  }
};

struct SoftmaxParam {
  std::vector<int64_t> axes;

  void visit(ParamFields& fields) { fields.field("axes", axes); }
  Status check() const {
    if (axes.empty()) return invalid_param("axes names at least one dimension");
    return {};
  }
};

class SoftmaxOperation final : public ParamOperation<SoftmaxParam> {
 public:
  SoftmaxOperation() : ParamOperation("SoftmaxOperation") {}

  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    Cut cut;
    if (!is_floating(in[0].dtype))
      return invalid_tensor("SoftmaxOperation takes a floating tensor");
    if (auto status = cut_of(in[0].dims, cut); !status.ok()) return status;
    out = {in[0]};
    return {};
  }

 private:
  // [outer, axis, inner]: several neighbouring axes count as one.
  struct Cut {
    uint64_t outer, axis, inner;
  };

  Status cut_of(const Dims& dims, Cut& cut) const {
    const auto rank = static_cast<int64_t>(dims.size());
    int64_t first = -1, last = -1;
    for (int64_t axis : param().axes) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank || (last >= 0 && axis != last + 1))
        return invalid_param("axes of SoftmaxOperation are neighbouring dimensions of x, in order");
      if (first < 0) first = axis;
      last = axis;
    }
    cut = {1, 1, 1};
    for (int64_t i = 0; i < rank; ++i)
      (i < first  ? cut.outer
       : i > last ? cut.inner
                  : cut.axis) *= static_cast<uint64_t>(dims[static_cast<size_t>(i)]);
    return {};
  }

  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    Cut cut;
    if (auto status = cut_of(in[0].dims, cut); !status.ok()) return status;
    plan.kernels.push_back({kernel_name("Softmax", in[0].dtype), Tiling(cut), {}, {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<Cut>();
    const DataType dtype = in[0].desc.dtype;
    const size_t slab = cut.axis * cut.inner, bytes = element_bytes(dtype);
    kernels::for_ranges(cut.outer, kernels::grain_for(8 * slab), [&](size_t begin, size_t end) {
      std::vector<float> values(slab), line(cut.axis);
      for (size_t o = begin; o < end; ++o) {
        kernels::widen(dtype, in[0].as<uint8_t>() + o * slab * bytes, slab, values.data());
        for (size_t i = 0; i < cut.inner; ++i) {
          for (size_t a = 0; a < cut.axis; ++a) line[a] = values[a * cut.inner + i];
          float largest = -HUGE_VALF;
          for (const float value : line) largest = std::max(largest, value);
          const float sum = kernels::exp_and_sum(line.data(), cut.axis, largest);
          for (size_t a = 0; a < cut.axis; ++a) values[a * cut.inner + i] = line[a] / sum;
        }
        kernels::narrow(values.data(), slab, dtype, out[0].as<uint8_t>() + o * slab * bytes);
      }
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_activation() { return std::make_unique<ActivationOperation>(); }
std::unique_ptr<Operation> make_softmax() { return std::make_unique<SoftmaxOperation>(); }

}  // namespace atb
