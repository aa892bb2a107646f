// RmsNormOperation and LayerNormOperation over the last dimension.
#include <fmt/format.h>

#include <cmath>

#include "kernels/loops.h"
#include "kernels/quantise.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

enum LayerType : uint8_t { kNorm = 1, kPreNorm = 2, kPostNorm = 3 };
constexpr int64_t kQuantInt8 = 2;

struct NormTiling {
  uint64_t rows, columns;
};

Tiling RowTiling(const Dims& dims) {
  return Tiling(NormTiling{static_cast<uint64_t>(dims.Count() / std::max<int64_t>(1, dims.back())),
                           static_cast<uint64_t>(dims.back())});
}

// x + scale * residual (+ bias), as fp32.
void AddRows(const Tensor& x, const Tensor& residual, const Tensor* bias, float scale, size_t row,
             size_t columns, float* sum, float* scratch) {
  const auto at = [&](const Tensor& tensor, size_t first) {
    return tensor.As<uint8_t>() + first * ElementBytes(tensor.desc.dtype);
  };
  kernels::Widen(x.desc.dtype, at(x, row * columns), columns, sum);
  if (bias != nullptr) {
    kernels::Widen(bias->desc.dtype, bias->data, columns, scratch);
    for (size_t i = 0; i < columns; ++i) sum[i] += scratch[i];
  }
  kernels::Widen(residual.desc.dtype, at(residual, row * columns), columns, scratch);
  for (size_t i = 0; i < columns; ++i) sum[i] += scale * scratch[i];
}

struct Affine {
  std::vector<float> gamma, beta;
};

std::vector<float> Wide(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.desc.dims.Count()));
  kernels::Widen(tensor.desc.dtype, tensor.data, values.size(), values.data());
  return values;
}

Status CheckRowTensors(const char* name, const std::vector<TensorDesc>& in, size_t residuals,
                       size_t vectors) {
  const TensorDesc& x = in[0];
  if (!IsFloating(x.dtype) || x.dims.empty())
    return InvalidTensor(fmt::format("{} takes floating x, not {} [{}]", name,
                                     DataTypeName(x.dtype), x.dims.Text()));
  for (size_t i = 1; i < 1 + residuals + vectors; ++i) {
    const bool fits =
        i < 1 + residuals ? in[i].dims == x.dims : in[i].dims.Count() == x.dims.back();
    if (!fits || !IsFloating(in[i].dtype))
      return InvalidTensor(fmt::format("input {} of {} is [{}], which does not fit x [{}]", i, name,
                                       in[i].dims.Text(), x.dims.Text()));
  }
  return {};
}

struct RmsNormParam {
  struct Kind {
    int64_t quantType = 0, precisionMode = 0, modelType = 0, dynamicQuantType = 0;
    float epsilon = 1e-5f, layerNormEps = 1e-5f;
    bool rstd = false, hasBias = false;
  };
  int64_t layerType = 0;
  Kind kind;

  void Visit(ParamFields& fields) {
    fields.Field("layerType", layerType);
    if (layerType == kNorm)
      fields.Group("normParam", [&](ParamFields& norm) {
        norm.Field("quantType", kind.quantType);
        norm.Field("epsilon", kind.epsilon);
        norm.Field("layerNormEps", kind.layerNormEps);
        norm.Field("rstd", kind.rstd);
        norm.Field("precisionMode", kind.precisionMode);
        norm.Field("modelType", kind.modelType);
        norm.Field("dynamicQuantType", kind.dynamicQuantType);
      });
    else if (layerType == kPreNorm || layerType == kPostNorm)
      fields.Group(layerType == kPreNorm ? "preNormParam" : "postNormParam",
                   [&](ParamFields& norm) {
                     norm.Field("quantType", kind.quantType);
                     norm.Field("epsilon", kind.epsilon);
                     norm.Field("hasBias", kind.hasBias);
                   });
  }
  Status Check() const {
    if (layerType < kNorm || layerType > kPostNorm)
      return InvalidParam("layerType is 1 (norm), 2 (pre-norm) or 3 (post-norm)");
    if (kind.rstd || kind.precisionMode != 0)
      return InvalidParam("rstd and precisionMode 1 are not supported");
    if (kind.quantType != 0 && (kind.quantType != kQuantInt8 || layerType != kNorm))
      return InvalidParam("only layerType 1 can quantise, with quantType 2");
    if (kind.dynamicQuantType < 0 || kind.dynamicQuantType > 1 ||
        (kind.dynamicQuantType == 1 && kind.quantType == 0))
      return InvalidParam("dynamicQuantType is 0, or 1 with quantType 2");
    return {};
  }
};

