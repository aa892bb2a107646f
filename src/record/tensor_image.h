// What the writing side knows of a tensor: a description and the bytes, nothing owned.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ait::record {

// The element types that can be written; formats/ maps DType to these one to one.
enum class ElementType : uint8_t {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kComplex32,
  kComplex64,
  kComplex128,
  kInt4Packed,
  kFloat4Packed,
};

// A row-major tensor without gaps, little-endian, in memory.
struct TensorImage {
  ElementType type;
  const int64_t* dims;
  size_t rank;
  const void* data;
  size_t bytes;
};

}  // namespace ait::record
