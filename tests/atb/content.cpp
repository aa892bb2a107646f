#include "content.h"

namespace atb {
namespace {

struct Type {
  int code;
  const char* name;
  uint64_t bytes;
  bool floating;
};

constexpr Type kTypes[] = {
    {0, "float", 4, true},    {1, "float16", 2, true}, {2, "int8", 1, false},
    {3, "int32", 4, false},   {4, "uint8", 1, false},  {6, "int16", 2, false},
    {7, "uint16", 2, false},  {8, "uint32", 4, false}, {9, "int64", 8, false},
    {10, "uint64", 8, false}, {11, "double", 8, true}, {27, "bf16", 2, true},
};

const Type* find_type(int code) {
  for (const Type& type : kTypes) {
    if (type.code == code) return &type;
  }
  return nullptr;
}

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001B3;
  }
  return hash;
}

uint64_t splitmix64(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

}  // namespace

uint64_t element_bytes(int dtype) {
  const Type* type = find_type(dtype);
  return type == nullptr ? 0 : type->bytes;
}

const char* dtype_name(int dtype) {
  const Type* type = find_type(dtype);
  return type == nullptr ? "undefined" : type->name;
}

const char* format_name(int format) {
  switch (format) {
    case 0:
      return "nchw";
    case 1:
      return "nhwc";
    case 2:
      return "nd";
    case 29:
      return "fractal_nz";
    default:
      return "undefined";
  }
}

std::vector<uint8_t> content(const std::string& key, uint64_t bytes, int dtype) {
  std::vector<uint8_t> data(bytes);
  uint64_t state = fnv1a(key);
  uint64_t word = 0;
  for (uint64_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) word = splitmix64(state);
    data[i] = static_cast<uint8_t>(word >> (8 * (i % 8)));
  }
  if (const Type* type = find_type(dtype); type != nullptr && type->floating) {
    for (uint64_t i = type->bytes - 1; i < bytes; i += type->bytes) data[i] &= 0xBF;
  }
  return data;
}

}  // namespace atb
