// The element types that ait reads, compares and writes.
//
// A new type is a value of DType and kDTypeCount, its line in dtype.cpp, the same value at the same
// place of record::ElementType (formats/write.cpp asserts that the two run in step) with its size
// in record/file_image.cpp, how metrics/decode.cpp makes it a double, and its code in each format
// that has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ait {

// Internal only: files carry their own codes (see formats/), so the order may change.
enum class DType : uint8_t {
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
  kInt4Packed,    // two values a byte, low nibble first; one element of ait's is one such byte
  kFloat4Packed,  // two e2m1 values a byte, likewise
};
inline constexpr size_t kDTypeCount = 23;

enum class DTypeKind : uint8_t { kInteger, kFloat, kComplex, kPacked };

struct DTypeInfo {
  std::string_view name;  // torch's word without "torch.": "float16"
  size_t bytes;           // of one element
  DTypeKind kind;
};

const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) { return info(dtype).name; }
inline size_t size_bytes(DType dtype) { return info(dtype).bytes; }

// Accepts torch's and numpy's names and the usual short ones: "float16", "half", "fp16", "f2",
// "torch.float16".
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace ait
