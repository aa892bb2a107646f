#include "formats/ge_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ait::formats::ge_dump {
namespace {

constexpr auto kTypes = std::to_array<ElementType>({
    {0, "DT_UNDEFINED", DType::kInt8, Coding::kUnknown},
    {1, "DT_FLOAT", DType::kFloat32},
    {2, "DT_FLOAT16", DType::kFloat16},
    {3, "DT_INT8", DType::kInt8},
    {4, "DT_UINT8", DType::kUInt8},
    {5, "DT_INT16", DType::kInt16},
    {6, "DT_UINT16", DType::kUInt16},
    {7, "DT_INT32", DType::kInt32},
    {8, "DT_INT64", DType::kInt64},
    {9, "DT_UINT32", DType::kUInt32},
    {10, "DT_UINT64", DType::kUInt64},
    {11, "DT_BOOL", DType::kBool},
    {12, "DT_DOUBLE", DType::kFloat64},
    {13, "DT_STRING"},
    {14, "DT_DUAL_SUB_INT8"},
    {15, "DT_DUAL_SUB_UINT8"},
    {16, "DT_COMPLEX64", DType::kComplex64},
    {17, "DT_COMPLEX128", DType::kComplex128},
    {18, "DT_QINT8", DType::kInt8},
    {19, "DT_QINT16", DType::kInt16},
    {20, "DT_QINT32", DType::kInt32},
    {21, "DT_QUINT8", DType::kUInt8},
    {22, "DT_QUINT16", DType::kUInt16},
    {23, "DT_RESOURCE", DType::kInt64},
    {24, "DT_STRING_REF"},
    {25, "DT_DUAL"},
    {26, "DT_VARIANT"},
    {27, "DT_BF16", DType::kBFloat16},
    {28, "DT_INT4", DType::kInt4Packed, Coding::kTwoInByte},
    {29, "DT_UINT1", DType::kUInt8, Coding::kBits},
    {30, "DT_INT2"},
    {31, "DT_UINT2"},
    {32, "DT_COMPLEX32", DType::kComplex32},
    {33, "DT_HIFLOAT8", DType::kFloat32, Coding::kHiFloat8},
    {34, "DT_FLOAT8_E5M2", DType::kFloat8E5M2},
    {35, "DT_FLOAT8_E4M3FN", DType::kFloat8E4M3FN},
    {36, "DT_FLOAT8_E8M0", DType::kFloat8E8M0FNU},
    {37, "DT_FLOAT6_E3M2"},
    {38, "DT_FLOAT6_E2M3"},
    {39, "DT_FLOAT4_E2M1", DType::kFloat4Packed, Coding::kTwoInByte},
    {40, "DT_FLOAT4_E1M2"},
});

constexpr auto kFormats = std::to_array<Format>({
    {0, "NCHW"},
    {1, "NHWC", Order::kNhwc},
    {2, "ND"},
    {3, "NC1HWC0", Order::kNc1hwc0},
    {4, "FRACTAL_Z", Order::kFractalZ},
    {5, "NC1C0HWPAD", Order::kOtherBlocks},
    {6, "NHWC1C0", Order::kOtherBlocks},
    {7, "FSR_NCHW", Order::kOtherBlocks},
    {8, "FRACTAL_DECONV", Order::kOtherBlocks},
    {9, "C1HWNC0", Order::kOtherBlocks},
    {10, "FRACTAL_DECONV_TRANSPOSE", Order::kOtherBlocks},
    {11, "FRACTAL_DECONV_SP_STRIDE_TRANS", Order::kOtherBlocks},
    {12, "NC1HWC0_C04", Order::kNc1hwc0},
    {13, "FRACTAL_Z_C04", Order::kOtherBlocks},
    {14, "CHWN"},
    {15, "FRACTAL_DECONV_SP_STRIDE8_TRANS", Order::kOtherBlocks},
    {16, "HWCN", Order::kHwcn},
    {17, "NC1KHKWHWC0", Order::kOtherBlocks},
    {18, "BN_WEIGHT"},
    {19, "FILTER_HWCK"},
    {20, "HASHTABLE_LOOKUP_LOOKUPS"},
    {21, "HASHTABLE_LOOKUP_KEYS"},
    {22, "HASHTABLE_LOOKUP_VALUE"},
    {23, "HASHTABLE_LOOKUP_OUTPUT"},
    {24, "HASHTABLE_LOOKUP_HITS"},
    {25, "C1HWNCoC0", Order::kOtherBlocks},
    {26, "MD"},
    {27, "NDHWC"},
    {28, "FRACTAL_ZZ", Order::kOtherBlocks},
    {29, "FRACTAL_NZ", Order::kFractalNz},
    {30, "NCDHW"},
    {31, "DHWCN"},
    {32, "NDC1HWC0", Order::kNdc1hwc0},
    {33, "FRACTAL_Z_3D", Order::kOtherBlocks},
    {34, "CN"},
    {35, "NC"},
    {36, "DHWNC"},
    {37, "FRACTAL_Z_3D_TRANSPOSE", Order::kOtherBlocks},
    {38, "FRACTAL_ZN_LSTM", Order::kOtherBlocks},
    {39, "FRACTAL_Z_G", Order::kOtherBlocks},
    {40, "RESERVED"},
    {41, "ALL"},
    {42, "NULL"},
    {43, "ND_RNN_BIAS", Order::kOtherBlocks},
    {44, "FRACTAL_ZN_RNN", Order::kOtherBlocks},
    {45, "YUV"},
    {46, "YUV_A"},
    {47, "NCL"},
    {48, "FRACTAL_Z_WINO", Order::kOtherBlocks},
    {49, "C1HWC0", Order::kOtherBlocks},
});
constexpr Format kUnknownFormat = {-1, ""};

// Both tables are sorted by number without a gap.
template <typename Table>
auto find_in(const Table& table, int64_t number) {
  return number >= 0 && static_cast<size_t>(number) < table.size()
             ? &table[static_cast<size_t>(number)]
             : nullptr;
}

template <typename Table>
constexpr bool is_numbered(const Table& table) {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].number != static_cast<int64_t>(i)) return false;
  return true;
}
static_assert(is_numbered(kTypes) && is_numbered(kFormats));

}  // namespace

