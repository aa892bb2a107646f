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

  void Visit(ParamFields& fields) {
    fields.Field("elewiseType", elewiseType);
    fields.Group("quantParam", [&](ParamFields& quant) {
      quant.Field("inputScale", inputScale);
      quant.Field("inputOffset", inputOffset);
      quant.Field("asymmetric", asymmetric);
    });
    fields.Group("mulsParam", [&](ParamFields& muls) { muls.Field("varAttr", varAttr); });
    fields.Field("outTensorType", outTensorType);
  }
  Status Check() const {
    if (elewiseType < kCast || elewiseType > kTanh) return InvalidParam("elewiseType is 1 to 20");
    if (asymmetric) return InvalidParam("asymmetric quantisation is not supported");
    DataType dtype;
    if (elewiseType == kCast && !DataTypeFromCode(outTensorType, dtype))
      return InvalidParam("a cast needs an outTensorType");
    return {};
  }
};

bool IsBinary(int64_t type) { return (type >= kAdd && type <= kEqual); }
bool IsPredicate(int64_t type) {
  return type == kLogicalAnd || type == kLogicalOr || type == kLess || type == kGreater ||
         type == kEqual;
}
bool IsPerChannel(int64_t type) { return type == kQuantPerChannel || type == kDequantPerChannel; }

