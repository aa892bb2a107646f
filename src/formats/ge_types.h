// What the numbers in a GE dump mean: element types and formats, as CANN numbers them in the enums
// OutputDataType and OutputFormat. Never renumber.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace ait::formats::ge_dump {

// How the bytes of a type become elements that ait knows.
enum class Coding : uint8_t {
  kPlain,      // as they are
  kTwoInByte,  // two values share a byte, and an element of ait's is the byte
  kBits,       // eight values share a byte, the first in the top bit; unpacked to uint8
  kHiFloat8,   // made float32
  kUnknown,    // the size of the tensor says how many bytes there are, and they are int8
};

struct ElementType {
  int64_t number;
  std::string_view name;                      // "DT_FLOAT16"
  std::optional<DType> dtype = std::nullopt;  // nothing: ait does not read it
  Coding coding = Coding::kPlain;
};

const ElementType* find_element_type(int64_t number);  // nullptr: CANN has no such number

// Formats whose elements lie in another order than the logical shape says, and the order is known.
enum class Order : uint8_t {
  kPlain,  // as the shape says: ND, NCHW and whatever has no blocks
  kNhwc,
  kHwcn,
  kFractalNz,    // (…, C1, No, Ni, C0)
  kNc1hwc0,      // (N, C1, H, W, C0)
  kFractalZ,     // (C1·H·W, No, Ni, C0)
  kNdc1hwc0,     // (N, D, C1, H, W, C0)
  kOtherBlocks,  // in blocks of some kind that is not converted
};

struct Format {
  int64_t number;
  std::string_view name;  // "FRACTAL_NZ"
  Order order = Order::kPlain;
};

// A number that CANN does not have is a plain format without a name.
const Format& find_format(int64_t number);

// Bit 7 is the sign. A prefix of two to four bits says how many bits of exponent follow (4, 3, 2, 1
// or 0), whose first is the exponent's sign and whose others follow an implicit one; the rest is the
// mantissa. Exact.
float hifloat8_to_float(uint8_t bits);

}  // namespace ait::formats::ge_dump
