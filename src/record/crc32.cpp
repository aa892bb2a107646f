#include "record/crc32.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace ait::record {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // bit i is the coefficient of x^(31-i)
constexpr size_t kSlices = 8;

// entry[s][b]: the checksum of byte b followed by s zero bytes.
struct Tables {
  uint32_t entry[kSlices][256];
};

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    tables.entry[0][byte] = remainder;
  }
  for (size_t slice = 1; slice < kSlices; ++slice)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables.entry[slice - 1][byte];
      tables.entry[slice][byte] = (before >> 8) ^ tables.entry[0][before & 0xff];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

// Eight bytes a step. Takes and returns the register, not the checksum (its complement).
uint32_t update_by_tables(uint32_t state, const uint8_t* data, size_t bytes) {
  const auto& entry = kTables.entry;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    uint32_t low;
    uint32_t high;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + 4, 4);
    low ^= state;
    state = entry[7][low & 0xff] ^ entry[6][(low >> 8) & 0xff] ^ entry[5][(low >> 16) & 0xff] ^
            entry[4][low >> 24] ^ entry[3][high & 0xff] ^ entry[2][(high >> 8) & 0xff] ^
            entry[1][(high >> 16) & 0xff] ^ entry[0][high >> 24];
  }
  for (; bytes > 0; ++data, --bytes) state = (state >> 8) ^ entry[0][(state ^ *data) & 0xff];
  return state;
}

#if defined(__x86_64__)

// x^n mod P as a multiplier for folding. A carry-less product of two reflected numbers comes out
// one bit short, hence the shift.
constexpr long long fold_constant(unsigned n) {
  uint32_t power = 0x80000000;  // x^0
  for (unsigned i = 0; i < n; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  return static_cast<long long>(power) << 1;
}
// As printed in Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ"
// (2009).
static_assert(fold_constant(4 * 128 + 32) == 0x154442bd4);
static_assert(fold_constant(4 * 128 - 32) == 0x1c6e41596);

constexpr size_t kFoldMinimumBytes = 128;

// Moves 128 bits of message `distance` bits on (which is what the constants encode) and adds what
// lies there.
__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i lane, __m128i constants,
                                                             __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

inline __m128i load128(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

__attribute__((target("pclmul,sse4.1"))) uint32_t update_by_folding(uint32_t state,
                                                                    const uint8_t* data,
                                                                    size_t bytes) {
  const __m128i by_64_bytes =
      _mm_set_epi64x(fold_constant(4 * 128 - 32), fold_constant(4 * 128 + 32));
  const __m128i by_16_bytes = _mm_set_epi64x(fold_constant(128 - 32), fold_constant(128 + 32));
  // Four lanes hide the latency of the multiplier.
  __m128i lane0 = _mm_xor_si128(load128(data), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i lane1 = load128(data + 16);
  __m128i lane2 = load128(data + 32);
  __m128i lane3 = load128(data + 48);
  data += 64;
  bytes -= 64;
  for (; bytes >= 64; data += 64, bytes -= 64) {
    lane0 = fold(lane0, by_64_bytes, load128(data));
    lane1 = fold(lane1, by_64_bytes, load128(data + 16));
    lane2 = fold(lane2, by_64_bytes, load128(data + 32));
    lane3 = fold(lane3, by_64_bytes, load128(data + 48));
  }
  __m128i rest = fold(lane0, by_16_bytes, lane1);
  rest = fold(rest, by_16_bytes, lane2);
  rest = fold(rest, by_16_bytes, lane3);
  for (; bytes >= 16; data += 16, bytes -= 16) rest = fold(rest, by_16_bytes, load128(data));
  // What is left has the same remainder as the whole message: the tables finish it.
  uint8_t last[16];
  std::memcpy(last, &rest, sizeof last);
  return update_by_tables(update_by_tables(0, last, sizeof last), data, bytes);
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) uint32_t update_by_instruction(uint32_t state, const uint8_t* data,
                                                               size_t bytes) {
  for (; bytes >= 8; data += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    state = __crc32d(state, word);
  }
  for (; bytes > 0; ++data, --bytes) state = __crc32b(state, *data);
  return state;
}

#endif

}  // namespace

uint32_t detail::crc32_by_tables(const void* data, size_t bytes, uint32_t previous) {
  return ~update_by_tables(~previous, static_cast<const uint8_t*>(data), bytes);
}

uint32_t crc32(const void* data, size_t bytes, uint32_t previous) {
#if defined(__x86_64__)
  if (bytes >= kFoldMinimumBytes && __builtin_cpu_supports("pclmul") &&
      __builtin_cpu_supports("sse4.1"))
    return ~update_by_folding(~previous, static_cast<const uint8_t*>(data), bytes);
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_CRC32) != 0)
    return ~update_by_instruction(~previous, static_cast<const uint8_t*>(data), bytes);
#endif
  return detail::crc32_by_tables(data, bytes, previous);
}

}  // namespace ait::record