bool Broadcast(const Dims& x, const Dims& y, Dims& out) {
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
size_t Source(const Dims& out, const Dims& from, size_t at) {
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

double LoadAny(const Tensor& tensor, size_t at) {
  switch (tensor.desc.dtype) {
    case DataType::kInt8:
    case DataType::kBool:
      return tensor.As<int8_t>()[at];
    case DataType::kInt32:
      return tensor.As<int32_t>()[at];
    case DataType::kInt64:
    case DataType::kUInt64:
      return static_cast<double>(tensor.As<int64_t>()[at]);
    default: {
      float value;
      kernels::Widen(tensor.desc.dtype, tensor.As<uint8_t>() + at * ElementBytes(tensor.desc.dtype),
                     1, &value);
      return value;
    }
  }
}

template <class T>
T Saturated(double value) {
  if (std::isnan(value)) return 0;
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  const auto high = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= low) return std::numeric_limits<T>::min();
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// Towards zero for integers.
void StoreAny(const Tensor& tensor, size_t at, double value) {
  switch (tensor.desc.dtype) {
    case DataType::kInt8:
    case DataType::kBool:
      tensor.As<int8_t>()[at] = Saturated<int8_t>(value);
      return;
    case DataType::kInt32:
      tensor.As<int32_t>()[at] = Saturated<int32_t>(value);
      return;
    case DataType::kInt64:
    case DataType::kUInt64:
      tensor.As<int64_t>()[at] = Saturated<int64_t>(value);
      return;
    default: {
      const auto narrow = static_cast<float>(value);
      kernels::Narrow(&narrow, 1, tensor.desc.dtype,
                      tensor.As<uint8_t>() + at * ElementBytes(tensor.desc.dtype));
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
    return IsBinary(param().elewiseType) ? 2 : IsPerChannel(param().elewiseType) ? 3 : 1;
  }
  size_t GetOutputNum() const override { return param().elewiseType == kDynamicQuant ? 2 : 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t type = param().elewiseType;
    out = {in[0]};
    if (type == kCast) {
      DataTypeFromCode(param().outTensorType, out[0].dtype);
      return {};
    }
    if (IsBinary(type)) {
      if (in[0].dtype != in[1].dtype || !Broadcast(in[0].dims, in[1].dims, out[0].dims))
        return InvalidTensor(fmt::format("ElewiseOperation cannot combine {} [{}] and {} [{}]",
                                         DataTypeName(in[0].dtype), in[0].dims.Text(),
                                         DataTypeName(in[1].dtype), in[1].dims.Text()));
      if (IsPredicate(type)) out[0].dtype = DataType::kInt8;
      return {};
    }
    const bool from_int8 = type == kLogicalNot || type == kDequantPerChannel;
    if (from_int8 ? in[0].dtype != DataType::kInt8 : !IsFloating(in[0].dtype))
      return InvalidTensor(fmt::format("ElewiseOperation of type {} does not take {}", type,
                                       DataTypeName(in[0].dtype)));
    if (IsPerChannel(type)) {
      const int64_t columns = in[0].dims.empty() ? 0 : in[0].dims.back();
      const auto fits = [&](const TensorDesc& desc) {
        return desc.dims.Count() == columns || desc.dims.Count() == 1;
      };
      if (!IsFloating(in[1].dtype) || !fits(in[1]) || in[2].dtype != DataType::kInt8 ||
          (in[2].dims.Count() != 0 && !fits(in[2])))
        return InvalidTensor(
            "ElewiseOperation needs a scale, and no or one int8 offset, for each "
            "channel");
      out[0].dtype = type == kQuantPerChannel ? DataType::kInt8 : in[1].dtype;
    }
    if (type == kQuant || type == kDynamicQuant) out[0].dtype = DataType::kInt8;
    if (type == kDynamicQuant) {
      if (in[0].dims.empty()) return InvalidTensor("ElewiseOperation cannot quantise a scalar");
      out.push_back(kernels::RowScales(in[0]));
    }
    return {};
  }

 private:
  Status Plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
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
        {KernelName(kNames[param().elewiseType], in[0].dtype),
         Tiling(ElewiseTiling{static_cast<uint64_t>(out[0].dims.Count()), columns, kBlock}),
         {},
         {}});
    return {};
  }

  Status Launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.As<ElewiseTiling>();
    const int64_t type = param().elewiseType;
    if (type == kDynamicQuant || IsPerChannel(type) || type == kQuant) {
      QuantiseRows(in, out, cut);
    } else if (IsFloating(in[0].desc.dtype) && IsFloating(out[0].desc.dtype) &&
               (in.size() == 1 || in[0].desc.dims == in[1].desc.dims)) {
      const uint64_t blocks = (cut.elements + cut.block - 1) / cut.block;
      kernels::ForRanges(blocks, kernels::GrainFor(cut.block), [&](size_t begin, size_t end) {
        std::vector<float> x(cut.block), y(in.size() == 2 ? cut.block : 0);
        for (size_t b = begin; b < end; ++b)
          RunBlock(in, out[0], b * cut.block, std::min(cut.block, cut.elements - b * cut.block), x,
                   y);
      });
    } else {
      OneByOne(in, out[0], cut.elements);
    }
    return {};
  }

  void RunBlock(std::span<const Tensor> in, const Tensor& out, size_t first, size_t count,
                std::vector<float>& x, std::vector<float>& y) const {
    const auto at = [&](const Tensor& tensor) {
      return tensor.As<uint8_t>() + first * ElementBytes(tensor.desc.dtype);
    };
    kernels::Widen(in[0].desc.dtype, at(in[0]), count, x.data());
    if (in.size() == 2) kernels::Widen(in[1].desc.dtype, at(in[1]), count, y.data());
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
    kernels::Narrow(x.data(), count, out.desc.dtype, at(out));
  }

  static double Combine(int64_t type, double x, double y) {
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
  void OneByOne(std::span<const Tensor> in, const Tensor& out, size_t elements) const {
    const Dims& shape = out.desc.dims;
    for (size_t i = 0; i < elements; ++i) {
      const double x = LoadAny(in[0], Source(shape, in[0].desc.dims, i));
      const double y = in.size() == 2 ? LoadAny(in[1], Source(shape, in[1].desc.dims, i)) : 0;
      StoreAny(out, i, Combine(param().elewiseType, x, y));
    }
  }

  void QuantiseRows(std::span<const Tensor> in, std::span<const Tensor> out,
                    const ElewiseTiling& cut) const {
    const int64_t type = param().elewiseType;
    const size_t columns = cut.columns;
    const DataType dtype = in[0].desc.dtype;
    const auto channel = [&](size_t tensor, size_t i) {
      const int64_t count = in[tensor].desc.dims.Count();
      return count == 0 ? 0.0f : static_cast<float>(LoadAny(in[tensor], count == 1 ? 0 : i));
    };
    kernels::ForRanges(
        cut.elements / columns, kernels::GrainFor(columns), [&](size_t begin, size_t end) {
          std::vector<float> row(columns);
          for (size_t r = begin; r < end; ++r) {
            if (type == kDequantPerChannel) {
              for (size_t i = 0; i < columns; ++i) {
                const auto stored = static_cast<float>(in[0].As<int8_t>()[r * columns + i]);
                const float value = (stored - channel(2, i)) * channel(1, i);
                row[i] = std::min(65504.0f, std::max(-65504.0f, value));
              }
              kernels::Narrow(row.data(), columns, out[0].desc.dtype,
                              out[0].As<uint8_t>() + r * columns * ElementBytes(out[0].desc.dtype));
              continue;
            }
            kernels::Widen(dtype, in[0].As<uint8_t>() + r * columns * ElementBytes(dtype), columns,
                           row.data());
            auto* q = out[0].As<int8_t>() + r * columns;
            if (type == kDynamicQuant) {
              out[1].As<float>()[r] = kernels::QuantiseRow(row.data(), columns, q);
            } else if (type == kQuant) {
              kernels::QuantiseBy(row.data(), columns, param().inputScale,
                                  static_cast<float>(param().inputOffset), q);
            } else {
              for (size_t i = 0; i < columns; ++i) row[i] = row[i] / channel(1, i) + channel(2, i);
              kernels::QuantiseBy(row.data(), columns, 1, 0, q);
            }
          }
        });
  }
};

}  // namespace

std::unique_ptr<Operation> MakeElewise() { return std::make_unique<ElewiseOperation>(); }

}  // namespace atb
