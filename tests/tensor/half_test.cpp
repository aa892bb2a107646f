#include "tensor/half.h"

#include <Imath/half.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace ait {
namespace {

constexpr uint32_t kEveryHalf = 65536;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
bool is_nan_half(uint16_t bits) { return (bits & 0x7fffu) > 0x7c00u; }

TEST(Fp16, EveryPatternWidensAsImathSays) {
  for (uint32_t i = 0; i < kEveryHalf; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    Imath::half oracle;
    oracle.setBits(bits);
    const float expected = oracle;
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(fp16_to_float(bits))) << i;
    else
      ASSERT_EQ(bits_of(fp16_to_float(bits)), bits_of(expected)) << i;
  }
}

TEST(Fp16, EveryPatternSurvivesTheWayThereAndBack) {
  for (uint32_t i = 0; i < kEveryHalf; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const uint16_t back = float_to_fp16(fp16_to_float(bits));
    if (is_nan_half(bits))
      ASSERT_TRUE(is_nan_half(back)) << i;
    else
      ASSERT_EQ(back, bits);
  }
}

void expect_as_imath(float value) {
  const uint16_t expected = Imath::half(value).bits();
  const uint16_t actual = float_to_fp16(value);
  if (is_nan_half(expected))
    ASSERT_TRUE(is_nan_half(actual)) << value;
  else
    ASSERT_EQ(actual, expected) << std::hexfloat << value;
}

TEST(Fp16, RoundsRandomFloatsAsImathDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i)
    expect_as_imath(std::bit_cast<float>(static_cast<uint32_t>(random())));
}

// Uniform bit patterns seldom fall into half's narrow range, and almost never on a tie.
TEST(Fp16, RoundsEveryMidpointAndItsNeighboursAsImathDoes) {
  for (uint32_t i = 0; i < 0x7c00u; ++i) {
    const float low = fp16_to_float(static_cast<uint16_t>(i));
    const float high = i + 1 == 0x7c00u ? 65536.0f : fp16_to_float(static_cast<uint16_t>(i + 1));
    const float middle = low + (high - low) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)}) {
      expect_as_imath(value);
      expect_as_imath(-value);
    }
  }
}

TEST(Fp16, KeepsZeroInfinityAndNaN) {
  EXPECT_EQ(float_to_fp16(0.0f), 0x0000u);
  EXPECT_EQ(float_to_fp16(-0.0f), 0x8000u);
  EXPECT_EQ(float_to_fp16(kInf), 0x7c00u);
  EXPECT_EQ(float_to_fp16(-kInf), 0xfc00u);
  EXPECT_TRUE(is_nan_half(float_to_fp16(kNaN)));
}

// bfloat16 is the upper half of a float: that is its whole definition.
TEST(Bf16, EveryPatternIsTheUpperHalfOfAFloat) {
  for (uint32_t i = 0; i < kEveryHalf; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    ASSERT_EQ(bits_of(bf16_to_float(bits)), i << 16);
    const uint16_t back = float_to_bf16(bf16_to_float(bits));
    if (std::isnan(bf16_to_float(bits)))
      ASSERT_TRUE(std::isnan(bf16_to_float(back))) << i;
    else
      ASSERT_EQ(back, bits);
  }
}

// The neighbour that is nearer in double arithmetic; between two equally near ones, the even.
uint16_t nearest_bf16(float value) {
  const auto low = static_cast<uint16_t>(bits_of(value) >> 16);
  const auto high = static_cast<uint16_t>(low + 1);
  const double below = std::fabs(double{value} - double{bf16_to_float(low)});
  // Past the largest finite number the spacing goes on as if there were another one.
  const bool overflows = (high & 0x7fffu) == 0x7f80u;
  const double next =
      overflows ? std::copysign(0x1p128, double{value}) : double{bf16_to_float(high)};
  const double above = std::fabs(next - double{value});
  if (below != above) return below < above ? low : high;
  return (low & 1u) == 0 ? low : high;
}

TEST(Bf16, RoundsRandomFloatsToTheNearestEven) {
  std::mt19937 random(2);
  for (int i = 0; i < 1'000'000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // a tie
    const auto value = std::bit_cast<float>(bits);
    if (std::isinf(value)) continue;
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value))));
    else
      ASSERT_EQ(float_to_bf16(value), nearest_bf16(value)) << std::hex << bits;
  }
}

TEST(Bf16, ANaNWhoseUpperHalfIsEmptyStaysNaN) {
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0xff800001u)))));
}

const std::map<std::string, float (*)(uint8_t)> kDecoders = {
    {"e4m3fn", fp8_e4m3fn_to_float},     {"e5m2", fp8_e5m2_to_float},
    {"e4m3fnuz", fp8_e4m3fnuz_to_float}, {"e5m2fnuz", fp8_e5m2fnuz_to_float},
    {"e8m0fnu", fp8_e8m0fnu_to_float},
};
const std::map<std::string, uint8_t (*)(float)> kEncoders = {
    {"e4m3fn", float_to_fp8_e4m3fn},
    {"e5m2", float_to_fp8_e5m2},
};

// The tables come from ml_dtypes and torch; see make_fp8_tables.py.
TEST(Fp8, AgreesWithMlDtypesOnEveryByteAndEveryRounding) {
  std::ifstream tables(AIT_TEST_DATA "/fp8_tables.txt");
  ASSERT_TRUE(tables.is_open());
  std::map<std::string, int> decoded;
  std::map<std::string, int> encoded;
  std::string what;
  std::string type;
  uint32_t from = 0;
  uint32_t to = 0;
  while (tables >> what >> type >> std::hex >> from >> to) {
    if (what == "decode") {
      const float value = kDecoders.at(type)(static_cast<uint8_t>(from));
      ASSERT_EQ(std::isnan(value) ? bits_of(kNaN) : bits_of(value), to) << type << " byte " << from;
      ++decoded[type];
    } else {
      const auto value = std::bit_cast<float>(from);
      const uint8_t byte = kEncoders.at(type)(value);
      if (std::isnan(kDecoders.at(type)(static_cast<uint8_t>(to))))
        ASSERT_TRUE(std::isnan(kDecoders.at(type)(byte))) << type << " of " << value;
      else
        ASSERT_EQ(byte, to) << type << " of " << value;
      ++encoded[type];
    }
  }
  for (const auto& [name, decoder] : kDecoders) EXPECT_EQ(decoded[name], 256) << name;
  for (const auto& [name, encoder] : kEncoders) EXPECT_GT(encoded[name], 900) << name;
}

}  // namespace
}  // namespace ait