class RmsNormOperation final : public ParamOperation<RmsNormParam> {
 public:
  RmsNormOperation() : ParamOperation("RmsNormOperation") {}

  size_t GetInputNum() const override {
    if (param().layerType != kNorm) return param().kind.hasBias ? 4 : 3;
    return !Int8() ? 2 : Dynamic() ? 3 : 5;
  }
  size_t GetOutputNum() const override {
    return param().layerType == kPreNorm || Dynamic() ? 2 : 1;
  }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (param().layerType != kNorm) {
      // ATB's order is x, [bias], residual, gamma; a bias is checked with the vectors.
      std::vector<TensorDesc> ordered{in[0], in[in.size() - 2], in.back()};
      if (param().kind.hasBias) ordered.push_back(in[1]);
      if (auto status = CheckRowTensors("RmsNormOperation", ordered, 1, ordered.size() - 2);
          !status.ok())
        return status;
      out.assign(GetOutputNum(), in[0]);
      return {};
    }
    if (auto status = CheckRowTensors("RmsNormOperation", in, 0, Int8() ? 2 : 1); !status.ok())
      return status;
    if (Int8() && !Dynamic() &&
        (in[3].dims.Count() != 1 || in[4].dims.Count() != 1 || in[4].dtype != DataType::kInt8))
      return InvalidTensor("RmsNormOperation needs one scale and one int8 offset");
    out = {in[0]};
    if (Int8()) out[0].dtype = DataType::kInt8;
    if (Dynamic()) out.push_back(kernels::RowScales(in[0]));
    return {};
  }

 private:
  bool Int8() const { return param().kind.quantType == kQuantInt8; }
  bool Dynamic() const { return param().kind.dynamicQuantType == 1; }

  Status Plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    plan.kernels.push_back({KernelName(Int8() ? "RmsNormQuant" : "RmsNorm", in[0].dtype),
                            RowTiling(in[0].dims),
                            {},
                            {}});
    return {};
  }

  Status Launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.As<NormTiling>();
    const size_t columns = cut.columns;
    const auto& kind = param().kind;
    const bool residual = param().layerType != kNorm;
    const float epsilon = fault() != nullptr && fault()->kind == KernelFault::Kind::kEpsilon
                              ? fault()->size
                              : kind.epsilon;
    auto gamma = Wide(residual ? in[in.size() - 1] : in[1]);
    if (kind.modelType == 1)  // Gemma stores gamma - 1
      for (float& g : gamma) g += 1;
    const auto beta = Int8() ? Wide(in[2]) : std::vector<float>();
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = ElementBytes(dtype);
    kernels::ForRanges(cut.rows, kernels::GrainFor(columns), [&](size_t begin, size_t end) {
      std::vector<float> row(columns), scratch(columns);
      for (size_t r = begin; r < end; ++r) {
        if (residual)
          AddRows(in[0], in[in.size() - 2], kind.hasBias ? &in[1] : nullptr, 1, r, columns,
                  row.data(), scratch.data());
        else
          kernels::Widen(dtype, in[0].As<uint8_t>() + r * columns * bytes, columns, row.data());
        if (param().layerType == kPreNorm)
          kernels::Narrow(row.data(), columns, dtype, out[1].As<uint8_t>() + r * columns * bytes);
        const float mean = kernels::SumOfSquares(row.data(), columns) / static_cast<float>(columns);
        const float by = 1 / std::sqrt(mean + epsilon);
        for (size_t i = 0; i < columns; ++i) row[i] = row[i] * by * gamma[i];
        if (!Int8()) {
          kernels::Narrow(row.data(), columns, dtype, out[0].As<uint8_t>() + r * columns * bytes);
          continue;
        }
        for (size_t i = 0; i < columns; ++i) row[i] += beta[i];
        auto* q = out[0].As<int8_t>() + r * columns;
        if (Dynamic())
          out[1].As<float>()[r] = kernels::QuantiseRow(row.data(), columns, q);
        else
          kernels::QuantiseBy(row.data(), columns, 1 / Wide(in[3])[0], *in[4].As<int8_t>(), q);
      }
    });
    return {};
  }
};

struct LayerNormParam {
  int64_t layerType = 0;
  int64_t quantType = 0, beginNormAxis = 0, beginParamsAxis = 0, opMode = 0;
  float epsilon = 1e-5f, zoomScaleValue = 1;

