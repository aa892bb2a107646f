// LinearOperation: y = x W (+ bias), in floating point or on int8 with scales.
#include <fmt/format.h>

#include <cstring>

#include "kernels/loops.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

constexpr int64_t kPerToken = 2;

struct LinearParam {
  bool transposeA = false, transposeB = true, hasBias = true, enAccum = false;
  int64_t outDataType = -1, matmulType = 0, quantMode = 0;

  void visit(ParamFields& fields) {
    fields.field("transposeA", transposeA);
    fields.field("transposeB", transposeB);
    fields.field("hasBias", hasBias);
    fields.field("outDataType", outDataType);
    fields.field("enAccum", enAccum);
    fields.field("matmulType", matmulType);
    fields.field("quantMode", quantMode);
  }
  Status check() const {
    if (enAccum || matmulType != 0) return invalid_param("enAccum and EIN_SUM are not supported");
    if (outDataType != -1 && outDataType != 1 && outDataType != 27)
      return invalid_param("outDataType is -1, 1 or 27");
    if (quantMode < 0 || quantMode > kPerToken || (quantMode != 0 && !quantised()))
      return invalid_param("quantMode is 0, 1 or 2, and not 0 only with an outDataType");
    if (quantised() && transposeA) return invalid_param("int8 inputs cannot be transposed");
    return {};
  }
  bool quantised() const { return outDataType != -1; }
  bool per_token() const { return quantMode == kPerToken; }
};

// How the product is cut up: every task takes `task_columns` rows of the weight, and walks over the
// rows of x in blocks that stay in the second-level cache.
struct MatMulTiling {
  uint64_t batch, m, n, k;
  uint32_t tile_rows, tile_columns;
  uint64_t block_rows, task_columns;
};

constexpr uint64_t kBlockBytes = 512 << 10;  // of x as fp32, half of a usual second-level cache
constexpr uint64_t kTaskBytes = 128 << 10;   // of weights: far more than starting a task costs

MatMulTiling make_tiling(uint64_t batch, uint64_t m, uint64_t n, uint64_t k, uint64_t element) {
  MatMulTiling tiling{batch, m, n, k, kernels::kTileRows, kernels::kTileColumns, 0, 0};
  const auto tiles = [](uint64_t wanted, uint64_t tile) {
    return std::max<uint64_t>(1, wanted / tile) * tile;
  };
  const uint64_t row = std::max<uint64_t>(1, k);
  tiling.block_rows = tiles(kBlockBytes / (row * sizeof(float)), kernels::kTileRows);
  tiling.task_columns = tiles(kTaskBytes / (row * element), kernels::kTileColumns);
  return tiling;
}

struct Shape {
  int64_t batch = 1;  // of the weight
  int64_t m = 0, n = 0, k = 0;
  Dims out;
};

Status shape_of(const LinearParam& param, const Dims& x, const Dims& w, Shape& shape) {
  if (x.size() < 2 || w.size() < 2 || w.size() > 3)
    return invalid_tensor(
        fmt::format("LinearOperation takes x [.., m, k] and a weight of two or "
                    "three dimensions, not [{}] and [{}]",
                    x.text(), w.text()));
  int64_t rows = x[x.size() - 2], k = x.back();
  if (param.transposeA) std::swap(rows, k);
  const int64_t w_first = w[w.size() - 2], w_last = w.back();
  shape.n = param.transposeB ? w_first : w_last;
  shape.k = param.transposeB ? w_last : w_first;
  if (shape.k != k)
    return invalid_tensor(fmt::format(
        "x [{}] and the weight [{}] of LinearOperation do not fit together", x.text(), w.text()));
  shape.m = rows;
  if (w.size() == 3) {
    if (x.size() != 3 || x[0] != w[0])
      return invalid_tensor("a batched weight of LinearOperation needs as many batches of x");
    shape.batch = w[0];
  } else if (param.transposeA && x.size() > 2) {
    return invalid_tensor("a batched x of LinearOperation cannot be transposed");
  } else {
    for (size_t i = 0; i + 2 < x.size(); ++i) shape.m *= x[i];
  }
  shape.out = x;
  shape.out[x.size() - 2] = rows;
  shape.out[x.size() - 1] = shape.n;
  return {};
}

