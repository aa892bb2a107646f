#include "tensor/dtype.h"

#include <array>
#include <utility>

namespace ait {
namespace {

using enum DTypeKind;

constexpr std::array<DTypeInfo, kDTypeCount> kInfos = {{
    {"bool", 1, kInteger},
    {"int8", 1, kInteger},
    {"uint8", 1, kInteger},
    {"int16", 2, kInteger},
    {"uint16", 2, kInteger},
    {"int32", 4, kInteger},
    {"uint32", 4, kInteger},
    {"int64", 8, kInteger},
    {"uint64", 8, kInteger},
    {"float16", 2, kFloat},
    {"bfloat16", 2, kFloat},
    {"float32", 4, kFloat},
    {"float64", 8, kFloat},
    {"float8_e4m3fn", 1, kFloat},
    {"float8_e5m2", 1, kFloat},
    {"float8_e4m3fnuz", 1, kFloat},
    {"float8_e5m2fnuz", 1, kFloat},
    {"float8_e8m0fnu", 1, kFloat},
    {"complex32", 4, kComplex},
    {"complex64", 8, kComplex},
    {"complex128", 16, kComplex},
    {"int4", 1, kPacked},
    {"float4_e2m1fn_x2", 1, kPacked},
}};

constexpr std::pair<std::string_view, DType> kAliases[] = {
    {"b1", DType::kBool},           {"?", DType::kBool},
    {"i1", DType::kInt8},           {"u1", DType::kUInt8},
    {"byte", DType::kUInt8},        {"i2", DType::kInt16},
    {"short", DType::kInt16},       {"u2", DType::kUInt16},
    {"i4", DType::kInt32},          {"int", DType::kInt32},
    {"u4", DType::kUInt32},         {"i8", DType::kInt64},
    {"long", DType::kInt64},        {"u8", DType::kUInt64},
    {"f2", DType::kFloat16},        {"fp16", DType::kFloat16},
    {"half", DType::kFloat16},      {"bf16", DType::kBFloat16},
    {"f4", DType::kFloat32},        {"fp32", DType::kFloat32},
    {"float", DType::kFloat32},     {"f8", DType::kFloat64},
    {"fp64", DType::kFloat64},      {"double", DType::kFloat64},
    {"e4m3", DType::kFloat8E4M3FN}, {"fp8_e4m3", DType::kFloat8E4M3FN},
    {"e5m2", DType::kFloat8E5M2},   {"fp8_e5m2", DType::kFloat8E5M2},
    {"c8", DType::kComplex64},      {"c16", DType::kComplex128},
};

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (kInfos[i].name == text) return static_cast<DType>(i);
  for (const auto& [alias, dtype] : kAliases)
    if (alias == text) return dtype;
  return std::nullopt;
}

}  // namespace ait
