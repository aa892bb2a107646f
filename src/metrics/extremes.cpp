#include "metrics/extremes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "metrics/compare.h"
#include "tensor/half.h"

namespace ait::metrics {
namespace {

constexpr size_t kBlockElements = 8192;

// double holds the values of all other types exactly.
template <typename T>
Extremes extremes_of_integers(const TensorView& view) {
  std::vector<T> block(std::min(kBlockElements, view.elements));
  T minimum = std::numeric_limits<T>::max();
  T maximum = std::numeric_limits<T>::lowest();
  for (size_t first = 0; first < view.elements; first += kBlockElements) {
    const size_t count = std::min(kBlockElements, view.elements - first);
    gather(view, first, count, reinterpret_cast<std::byte*>(block.data()));
    for (size_t i = 0; i < count; ++i) {
      minimum = std::min(minimum, block[i]);
      maximum = std::max(maximum, block[i]);
    }
  }
  return {view.dtype, static_cast<long double>(minimum), static_cast<long double>(maximum)};
}

bool is_float(DType dtype) { return info(dtype).kind == DTypeKind::kFloat; }

DType numpy_type(DType dtype) {
  const bool is_known = !is_float(dtype) || dtype == DType::kFloat16 || dtype == DType::kFloat64;
  return is_known ? dtype : DType::kFloat32;
}

bool is_unsigned(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64;
}

DType signed_of(size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

DType float_of(size_t bytes) {
  if (bytes <= 2) return DType::kFloat16;
  return bytes == 4 ? DType::kFloat32 : DType::kFloat64;
}

// numpy.promote_types
DType promoted(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  const size_t a_bytes = size_bytes(a);
  const size_t b_bytes = size_bytes(b);
  if (is_float(a) || is_float(b)) {
    // An integer needs a float of twice its width, up to the widest.
    const size_t a_need = is_float(a) ? a_bytes : 2 * a_bytes;
    const size_t b_need = is_float(b) ? b_bytes : 2 * b_bytes;
    return float_of(std::max(a_need, b_need));
  }
  if (is_unsigned(a) == is_unsigned(b)) return a_bytes >= b_bytes ? a : b;
  const size_t unsigned_bytes = is_unsigned(a) ? a_bytes : b_bytes;
  const size_t signed_bytes = is_unsigned(a) ? b_bytes : a_bytes;
  if (unsigned_bytes == sizeof(uint64_t)) return DType::kFloat64;
  return signed_of(std::max(signed_bytes, 2 * unsigned_bytes));
}

template <typename T>
void put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}

void put_as(DType dtype, long double value, std::byte* out) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return put(static_cast<uint8_t>(value), out);
    case DType::kInt8:
      return put(static_cast<int8_t>(value), out);
    case DType::kInt16:
      return put(static_cast<int16_t>(value), out);
    case DType::kUInt16:
      return put(static_cast<uint16_t>(value), out);
    case DType::kInt32:
      return put(static_cast<int32_t>(value), out);
    case DType::kUInt32:
      return put(static_cast<uint32_t>(value), out);
    case DType::kInt64:
      return put(static_cast<int64_t>(value), out);
    case DType::kUInt64:
      return put(static_cast<uint64_t>(value), out);
    case DType::kFloat16:
      return put(float_to_fp16(static_cast<float>(value)), out);
    case DType::kFloat32:
      return put(static_cast<float>(value), out);
    default:
      return put(static_cast<double>(value), out);
  }
}

Result<Tensor> filled(const std::vector<Extremes>& rows, DType dtype, Shape shape) {
  const size_t step = size_bytes(dtype);
  const auto bytes = std::make_shared<std::vector<std::byte>>(rows.size() * 2 * step);
  for (size_t i = 0; i < rows.size(); ++i) {
    put_as(dtype, rows[i].minimum, bytes->data() + 2 * i * step);
    put_as(dtype, rows[i].maximum, bytes->data() + (2 * i + 1) * step);
  }
  return Tensor::contiguous(bytes, *bytes, dtype, std::move(shape));
}

}  // namespace

Result<Extremes> extremes_of(const TensorView& view) {
  const DTypeKind kind = info(view.dtype).kind;
  if (kind == DTypeKind::kComplex || kind == DTypeKind::kPacked)
    return fail(Error(ErrorCode::kUnsupported)
                << "has elements of type " << name(view.dtype) << ", which have no order");
  if (view.elements == 0) {
    constexpr auto kNaN = std::numeric_limits<long double>::quiet_NaN();
    return Extremes{is_float(view.dtype) ? numpy_type(view.dtype) : DType::kFloat64, kNaN, kNaN};
  }
  if (view.dtype == DType::kInt64) return extremes_of_integers<int64_t>(view);
  if (view.dtype == DType::kUInt64) return extremes_of_integers<uint64_t>(view);
  const Statistics all = statistics(view);
  return Extremes{numpy_type(view.dtype), all.minimum, all.maximum};
}

DType common_type(const std::vector<Extremes>& rows) {
  if (rows.empty()) return DType::kFloat64;
  DType out = rows.front().dtype;
  for (const Extremes& row : rows) out = promoted(out, row.dtype);
  return out;
}

Result<Tensor> array_of(const std::vector<Extremes>& rows) {
  Shape shape{static_cast<int64_t>(rows.size())};
  if (!rows.empty()) shape.push_back(2);
  return filled(rows, common_type(rows), std::move(shape));
}

Result<Tensor> array_of(const Extremes& row) { return filled({row}, row.dtype, {2}); }

}  // namespace ait::metrics