  void Visit(ParamFields& fields) {
    fields.Field("layerType", layerType);
    if (layerType == kNorm)
      fields.Group("normParam", [&](ParamFields& norm) {
        norm.Field("quantType", quantType);
        norm.Field("epsilon", epsilon);
        norm.Field("beginNormAxis", beginNormAxis);
        norm.Field("beginParamsAxis", beginParamsAxis);
      });
    else if (layerType == kPreNorm || layerType == kPostNorm)
      fields.Group(layerType == kPreNorm ? "preNormParam" : "postNormParam",
                   [&](ParamFields& norm) {
                     norm.Field("quantType", quantType);
                     norm.Field("epsilon", epsilon);
                     norm.Field("opMode", opMode);
                     norm.Field("zoomScaleValue", zoomScaleValue);
                   });
  }
  Status Check() const {
    if (layerType < kNorm || layerType > kPostNorm)
      return InvalidParam("layerType is 1 (norm), 2 (pre-norm) or 3 (post-norm)");
    if (quantType != 0) return InvalidParam("quantisation is not supported");
    return {};
  }
};

class LayerNormOperation final : public ParamOperation<LayerNormParam> {
 public:
  LayerNormOperation() : ParamOperation("LayerNormOperation") {}

  size_t GetInputNum() const override { return param().layerType == kNorm ? 3 : 4; }
  size_t GetOutputNum() const override { return param().layerType == kPreNorm ? 2 : 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const size_t residuals = param().layerType == kNorm ? 0 : 1;
    if (auto status = CheckRowTensors("LayerNormOperation", in, residuals, 0); !status.ok())
      return status;
    const int64_t columns = Columns(in[0].dims);
    if (columns < 0) return InvalidParam("beginNormAxis of LayerNormOperation is no axis of x");
    for (size_t i = 1 + residuals; i < in.size(); ++i)
      if (in[i].dims.Count() != columns || !IsFloating(in[i].dtype))
        return InvalidTensor(
            fmt::format("gamma and beta of LayerNormOperation need {} elements", columns));
    out.assign(GetOutputNum(), in[0]);
    return {};
  }

 private:
  // Elements that are normalised together, or -1.
  int64_t Columns(const Dims& x) const {
    if (param().layerType != kNorm) return x.back();
    int64_t axis = param().beginNormAxis;
    const auto rank = static_cast<int64_t>(x.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return -1;
    return x.Count(static_cast<size_t>(axis));
  }

  Status Plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const int64_t columns = std::max<int64_t>(1, Columns(in[0].dims));
    plan.kernels.push_back({KernelName("LayerNorm", in[0].dtype),
                            Tiling(NormTiling{static_cast<uint64_t>(in[0].dims.Count() / columns),
                                              static_cast<uint64_t>(columns)}),
                            {},
                            {}});
    return {};
  }

  Status Launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.As<NormTiling>();
    const size_t columns = cut.columns;
    const bool residual = param().layerType != kNorm;
    const float epsilon = fault() != nullptr && fault()->kind == KernelFault::Kind::kEpsilon
                              ? fault()->size
                              : param().epsilon;
    const auto gamma = Wide(in[in.size() - 2]);
    const auto beta = Wide(in[in.size() - 1]);
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = ElementBytes(dtype);
    kernels::ForRanges(cut.rows, kernels::GrainFor(columns), [&](size_t begin, size_t end) {
      std::vector<float> row(columns), scratch(columns);
      for (size_t r = begin; r < end; ++r) {
        if (residual)
          AddRows(in[0], in[1], nullptr, param().zoomScaleValue, r, columns, row.data(),
                  scratch.data());
        else
          kernels::Widen(dtype, in[0].As<uint8_t>() + r * columns * bytes, columns, row.data());
        if (param().layerType == kPreNorm)
          kernels::Narrow(row.data(), columns, dtype, out[1].As<uint8_t>() + r * columns * bytes);
        float sum = 0;
        for (const float value : row) sum += value;
        const float mean = sum / static_cast<float>(columns);
        for (float& value : row) value -= mean;
        const float variance =
            kernels::SumOfSquares(row.data(), columns) / static_cast<float>(columns);
        const float by = 1 / std::sqrt(variance + epsilon);
        for (size_t i = 0; i < columns; ++i) row[i] = row[i] * by * gamma[i] + beta[i];
        kernels::Narrow(row.data(), columns, dtype, out[0].As<uint8_t>() + r * columns * bytes);
      }
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> MakeRmsNorm() { return std::make_unique<RmsNormOperation>(); }
std::unique_ptr<Operation> MakeLayerNorm() { return std::make_unique<LayerNormOperation>(); }

}  // namespace atb
