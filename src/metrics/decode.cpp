#include <array>
#include <cstring>

#include "metrics/kernels.h"
#include "tensor/half.h"

namespace ait::metrics {
namespace {

// out[i] = convert(element i of `data`), which need not be aligned.
template <typename Stored, typename Value, typename Convert>
void decode_each(const void* data, size_t elements, Value* out, Convert convert) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (size_t i = 0; i < elements; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(stored);
  }
}

template <typename Stored>
void decode_number(const void* data, size_t elements, double* out) {
  decode_each<Stored>(data, elements, out, [](Stored value) { return static_cast<double>(value); });
}

using Fp8Decoder = float (*)(uint8_t);

template <Fp8Decoder kDecode>
void decode_fp8(const void* data, size_t elements, double* out) {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> values{};
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(kDecode(static_cast<uint8_t>(i)));
    return values;
  }();
  decode_each<uint8_t>(data, elements, out, [](uint8_t bits) { return table[bits]; });
}

// Wide enough for every integer type and their differences.
__extension__ using Int128 = __int128;

Int128 integer_at(DType dtype, const std::byte* data, size_t index) {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return static_cast<Int128>(value);
  };
  switch (dtype) {
    case DType::kInt8:
      return load(int8_t{});
    case DType::kInt16:
      return load(int16_t{});
    case DType::kUInt16:
      return load(uint16_t{});
    case DType::kInt32:
      return load(int32_t{});
    case DType::kUInt32:
      return load(uint32_t{});
    case DType::kInt64:
      return load(int64_t{});
    case DType::kUInt64:
      return load(uint64_t{});
    default:
      return load(uint8_t{});
  }
}

}  // namespace

void decode_f64(DType dtype, const void* data, size_t elements, double* out) {
  switch (dtype) {
    case DType::kBool:
      return decode_each<uint8_t>(data, elements, out,
                                  [](uint8_t value) { return value != 0 ? 1.0 : 0.0; });
    case DType::kInt8:
      return decode_number<int8_t>(data, elements, out);
    case DType::kInt16:
      return decode_number<int16_t>(data, elements, out);
    case DType::kUInt16:
      return decode_number<uint16_t>(data, elements, out);
    case DType::kInt32:
      return decode_number<int32_t>(data, elements, out);
    case DType::kUInt32:
      return decode_number<uint32_t>(data, elements, out);
    case DType::kInt64:
      return decode_number<int64_t>(data, elements, out);
    case DType::kUInt64:
      return decode_number<uint64_t>(data, elements, out);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return widen_block(dtype, data, elements, out);
    case DType::kFloat64:
      return decode_number<double>(data, elements, out);
    case DType::kFloat8E4M3FN:
      return decode_fp8<fp8_e4m3fn_to_float>(data, elements, out);
    case DType::kFloat8E5M2:
      return decode_fp8<fp8_e5m2_to_float>(data, elements, out);
    case DType::kFloat8E4M3FNUZ:
      return decode_fp8<fp8_e4m3fnuz_to_float>(data, elements, out);
    case DType::kFloat8E5M2FNUZ:
      return decode_fp8<fp8_e5m2fnuz_to_float>(data, elements, out);
    case DType::kFloat8E8M0FNU:
      return decode_fp8<fp8_e8m0fnu_to_float>(data, elements, out);
    case DType::kUInt8:
    case DType::kInt4Packed:
    case DType::kFloat4Packed:
      return decode_number<uint8_t>(data, elements, out);
    case DType::kComplex32:  // a Source hands out their parts
    case DType::kComplex64:
    case DType::kComplex128:
      return;
  }
}

bool needs_integer_differences(DType golden, DType actual) {
  const auto is_integer = [](DType dtype) { return info(dtype).kind == DTypeKind::kInteger; };
  return is_integer(golden) && is_integer(actual) &&
         (size_bytes(golden) == 8 || size_bytes(actual) == 8);
}

void integer_differences(DType golden_type, const void* golden, DType actual_type,
                         const void* actual, size_t elements, double* out) {
  const auto* g = static_cast<const std::byte*>(golden);
  const auto* m = static_cast<const std::byte*>(actual);
  for (size_t i = 0; i < elements; ++i)
    out[i] = static_cast<double>(integer_at(actual_type, m, i) - integer_at(golden_type, g, i));
}

}  // namespace ait::metrics
