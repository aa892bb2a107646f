#include "atb/types.h"

#include <array>

namespace atb {
namespace {

struct TypeRow {
  DataType dtype;
  const char* name;
  size_t bytes;
};
constexpr std::array<TypeRow, 8> kTypes{{{DataType::kFloat, "float", 4},
                                         {DataType::kFloat16, "float16", 2},
                                         {DataType::kInt8, "int8", 1},
                                         {DataType::kInt32, "int32", 4},
                                         {DataType::kInt64, "int64", 8},
                                         {DataType::kUInt64, "uint64", 8},
                                         {DataType::kBool, "bool", 1},
                                         {DataType::kBf16, "bf16", 2}}};

const TypeRow& row(DataType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row;
  return kTypes[0];
}

}  // namespace

size_t element_bytes(DataType dtype) { return row(dtype).bytes; }
const char* data_type_name(DataType dtype) { return row(dtype).name; }
bool is_floating(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBf16;
}

bool data_type_from_code(int64_t code, DataType& dtype) {
  for (const TypeRow& row : kTypes)
    if (static_cast<int64_t>(row.dtype) == code) {
      dtype = row.dtype;
      return true;
    }
  return false;
}

std::string Dims::text() const {
  std::string text;
  for (size_t i = 0; i < count_; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(sizes_[i]);
  }
  return text;
}

}  // namespace atb
