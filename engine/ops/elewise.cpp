// ElewiseOperation: everything that goes element by element, and quantisation.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "kernels/loops.h"
#include "kernels/quantise.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

enum ElewiseType : uint8_t {
  kCast = 1,
  kMuls = 2,
  kCos = 3,
  kSin = 4,
  kNeg = 5,
  kQuant = 6,
  kLogicalNot = 7,
  kAdd = 8,
  kMul = 9,
  kRealDiv = 10,
  kLogicalAnd = 11,
  kLogicalOr = 12,
  kLess = 13,
  kGreater = 14,
  kSub = 15,
  kEqual = 16,
  kQuantPerChannel = 17,
  kDequantPerChannel = 18,
  kDynamicQuant = 19,
  kTanh = 20,
};

struct ElewiseParam {
  int64_t elewiseType = 0, outTensorType = -1, inputOffset = 0;
  float varAttr = 0, inputScale = 1;
  bool asymmetric = false;

  void visit(ParamFields& fields) {
    fields.field("elewiseType", elewiseType);
    fields.group("quantParam", [&](ParamFields& quant) {
      quant.field("inputScale", inputScale);
      quant.field("inputOffset", inputOffset);
      quant.field("asymmetric", asymmetric);
    });
    fields.group("mulsParam", [&](ParamFields& muls) { muls.field("varAttr", varAttr); });
    fields.field("outTensorType", outTensorType);
  }
  Status check() const {
    if (elewiseType < kCast || elewiseType > kTanh) return invalid_param("elewiseType is 1 to 20");
    if (asymmetric) return invalid_param("asymmetric quantisation is not supported");
    DataType dtype;
    if (elewiseType == kCast && !data_type_from_code(outTensorType, dtype))
      return invalid_param("a cast needs an outTensorType");
    return {};
  }
};

bool is_binary(int64_t type) { return (type >= kAdd && type <= kEqual); }
bool is_predicate(int64_t type) {
  return type == kLogicalAnd || type == kLogicalOr || type == kLess || type == kGreater ||
         type == kEqual;
}
bool is_per_channel(int64_t type) { return type == kQuantPerChannel || type == kDequantPerChannel; }

bool broadcast(const Dims& x, const Dims& y, Dims& out) {
  const size_t rank = std::max(x.size(), y.size());
  out = {};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t a = i + x.size() < rank ? 1 : x[i + x.size() - rank];
    const int64_t b = i + y.size() < rank ? 1 : y[i + y.size() - rank];
    if (a != b && a != 1 && b != 1) return false;
    out.push_back(a == 1 ? b : a);
  }
  return true;
}

// Where element `at` of a tensor of shape `out` comes from in one of shape `from`.
size_t source(const Dims& out, const Dims& from, size_t at) {
  size_t index = 0, step = 1;
  for (size_t i = out.size(); i-- > 0;) {
    const size_t place = at % static_cast<size_t>(out[i]);
    at /= static_cast<size_t>(out[i]);
    const size_t missing = out.size() - from.size();
    if (i < missing) break;
    const int64_t size = from[i - missing];
    if (size != 1) index += place * step;
    step *= static_cast<size_t>(size);
  }
  return index;
}

double load_any(const Tensor& tensor, size_t at) {
  switch (tensor.desc.dtype) {
    case DataType::kInt8:
    case DataType::kBool:
      return tensor.as<int8_t>()[at];
    case DataType::kInt32:
      return tensor.as<int32_t>()[at];
    case DataType::kInt64:
    case DataType::kUInt64:
      return static_cast<double>(tensor.as<int64_t>()[at]);
    default: {
      float value;
      kernels::widen(tensor.desc.dtype,
                     tensor.as<uint8_t>() + at * element_bytes(tensor.desc.dtype), 1, &value);
      return value;
    }
  }
}

template <class T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  const auto high = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= low) return std::numeric_limits<T>::min();
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// Towards zero for integers.
void store_any(const Tensor& tensor, size_t at, double value) {
  switch (tensor.desc.dtype) {
    case DataType::kInt8:
    case DataType::kBool:
      tensor.as<int8_t>()[at] = saturated<int8_t>(value);
      return;
    case DataType::kInt32:
      tensor.as<int32_t>()[at] = saturated<int32_t>(value);
      return;
    case DataType::kInt64:
    case DataType::kUInt64:
      tensor.as<int64_t>()[at] = saturated<int64_t>(value);
      return;
    default: {
      const auto narrow = static_cast<float>(value);
      kernels::narrow(&narrow, 1, tensor.desc.dtype,
                      tensor.as<uint8_t>() + at * element_bytes(tensor.desc.dtype));
    }
  }
}

