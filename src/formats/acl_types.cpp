#include "formats/acl_types.h"

#include <algorithm>
#include <array>

namespace ait::formats {
namespace {

constexpr std::array kTypes = {
    AclType{-1, "undefined", {}},
    AclType{0, "float", DType::kFloat32},
    AclType{1, "float16", DType::kFloat16},
    AclType{2, "int8", DType::kInt8},
    AclType{3, "int32", DType::kInt32},
    AclType{4, "uint8", DType::kUInt8},
    AclType{6, "int16", DType::kInt16},
    AclType{7, "uint16", DType::kUInt16},
    AclType{8, "uint32", DType::kUInt32},
    AclType{9, "int64", DType::kInt64},
    AclType{10, "uint64", DType::kUInt64},
    AclType{11, "double", DType::kFloat64},
    AclType{12, "bool", DType::kBool},
    AclType{13, "string", {}},
    AclType{16, "complex64", DType::kComplex64},
    AclType{17, "complex128", DType::kComplex128},
    AclType{27, "bf16", DType::kBFloat16},
    AclType{29, "int4", DType::kInt4Packed},
    AclType{30, "uint1", {}},
    AclType{33, "complex32", DType::kComplex32},
    AclType{34, "hifloat8", {}},
    AclType{35, "float8_e5m2", DType::kFloat8E5M2},
    AclType{36, "float8_e4m3fn", DType::kFloat8E4M3FN},
    AclType{37, "float8_e8m0", DType::kFloat8E8M0FNU},
    AclType{38, "float6_e3m2", {}},
    AclType{39, "float6_e2m3", {}},
    AclType{40, "float4_e2m1", {}},
    AclType{41, "float4_e1m2", {}},
};

}  // namespace

const AclType* find_acl_type(int64_t code) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const AclType& type) { return type.code == code; });
  return found == kTypes.end() ? nullptr : found;
}

std::optional<int32_t> acl_code(DType dtype) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const AclType& type) { return type.dtype == dtype; });
  if (found == kTypes.end()) return std::nullopt;
  return found->code;
}

}  // namespace ait::formats
