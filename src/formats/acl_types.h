// The element types of the acceleration library: aclDataType, by which files and plug-ins name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace ait::formats {

struct AclType {
  int32_t code;
  std::string_view name;       // "bf16"
  std::optional<DType> dtype;  // nothing where ait knows its name only
};

// nullptr where there is no such code.
const AclType* find_acl_type(int64_t code);
// Nothing where the library has no such type.
std::optional<int32_t> acl_code(DType dtype);

}  // namespace ait::formats