// Elements handled in one go, and rows for those that quantise row by row.
struct ElewiseTiling {
  uint64_t elements, columns, block;
};
constexpr uint64_t kBlock = 4096;

class ElewiseOperation final : public ParamOperation<ElewiseParam> {
 public:
  ElewiseOperation() : ParamOperation("ElewiseOperation") {}

  size_t GetInputNum() const override {
    return is_binary(param().elewiseType) ? 2 : is_per_channel(param().elewiseType) ? 3 : 1;
  }
  size_t GetOutputNum() const override { return param().elewiseType == kDynamicQuant ? 2 : 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t type = param().elewiseType;
    out = {in[0]};
    if (type == kCast) {
      data_type_from_code(param().outTensorType, out[0].dtype);
      return {};
    }
    if (is_binary(type)) {
      if (in[0].dtype != in[1].dtype || !broadcast(in[0].dims, in[1].dims, out[0].dims))
        return invalid_tensor(fmt::format("ElewiseOperation cannot combine {} [{}] and {} [{}]",
                                          data_type_name(in[0].dtype), in[0].dims.text(),
                                          data_type_name(in[1].dtype), in[1].dims.text()));
      if (is_predicate(type)) out[0].dtype = DataType::kInt8;
      return {};
    }
    const bool from_int8 = type == kLogicalNot || type == kDequantPerChannel;
    if (from_int8 ? in[0].dtype != DataType::kInt8 : !is_floating(in[0].dtype))
      return invalid_tensor(fmt::format("ElewiseOperation of type {} does not take {}", type,
                                        data_type_name(in[0].dtype)));
    if (is_per_channel(type)) {
      const int64_t columns = in[0].dims.empty() ? 0 : in[0].dims.back();
      const auto fits = [&](const TensorDesc& desc) {
        return desc.dims.count() == columns || desc.dims.count() == 1;
      };
      if (!is_floating(in[1].dtype) || !fits(in[1]) || in[2].dtype != DataType::kInt8 ||
          (in[2].dims.count() != 0 && !fits(in[2])))
        return invalid_tensor(
            "ElewiseOperation needs a scale, and no or one int8 offset, for each "
            "channel");
      out[0].dtype = type == kQuantPerChannel ? DataType::kInt8 : in[1].dtype;
    }
    if (type == kQuant || type == kDynamicQuant) out[0].dtype = DataType::kInt8;
    if (type == kDynamicQuant) {
      if (in[0].dims.empty()) return invalid_tensor("ElewiseOperation cannot quantise a scalar");
      out.push_back(kernels::row_scales(in[0]));
    }
    return {};
  }

