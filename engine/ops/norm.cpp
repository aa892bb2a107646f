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

Tiling row_tiling(const Dims& dims) {
  return Tiling(NormTiling{static_cast<uint64_t>(dims.count() / std::max<int64_t>(1, dims.back())),
                           static_cast<uint64_t>(dims.back())});
}

// x + scale * residual (+ bias), as fp32.
void add_rows(const Tensor& x, const Tensor& residual, const Tensor* bias, float scale, size_t row,
              size_t columns, float* sum, float* scratch) {
  const auto at = [&](const Tensor& tensor, size_t first) {
    return tensor.as<uint8_t>() + first * element_bytes(tensor.desc.dtype);
  };
  kernels::widen(x.desc.dtype, at(x, row * columns), columns, sum);
  if (bias != nullptr) {
    kernels::widen(bias->desc.dtype, bias->data, columns, scratch);
    for (size_t i = 0; i < columns; ++i) sum[i] += scratch[i];
  }
  kernels::widen(residual.desc.dtype, at(residual, row * columns), columns, scratch);
  for (size_t i = 0; i < columns; ++i) sum[i] += scale * scratch[i];
}

struct Affine {
  std::vector<float> gamma, beta;
};

std::vector<float> wide(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.desc.dims.count()));
  kernels::widen(tensor.desc.dtype, tensor.data, values.size(), values.data());
  return values;
}

