// The element types of GGUF: how many elements a block has, in how many bytes, and what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace ait::formats::gguf {

struct BlockType {
  uint32_t number;
  std::string_view name;       // "Q4_K"
  size_t elements = 1;         // of a block
  size_t bytes = 0;            // of a block
  std::optional<DType> plain;  // of a type that is not quantised
  // Decodes one block; nullptr where ait does not.
  void (*decode)(std::span<const std::byte> block, float* out) = nullptr;

  bool is_read() const { return plain.has_value() || decode != nullptr; }
};

// nullptr for a number that no type has.
const BlockType* find_type(uint32_t number);

}  // namespace ait::formats::gguf