const ElementType* find_element_type(int64_t number) { return find_in(kTypes, number); }

const Format& find_format(int64_t number) {
  const Format* found = find_in(kFormats, number);
  return found != nullptr ? *found : kUnknownFormat;
}

float hifloat8_to_float(uint8_t bits) {
  constexpr uint8_t kNaN = 0x80;
  constexpr uint8_t kInfinity = 0x6f;
  if (bits == kNaN) return std::numeric_limits<float>::quiet_NaN();
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  const unsigned rest = bits & 0x7fU;
  if (rest == 0) return 0;
  if (rest == kInfinity) return sign * std::numeric_limits<float>::infinity();

  // Bits of the exponent, and of the mantissa after it, by the prefix.
  int exponent_bits = 0;
  int mantissa_bits = 3;
  if ((rest >> 5) == 3U) {
    exponent_bits = 4;
    mantissa_bits = 1;
  } else if ((rest >> 5) == 2U) {
    exponent_bits = 3;
    mantissa_bits = 2;
  } else if ((rest >> 5) == 1U) {
    exponent_bits = 2;
  } else if ((rest >> 4) == 1U) {
    exponent_bits = 1;
  } else if ((rest >> 3) == 0U) {
    return sign * std::ldexp(1.0F, static_cast<int>(rest) - 23);
  }
  const unsigned mantissa = rest & ((1U << mantissa_bits) - 1);
  int exponent = 0;
  if (exponent_bits > 0) {
    const unsigned field = (rest >> mantissa_bits) & ((1U << exponent_bits) - 1);
    const unsigned top = 1U << (exponent_bits - 1);
    const int magnitude = static_cast<int>(top | (field & (top - 1)));
    exponent = (field & top) != 0 ? -magnitude : magnitude;
  }
  const float fraction = 1 + std::ldexp(static_cast<float>(mantissa), -mantissa_bits);
  return sign * std::ldexp(fraction, exponent);
}

}  // namespace ait::formats::ge_dump
