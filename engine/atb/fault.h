// Faults that can be planted into kernels, for demonstrations and for tests of whatever looks for
// them.
#pragma once

#include <cstdint>

namespace atb {

struct KernelFault {
  enum class Kind : uint8_t {
    kEpsilon,   // a norm adds `size` in place of its epsilon
    kOverflow,  // the result passes through fp16 scaled up by `size`: what exceeds 65504 is Inf
    kRow,       // the last row of the result is off by `size` times its root mean square
    kScale,     // the result is 1 + `size` times too large
  };
  Kind kind = Kind::kScale;
  float size = 0;
};

}  // namespace atb