 private:
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
              KernelPlan& plan) const override {
    static constexpr const char* kNames[] = {"",
                                             "Cast",
                                             "Muls",
                                             "Cos",
                                             "Sin",
                                             "Neg",
                                             "Quant",
                                             "Not",
                                             "Add",
                                             "Mul",
                                             "Div",
                                             "And",
                                             "Or",
                                             "Less",
                                             "Greater",
                                             "Sub",
                                             "Equal",
                                             "QuantPerChannel",
                                             "DequantPerChannel",
                                             "DynamicQuant",
                                             "Tanh"};
    const uint64_t columns =
        in[0].dims.empty() ? 1 : static_cast<uint64_t>(std::max<int64_t>(1, in[0].dims.back()));
    plan.kernels.push_back(
        {kernel_name(kNames[param().elewiseType], in[0].dtype),
         Tiling(ElewiseTiling{static_cast<uint64_t>(out[0].dims.count()), columns, kBlock}),
         {},
         {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<ElewiseTiling>();
    const int64_t type = param().elewiseType;
    if (type == kDynamicQuant || is_per_channel(type) || type == kQuant) {
      quantise_rows(in, out, cut);
    } else if (is_floating(in[0].desc.dtype) && is_floating(out[0].desc.dtype) &&
               (in.size() == 1 || in[0].desc.dims == in[1].desc.dims)) {
      const uint64_t blocks = (cut.elements + cut.block - 1) / cut.block;
      kernels::for_ranges(blocks, kernels::grain_for(cut.block), [&](size_t begin, size_t end) {
        std::vector<float> x(cut.block), y(in.size() == 2 ? cut.block : 0);
        for (size_t b = begin; b < end; ++b)
          run_block(in, out[0], b * cut.block, std::min(cut.block, cut.elements - b * cut.block), x,
                    y);
      });
    } else {
      one_by_one(in, out[0], cut.elements);
    }
    return {};
  }

  void run_block(std::span<const Tensor> in, const Tensor& out, size_t first, size_t count,
                 std::vector<float>& x, std::vector<float>& y) const {
    const auto at = [&](const Tensor& tensor) {
      return tensor.as<uint8_t>() + first * element_bytes(tensor.desc.dtype);
    };
    kernels::widen(in[0].desc.dtype, at(in[0]), count, x.data());
    if (in.size() == 2) kernels::widen(in[1].desc.dtype, at(in[1]), count, y.data());
    switch (param().elewiseType) {
      case kCast:
        break;
      case kMuls:
        for (size_t i = 0; i < count; ++i) x[i] *= param().varAttr;
        break;
      case kCos:
        for (size_t i = 0; i < count; ++i) x[i] = std::cos(x[i]);
        break;
      case kSin:
        for (size_t i = 0; i < count; ++i) x[i] = std::sin(x[i]);
        break;
      case kNeg:
        for (size_t i = 0; i < count; ++i) x[i] = -x[i];
        break;
      case kTanh:
        for (size_t i = 0; i < count; ++i) x[i] = std::tanh(x[i]);
        break;
      case kAdd:
        for (size_t i = 0; i < count; ++i) x[i] += y[i];
        break;
      case kSub:
        for (size_t i = 0; i < count; ++i) x[i] -= y[i];
        break;
      case kMul:
        for (size_t i = 0; i < count; ++i) x[i] *= y[i];
        break;
      default:
        for (size_t i = 0; i < count; ++i) x[i] /= y[i];
    }
    kernels::narrow(x.data(), count, out.desc.dtype, at(out));
  }

  static double combine(int64_t type, double x, double y) {
    switch (type) {
      case kAdd:
        return x + y;
      case kSub:
        return x - y;
      case kMul:
        return x * y;
      case kRealDiv:
        return x / y;
      case kLogicalAnd:
        return x != 0 && y != 0;
      case kLogicalOr:
        return x != 0 || y != 0;
      case kLess:
        return x < y;
      case kGreater:
        return x > y;
      case kEqual:
        return x == y;
      case kLogicalNot:
        return x == 0;
      default:  // a cast
        return x;
    }
  }

  // Integers, broadcasting and comparisons: rare enough to go one at a time. Doubles hold every
  // product of two floats and every integer that 53 bits hold.
  void one_by_one(std::span<const Tensor> in, const Tensor& out, size_t elements) const {
    const Dims& shape = out.desc.dims;
    for (size_t i = 0; i < elements; ++i) {
      const double x = load_any(in[0], source(shape, in[0].desc.dims, i));
      const double y = in.size() == 2 ? load_any(in[1], source(shape, in[1].desc.dims, i)) : 0;
      store_any(out, i, combine(param().elewiseType, x, y));
    }
  }

  void quantise_rows(std::span<const Tensor> in, std::span<const Tensor> out,
                     const ElewiseTiling& cut) const {
    const int64_t type = param().elewiseType;
    const size_t columns = cut.columns;
    const DataType dtype = in[0].desc.dtype;
    const auto channel = [&](size_t tensor, size_t i) {
      const int64_t count = in[tensor].desc.dims.count();
      return count == 0 ? 0.0f : static_cast<float>(load_any(in[tensor], count == 1 ? 0 : i));
    };
    kernels::for_ranges(
        cut.elements / columns, kernels::grain_for(columns), [&](size_t begin, size_t end) {
          std::vector<float> row(columns);
          for (size_t r = begin; r < end; ++r) {
            if (type == kDequantPerChannel) {
              for (size_t i = 0; i < columns; ++i) {
                const auto stored = static_cast<float>(in[0].as<int8_t>()[r * columns + i]);
                const float value = (stored - channel(2, i)) * channel(1, i);
                row[i] = std::min(65504.0f, std::max(-65504.0f, value));
              }
              kernels::narrow(
                  row.data(), columns, out[0].desc.dtype,
                  out[0].as<uint8_t>() + r * columns * element_bytes(out[0].desc.dtype));
              continue;
            }
            kernels::widen(dtype, in[0].as<uint8_t>() + r * columns * element_bytes(dtype), columns,
                           row.data());
            auto* q = out[0].as<int8_t>() + r * columns;
            if (type == kDynamicQuant) {
              out[1].as<float>()[r] = kernels::quantise_row(row.data(), columns, q);
            } else if (type == kQuant) {
              kernels::quantise_by(row.data(), columns, param().inputScale,
                                   static_cast<float>(param().inputOffset), q);
            } else {
              for (size_t i = 0; i < columns; ++i) row[i] = row[i] / channel(1, i) + channel(2, i);
              kernels::quantise_by(row.data(), columns, 1, 0, q);
            }
          }
        });
  }
};

}  // namespace

std::unique_ptr<Operation> make_elewise() { return std::make_unique<ElewiseOperation>(); }

}  // namespace atb
