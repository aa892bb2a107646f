// What the stand-in's tensors contain: tests/e2e/atb_host.py computes the same with NumPy.
//
// The key says whose memory it is and when: "{device}_{pid}/{round}/{operation path}|{when}|in0".
// Its 64-bit FNV-1a hash is the seed; the 64-bit little-endian words of the data are splitmix64's
// output for that seed. In floating-point types the exponent's highest bit is cleared, which leaves
// finite numbers below 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atb {

// 0 for codes that the stand-in does not know.
uint64_t element_bytes(int dtype);

const char* dtype_name(int dtype);
const char* format_name(int format);

std::vector<uint8_t> content(const std::string& key, uint64_t bytes, int dtype);

}  // namespace atb