template <class T>
void transpose_to(const T* from, size_t rows, size_t columns, std::vector<T>& to) {
  to.resize(rows * columns);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

// Scales of int8 weights: fp32, or the same bits in the low half of 64-bit words.
std::vector<float> scales_of(const Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.desc.dims.count());
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) {
    if (tensor.desc.dtype == DataType::kFloat) {
      scales[i] = tensor.as<float>()[i];
    } else {
      const auto bits = static_cast<uint32_t>(tensor.as<uint64_t>()[i]);
      std::memcpy(&scales[i], &bits, sizeof bits);
    }
  }
  return scales;
}

class LinearOperation final : public ParamOperation<LinearParam> {
 public:
  LinearOperation() : ParamOperation("LinearOperation") {}

  size_t GetInputNum() const override {
    return size_t{2} + (param().hasBias ? 1 : 0) + (param().quantised() ? 1 : 0) +
           (param().per_token() ? 1 : 0);
  }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    Shape shape;
    if (auto status = shape_of(param(), in[0].dims, in[1].dims, shape); !status.ok()) return status;
    const bool quantised = param().quantised();
    if (in[0].dtype != in[1].dtype ||
        (quantised ? in[0].dtype != DataType::kInt8 : !is_floating(in[0].dtype)))
      return invalid_tensor(fmt::format("LinearOperation cannot multiply {} by {}{}",
                                        data_type_name(in[0].dtype), data_type_name(in[1].dtype),
                                        quantised ? " with an outDataType" : ""));
    DataType dtype = in[0].dtype;
    if (quantised && !data_type_from_code(param().outDataType, dtype))
      return invalid_param("unknown outDataType");
    if (quantised && static_cast<size_t>(shape.k) > kernels::kMaxInt8K)
      return invalid_tensor("the sums of so long an int8 product do not fit in 32 bits");
    size_t next = 2;
    if (param().hasBias) {
      const TensorDesc& bias = in[next++];
      if (bias.dims.count() != shape.n * shape.batch ||
          (quantised ? bias.dtype != DataType::kInt32 : !is_floating(bias.dtype)))
        return invalid_tensor("the bias of LinearOperation does not fit its weight");
    }
    if (quantised) {
      const TensorDesc& scale = in[next++];
      const bool known = scale.dtype == DataType::kFloat || scale.dtype == DataType::kInt64 ||
                         scale.dtype == DataType::kUInt64;
      if (scale.dims.count() != shape.n * shape.batch || !known)
        return invalid_tensor("the scales of LinearOperation do not fit its weight");
    }
    if (param().per_token()) {
      const TensorDesc& scale = in[next];
      if (scale.dims.count() != shape.m * shape.batch || scale.dtype != DataType::kFloat)
        return invalid_tensor("LinearOperation needs one fp32 scale for each row of x");
    }
    out = {{dtype, shape.out}};
    return {};
  }

 private:
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    Shape shape;
    if (auto status = shape_of(param(), in[0].dims, in[1].dims, shape); !status.ok()) return status;
    const auto u = [](int64_t size) { return static_cast<uint64_t>(size); };
    plan.kernels.push_back({kernel_name("MatMul", in[0].dtype),
                            Tiling(make_tiling(u(shape.batch), u(shape.m), u(shape.n), u(shape.k),
                                               element_bytes(in[1].dtype))),
                            {},
                            {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<MatMulTiling>();
    for (uint64_t batch = 0; batch < cut.batch; ++batch) {
      if (param().quantised())
        multiply_int8(cut, batch, in, out[0]);
      else
        multiply(cut, batch, in, out[0]);
    }
    return {};
  }

  void multiply(const MatMulTiling& cut, uint64_t batch, std::span<const Tensor> in,
                const Tensor& out) const {
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    const auto* x_stored = in[0].as<uint8_t>() + batch * cut.m * cut.k * bytes;
    std::vector<float> x_wide, x_turned, w_turned;
    const float* x = reinterpret_cast<const float*>(x_stored);
    if (dtype != DataType::kFloat) {
      x_wide.resize(cut.m * cut.k);
      kernels::widen(dtype, x_stored, x_wide.size(), x_wide.data());
      x = x_wide.data();
    }
    if (param().transposeA) {
      transpose_to(x, cut.k, cut.m, x_turned);
      x = x_turned.data();
    }
    const auto* w = in[1].as<uint8_t>() + batch * cut.n * cut.k * bytes;
    DataType w_dtype = dtype;
    if (!param().transposeB) {
      std::vector<float> wide(cut.n * cut.k);
      kernels::widen(dtype, w, wide.size(), wide.data());
      transpose_to(wide.data(), cut.k, cut.n, w_turned);
      w = reinterpret_cast<const uint8_t*>(w_turned.data());
      w_dtype = DataType::kFloat;
    }
    std::vector<float> bias;
    if (param().hasBias) {
      bias.resize(cut.n);
      kernels::widen(in[2].desc.dtype,
                     in[2].as<uint8_t>() + batch * cut.n * element_bytes(in[2].desc.dtype), cut.n,
                     bias.data());
    }
    const size_t w_bytes = element_bytes(w_dtype);
    auto* y = out.as<uint8_t>() + batch * cut.m * cut.n * bytes;
    for_tasks(cut, [&](size_t first, size_t count, std::vector<float>& sums) {
      for (size_t row = 0; row < cut.m; row += cut.block_rows) {
        const size_t rows = std::min<size_t>(cut.block_rows, cut.m - row);
        sums.resize(rows * count);
        kernels::dot_products(x + row * cut.k, rows, w_dtype, w + first * cut.k * w_bytes, count,
                              cut.k, sums.data(), count);
        for (size_t r = 0; r < rows; ++r) {
          float* sum = sums.data() + r * count;
          if (!bias.empty())
            for (size_t c = 0; c < count; ++c) sum[c] += bias[first + c];
          kernels::narrow(sum, count, dtype, y + ((row + r) * cut.n + first) * bytes);
        }
      }
    });
  }

  void multiply_int8(const MatMulTiling& cut, uint64_t batch, std::span<const Tensor> in,
                     const Tensor& out) const {
    const auto* x = in[0].as<int8_t>() + batch * cut.m * cut.k;
    std::vector<int8_t> turned;
    const auto* w = in[1].as<int8_t>() + batch * cut.n * cut.k;
    if (!param().transposeB) {
      transpose_to(w, cut.k, cut.n, turned);
      w = turned.data();
    }
    size_t next = 2;
    const int32_t* bias = nullptr;
    if (param().hasBias) bias = in[next++].as<int32_t>() + batch * cut.n;
    const auto scales = scales_of(in[next++]);
    const float* scale = scales.data() + batch * cut.n;
    const float* per_token = param().per_token() ? in[next].as<float>() + batch * cut.m : nullptr;
    const DataType dtype = out.desc.dtype;
    auto* y = out.as<uint8_t>() + batch * cut.m * cut.n * element_bytes(dtype);
    for_tasks(cut, [&](size_t first, size_t count, std::vector<float>& row_sums) {
      std::vector<int32_t> sums(count);
      row_sums.resize(count);
      for (size_t r = 0; r < cut.m; ++r) {
        kernels::dot_products_int8(x + r * cut.k, 1, w + first * cut.k, count, cut.k, sums.data(),
                                   count);
        for (size_t c = 0; c < count; ++c) {
          const int64_t exact = int64_t{sums[c]} + (bias == nullptr ? 0 : bias[first + c]);
          row_sums[c] = static_cast<float>(exact) * scale[first + c];
          if (per_token != nullptr) row_sums[c] *= per_token[r];
        }
        kernels::narrow(row_sums.data(), count, dtype,
                        y + (r * cut.n + first) * element_bytes(dtype));
      }
    });
  }

  // Calls body(first column, columns, scratch) for each task.
  template <class Body>
  static void for_tasks(const MatMulTiling& cut, const Body& body) {
    const size_t tasks = (cut.n + cut.task_columns - 1) / cut.task_columns;
    const size_t cost = cut.m * cut.k * cut.task_columns;
    kernels::for_ranges(tasks, kernels::grain_for(cost), [&](size_t begin, size_t end) {
      std::vector<float> scratch;
      for (size_t task = begin; task < end; ++task) {
        const size_t first = task * cut.task_columns;
        body(first, std::min<size_t>(cut.task_columns, cut.n - first), scratch);
      }
    });
  }
};

}  // namespace

std::unique_ptr<Operation> make_linear() { return std::make_unique<LinearOperation>(); }

}  // namespace atb
