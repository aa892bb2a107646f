// GE dump files by hand. tests/python/ge_files.py makes them with protobuf's own library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test_files.h"

namespace ait::formats::ge_builder {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}
inline std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
inline std::string text(uint32_t field, const std::string& value) {
  return varint((field << 3) | 2) + varint(value.size()) + value;
}

// A float32 tensor of `size` bytes; `size_field` is 5 of an input and 6 of an output.
inline std::string tensor(uint32_t size_field, uint64_t elements, uint64_t size,
                          uint64_t type = 1) {
  return number(1, type) + number(2, 2) + text(3, text(1, varint(elements))) +
         number(size_field, size);
}
inline std::string input(uint64_t elements, uint64_t size) {
  return text(4, tensor(5, elements, size));
}
inline std::string output(uint64_t elements, uint64_t size) {
  return text(3, tensor(6, elements, size));
}

inline const std::string kVersion = text(1, "2.0") + number(2, 1);

inline std::string dump(const std::string& header, const std::string& data) {
  return little_endian(header.size(), 8) + header + data;
}

// A file of float32 vectors, one for each list of values.
inline std::string whole_dump(const std::string& op_name,
                              const std::vector<std::vector<float>>& inputs,
                              const std::vector<std::vector<float>>& outputs) {
  std::string header = kVersion;
  std::string data;
  for (const auto& values : outputs) header += output(values.size(), 4 * values.size());
  for (const auto& values : inputs) header += input(values.size(), 4 * values.size());
  for (const auto& values : inputs) data += bytes_of(values);
  for (const auto& values : outputs) data += bytes_of(values);
  return dump(header + text(6, op_name), data);
}

}  // namespace ait::formats::ge_builder
