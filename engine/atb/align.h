// Tensors in a workspace start on cache lines.
#pragma once

#include <cstdint>

namespace atb {

inline constexpr uint64_t kAlignmentBytes = 64;

inline uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace atb
