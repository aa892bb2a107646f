#include "base/checked.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace ait {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// The truth, in a type that cannot overflow here.
using Wide = unsigned __int128;

TEST(CheckedArithmetic, GivesTheProductUpToTheLargestNumber) {
  EXPECT_EQ(checked_mul(0, kMax), 0u);
  EXPECT_EQ(checked_mul(1, kMax), kMax);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), ((uint64_t{1} << 32) - 1)
                                                                         << 32);
}

TEST(CheckedArithmetic, SaysNothingWhereTheProductDoesNotFit) {
  EXPECT_EQ(checked_mul(2, kMax), std::nullopt);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
}

TEST(CheckedArithmetic, SaysNothingWhereTheSumDoesNotFit) {
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax, kMax), std::nullopt);
}

TEST(RangeFits, AcceptsTheWholeAndTheEmptyRangeAtTheEnd) {
  EXPECT_TRUE(range_fits(0, 10, 10));
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
  EXPECT_FALSE(range_fits(1, 10, 10));
}

TEST(RangeFits, IsNotFooledByARangeThatWrapsAround) {
  EXPECT_FALSE(range_fits(8, kMax, 10));
  EXPECT_FALSE(range_fits(kMax, 2, 10));
  EXPECT_FALSE(range_fits(kMax - 1, kMax - 1, kMax - 1));
}

RC_GTEST_PROP(CheckedArithmetic, AgreesWithWiderArithmetic,
              (uint64_t a, uint64_t b, uint8_t shift)) {
  a >>= shift % 64;  // so that both outcomes occur
  const Wide product = Wide{a} * b;
  const Wide sum = Wide{a} + b;
  RC_ASSERT(checked_mul(a, b).has_value() == (product <= kMax));
  RC_ASSERT(checked_add(a, b).has_value() == (sum <= kMax));
  if (product <= kMax) RC_ASSERT(*checked_mul(a, b) == product);
  if (sum <= kMax) RC_ASSERT(*checked_add(a, b) == sum);
}

RC_GTEST_PROP(RangeFits, AgreesWithWiderArithmetic,
              (uint64_t offset, uint64_t length, uint64_t size)) {
  RC_ASSERT(range_fits(offset, length, size) == (Wide{offset} + length <= size));
}

}  // namespace
}  // namespace ait
