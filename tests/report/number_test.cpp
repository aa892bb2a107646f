#include "report/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace ait::report {
namespace {

TEST(NumberText, SpellsAsPythonDoes) {
  EXPECT_EQ(number_text(3), "3.0");
  EXPECT_EQ(number_text(0), "0.0");
  EXPECT_EQ(number_text(-0.0), "-0.0");
  EXPECT_EQ(number_text(-7.5), "-7.5");
  EXPECT_EQ(number_text(1e-5), "1e-05");
  EXPECT_EQ(number_text(1.5e-5), "1.5e-05");
  EXPECT_EQ(number_text(1e-4), "0.0001");
  EXPECT_EQ(number_text(0x1p-13), "0.00012207031");
  EXPECT_EQ(number_text(1e15), "1000000000000000.0");
  EXPECT_EQ(number_text(1e16), "1e+16");
  EXPECT_EQ(number_text(123456), "123456.0");
}

TEST(NumberText, GivesTheFloat32BackWithFewestDigits) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1.0 / 3), "0.33333334");
  std::mt19937 random(7);
  std::uniform_int_distribution<uint32_t> bits;
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<float>(bits(random));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtof(number_text(double{value}).c_str(), nullptr), value);
  }
}

TEST(NumberText, NamesWhatIsNotFinite) {
  EXPECT_EQ(number_text(std::nan("")), "nan");
  EXPECT_EQ(number_text(INFINITY), "inf");
  EXPECT_EQ(number_text(-INFINITY), "-inf");
  EXPECT_EQ(ten_decimals_text(std::nan("")), "nan");
}

TEST(NumberText, NeverInventsAnInfinityOrAZero) {
  EXPECT_EQ(number_text(1e39), "1e+39");
  EXPECT_EQ(number_text(-1e300), "-1e+300");
  EXPECT_EQ(number_text(1e-60), "1e-60");
}

TEST(DoubleText, GivesTheDoubleBack) {
  EXPECT_EQ(double_text(0.1), "0.1");
  EXPECT_EQ(double_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(double_text(double{0.1F}), "0.10000000149011612");
  EXPECT_EQ(double_text(std::numeric_limits<double>::denorm_min()), "5e-324");
}

TEST(TenDecimalsText, RoundsAndDropsTrailingZeros) {
  EXPECT_EQ(ten_decimals_text(1), "1.0");
  EXPECT_EQ(ten_decimals_text(0.99999627484321), "0.9999962748");
  EXPECT_EQ(ten_decimals_text(0.999999999999), "1.0");
  EXPECT_EQ(ten_decimals_text(-0.5), "-0.5");
  EXPECT_EQ(ten_decimals_text(1e-7), "1e-07");
}

}  // namespace
}  // namespace ait::report