Status check_row_tensors(const char* name, const std::vector<TensorDesc>& in, size_t residuals,
                         size_t vectors) {
  const TensorDesc& x = in[0];
  if (!is_floating(x.dtype) || x.dims.empty())
    return invalid_tensor(fmt::format("{} takes floating x, not {} [{}]", name,
                                      data_type_name(x.dtype), x.dims.text()));
  for (size_t i = 1; i < 1 + residuals + vectors; ++i) {
    const bool fits =
        i < 1 + residuals ? in[i].dims == x.dims : in[i].dims.count() == x.dims.back();
    if (!fits || !is_floating(in[i].dtype))
      return invalid_tensor(fmt::format("input {} of {} is [{}], which does not fit x [{}]", i,
                                        name, in[i].dims.text(), x.dims.text()));
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

  void visit(ParamFields& fields) {
    fields.field("layerType", layerType);
    if (layerType == kNorm)
      fields.group("normParam", [&](ParamFields& norm) {
        norm.field("quantType", kind.quantType);
        norm.field("epsilon", kind.epsilon);
        norm.field("layerNormEps", kind.layerNormEps);
        norm.field("rstd", kind.rstd);
        norm.field("precisionMode", kind.precisionMode);
        norm.field("modelType", kind.modelType);
        norm.field("dynamicQuantType", kind.dynamicQuantType);
      });
    else if (layerType == kPreNorm || layerType == kPostNorm)
      fields.group(layerType == kPreNorm ? "preNormParam" : "postNormParam",
                   [&](ParamFields& norm) {
                     norm.field("quantType", kind.quantType);
                     norm.field("epsilon", kind.epsilon);
                     norm.field("hasBias", kind.hasBias);
                   });
  }
  Status check() const {
    if (layerType < kNorm || layerType > kPostNorm)
      return invalid_param("layerType is 1 (norm), 2 (pre-norm) or 3 (post-norm)");
    if (kind.rstd || kind.precisionMode != 0)
      return invalid_param("rstd and precisionMode 1 are not supported");
    if (kind.quantType != 0 && (kind.quantType != kQuantInt8 || layerType != kNorm))
      return invalid_param("only layerType 1 can quantise, with quantType 2");
    if (kind.dynamicQuantType < 0 || kind.dynamicQuantType > 1 ||
        (kind.dynamicQuantType == 1 && kind.quantType == 0))
      return invalid_param("dynamicQuantType is 0, or 1 with quantType 2");
    return {};
  }
};

class RmsNormOperation final : public ParamOperation<RmsNormParam> {
 public:
  RmsNormOperation() : ParamOperation("RmsNormOperation") {}

  size_t GetInputNum() const override {
    if (param().layerType != kNorm) return param().kind.hasBias ? 4 : 3;
    return !int8() ? 2 : dynamic() ? 3 : 5;
  }
  size_t GetOutputNum() const override {
    return param().layerType == kPreNorm || dynamic() ? 2 : 1;
  }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (param().layerType != kNorm) {
      // ATB's order is x, [bias], residual, gamma; a bias is checked with the vectors.
      std::vector<TensorDesc> ordered{in[0], in[in.size() - 2], in.back()};
      if (param().kind.hasBias) ordered.push_back(in[1]);
      if (auto status = check_row_tensors("RmsNormOperation", ordered, 1, ordered.size() - 2);
          !status.ok())
        return status;
      out.assign(GetOutputNum(), in[0]);
      return {};
    }
    if (auto status = check_row_tensors("RmsNormOperation", in, 0, int8() ? 2 : 1); !status.ok())
      return status;
    if (int8() && !dynamic() &&
        (in[3].dims.count() != 1 || in[4].dims.count() != 1 || in[4].dtype != DataType::kInt8))
      return invalid_tensor("RmsNormOperation needs one scale and one int8 offset");
    out = {in[0]};
    if (int8()) out[0].dtype = DataType::kInt8;
    if (dynamic()) out.push_back(kernels::row_scales(in[0]));
    return {};
  }

 private:
  bool int8() const { return param().kind.quantType == kQuantInt8; }
  bool dynamic() const { return param().kind.dynamicQuantType == 1; }

  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    plan.kernels.push_back({kernel_name(int8() ? "RmsNormQuant" : "RmsNorm", in[0].dtype),
                            row_tiling(in[0].dims),
                            {},
                            {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<NormTiling>();
    const size_t columns = cut.columns;
    const auto& kind = param().kind;
    const bool residual = param().layerType != kNorm;
    const float epsilon = fault() != nullptr && fault()->kind == KernelFault::Kind::kEpsilon
                              ? fault()->size
                              : kind.epsilon;
    auto gamma = wide(residual ? in[in.size() - 1] : in[1]);
    if (kind.modelType == 1)  // Gemma stores gamma - 1
      for (float& g : gamma) g += 1;
    const auto beta = int8() ? wide(in[2]) : std::vector<float>();
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    kernels::for_ranges(cut.rows, kernels::grain_for(columns), [&](size_t begin, size_t end) {
      std::vector<float> row(columns), scratch(columns);
      for (size_t r = begin; r < end; ++r) {
        if (residual)
          add_rows(in[0], in[in.size() - 2], kind.hasBias ? &in[1] : nullptr, 1, r, columns,
                   row.data(), scratch.data());
        else
          kernels::widen(dtype, in[0].as<uint8_t>() + r * columns * bytes, columns, row.data());
        if (param().layerType == kPreNorm)
          kernels::narrow(row.data(), columns, dtype, out[1].as<uint8_t>() + r * columns * bytes);
        const float mean =
            kernels::sum_of_squares(row.data(), columns) / static_cast<float>(columns);
        const float by = 1 / std::sqrt(mean + epsilon);
        for (size_t i = 0; i < columns; ++i) row[i] = row[i] * by * gamma[i];
        if (!int8()) {
          kernels::narrow(row.data(), columns, dtype, out[0].as<uint8_t>() + r * columns * bytes);
          continue;
        }
        for (size_t i = 0; i < columns; ++i) row[i] += beta[i];
        auto* q = out[0].as<int8_t>() + r * columns;
        if (dynamic())
          out[1].as<float>()[r] = kernels::quantise_row(row.data(), columns, q);
        else
          kernels::quantise_by(row.data(), columns, 1 / wide(in[3])[0], *in[4].as<int8_t>(), q);
      }
    });
    return {};
  }
};

struct LayerNormParam {
  int64_t layerType = 0;
  int64_t quantType = 0, beginNormAxis = 0, beginParamsAxis = 0, opMode = 0;
  float epsilon = 1e-5f, zoomScaleValue = 1;

  void visit(ParamFields& fields) {
    fields.field("layerType", layerType);
    if (layerType == kNorm)
      fields.group("normParam", [&](ParamFields& norm) {
        norm.field("quantType", quantType);
        norm.field("epsilon", epsilon);
        norm.field("beginNormAxis", beginNormAxis);
        norm.field("beginParamsAxis", beginParamsAxis);
      });
    else if (layerType == kPreNorm || layerType == kPostNorm)
      fields.group(layerType == kPreNorm ? "preNormParam" : "postNormParam",
                   [&](ParamFields& norm) {
                     norm.field("quantType", quantType);
                     norm.field("epsilon", epsilon);
                     norm.field("opMode", opMode);
                     norm.field("zoomScaleValue", zoomScaleValue);
                   });
  }
  Status check() const {
    if (layerType < kNorm || layerType > kPostNorm)
      return invalid_param("layerType is 1 (norm), 2 (pre-norm) or 3 (post-norm)");
    if (quantType != 0) return invalid_param("quantisation is not supported");
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
    if (auto status = check_row_tensors("LayerNormOperation", in, residuals, 0); !status.ok())
      return status;
    const int64_t columns = columns_of(in[0].dims);
    if (columns < 0) return invalid_param("beginNormAxis of LayerNormOperation is no axis of x");
    for (size_t i = 1 + residuals; i < in.size(); ++i)
      if (in[i].dims.count() != columns || !is_floating(in[i].dtype))
        return invalid_tensor(
            fmt::format("gamma and beta of LayerNormOperation need {} elements", columns));
    out.assign(GetOutputNum(), in[0]);
    return {};
  }

 private:
  // Elements that are normalised together, or -1.
  int64_t columns_of(const Dims& x) const {
    if (param().layerType != kNorm) return x.back();
    int64_t axis = param().beginNormAxis;
    const auto rank = static_cast<int64_t>(x.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return -1;
    return x.count(static_cast<size_t>(axis));
  }

  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const int64_t columns = std::max<int64_t>(1, columns_of(in[0].dims));
    plan.kernels.push_back({kernel_name("LayerNorm", in[0].dtype),
                            Tiling(NormTiling{static_cast<uint64_t>(in[0].dims.count() / columns),
                                              static_cast<uint64_t>(columns)}),
                            {},
                            {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<NormTiling>();
    const size_t columns = cut.columns;
    const bool residual = param().layerType != kNorm;
    const float epsilon = fault() != nullptr && fault()->kind == KernelFault::Kind::kEpsilon
                              ? fault()->size
                              : param().epsilon;
    const auto gamma = wide(in[in.size() - 2]);
    const auto beta = wide(in[in.size() - 1]);
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    kernels::for_ranges(cut.rows, kernels::grain_for(columns), [&](size_t begin, size_t end) {
      std::vector<float> row(columns), scratch(columns);
      for (size_t r = begin; r < end; ++r) {
        if (residual)
          add_rows(in[0], in[1], nullptr, param().zoomScaleValue, r, columns, row.data(),
                   scratch.data());
        else
          kernels::widen(dtype, in[0].as<uint8_t>() + r * columns * bytes, columns, row.data());
        if (param().layerType == kPreNorm)
          kernels::narrow(row.data(), columns, dtype, out[1].as<uint8_t>() + r * columns * bytes);
        float sum = 0;
        for (const float value : row) sum += value;
        const float mean = sum / static_cast<float>(columns);
        for (float& value : row) value -= mean;
        const float variance =
            kernels::sum_of_squares(row.data(), columns) / static_cast<float>(columns);
        const float by = 1 / std::sqrt(variance + epsilon);
        for (size_t i = 0; i < columns; ++i) row[i] = row[i] * by * gamma[i] + beta[i];
        kernels::narrow(row.data(), columns, dtype, out[0].as<uint8_t>() + r * columns * bytes);
      }
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_rms_norm() { return std::make_unique<RmsNormOperation>(); }
std::unique_ptr<Operation> make_layer_norm() { return std::make_unique<LayerNormOperation>(); }

}  // namespace atb
