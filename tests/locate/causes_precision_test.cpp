#include <gtest/gtest.h>

#include <limits>

#include "planted.h"

namespace ait::locate {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double through(DType type, double value) {
  const auto x = static_cast<float>(value);
  switch (type) {
    case DType::kFloat16:
      return static_cast<double>(fp16_to_float(float_to_fp16(x)));
    case DType::kBFloat16:
      return static_cast<double>(bf16_to_float(float_to_bf16(x)));
    case DType::kFloat8E5M2:
      return static_cast<double>(fp8_e5m2_to_float(float_to_fp8_e5m2(x)));
    default:
      return static_cast<double>(fp8_e4m3fn_to_float(float_to_fp8_e4m3fn(x)));
  }
}

TEST(PrecisionCauses, FindACastToANarrowerType) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(2, 20);
    const size_t columns = planter.among({64, 100});
    const Numbers right = planter.normals(rows * columns);
    std::vector<DType> types = {DType::kFloat8E4M3FN, DType::kFloat8E5M2};
    if (actual.unit < 1e-5) types.insert(types.end(), {DType::kFloat16, DType::kBFloat16});
    const DType type = types[planter.between(0, types.size() - 1)];
    Numbers wrong = planter.with_noise(right, actual);
    for (double& value : wrong) value = through(type, value);
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), Planter::tensor(wrong, shape, actual)},
            "precision"};
  });
}

TEST(PrecisionCauses, FindQuantisationWithAScale) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(2, 20);
    const size_t columns = planter.among({64, 128, 256});
    const Numbers right = planter.normals(rows * columns);
    const Numbers noisy = planter.with_noise(right, actual);
    const size_t grain = planter.between(0, 2);
    const size_t group = grain == 0 ? right.size() : grain == 1 ? columns : 64;
    // int8 is no coarser than bf16 for most values.
    const double levels = actual.unit < 1e-3 && planter.between(0, 1) == 0 ? 127 : 7;
    Numbers wrong;
    for (size_t k = 0; k < right.size(); ++k) {
      double largest = 0;
      for (size_t j = k / group * group; j < k / group * group + group; ++j)
        largest = std::max(largest, std::abs(noisy[j]));
      wrong.push_back(std::round(noisy[k] / largest * levels) * largest / levels);
    }
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), Planter::tensor(wrong, shape, actual)},
            "precision"};
  });
}

// The product was computed in a narrow type and widened: no rounding of golden gives it.
TEST(PrecisionCauses, FindValuesThatAreAllNumbersOfANarrowerType) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Planter planter(seed);
    const Numbers right = planter.normals(12 * 64);
    const DType type = seed % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
    const double unit = type == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    Numbers wrong;
    for (const double value : right)
      wrong.push_back(through(type, value + unit * planter.normal()));
    CauseCase fault{Planter::tensor(right, {12, 64}, kFp32),
                    Planter::tensor(wrong, {12, 64}, kFp32)};
    fault.kind = capture::OpKind::kLinear;
    const auto causes = likely_causes(fault);
    ASSERT_TRUE(is_among_first_two(causes, "precision"));
    EXPECT_NE(causes[0].text.find(std::string(name(type)) + " numbers"), std::string::npos)
        << names(causes);
  }
}

TEST(PrecisionCauses, GuessASumInANarrowTypeFromErrorsLikeRounding) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Planter planter(seed);
    const size_t inner = 256;
    const size_t rows = 8;
    const size_t columns = 64;
    const Numbers x = planter.normals(rows * inner);
    const Numbers w = planter.normals(columns * inner);
    Numbers right;
    Numbers wrong;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        double sum = 0;
        double narrow = 0;
        for (size_t k = 0; k < inner; ++k) {
          sum += x[r * inner + k] * w[c * inner + k];
          narrow = through(DType::kBFloat16, narrow + x[r * inner + k] * w[c * inner + k]);
        }
        right.push_back(sum);
        wrong.push_back(narrow);
      }
    CauseCase fault{planter.stored(right, {8, 64}, kBf16), Planter::tensor(wrong, {8, 64}, kBf16)};
    fault.kind = capture::OpKind::kLinear;
    fault.noise = 0x1p-8;
    EXPECT_TRUE(is_among_first_two(likely_causes(fault), "accumulation")) << seed;
  }
}

TEST(PrecisionCauses, FindClampedValues) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 20);
    const size_t columns = planter.among({64, 100});
    const double scale = planter.between(0, 1) == 0 ? 1 : 250;
    const double limit = scale == 1 ? 1.7 : 448;
    const Numbers right = planter.normals(rows * columns, scale);
    Numbers wrong = planter.with_noise(right, actual);
    for (double& value : wrong) value = std::clamp(value, -limit, limit);
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), Planter::tensor(wrong, shape, actual)},
            "saturation"};
  });
}

TEST(PrecisionCauses, FindSmallValuesThatBecameZero) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(2, 20);
    const size_t columns = planter.among({64, 100});
    const Numbers right = planter.normals(rows * columns, 1e-4);
    Numbers wrong = right;
    for (double& value : wrong) value = std::abs(value) < 6.1e-5 ? 0 : value;
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "flush-to-zero"};
  });
}

TEST(PrecisionCauses, FindAnOverflow) {
  for (const RunType actual : {kFp32, kFp16, kBf16}) {
    Planter planter(3);
    const Numbers right = planter.normals(20 * 64, 3e4);
    Numbers wrong = right;
    for (double& value : wrong)
      if (std::abs(value) > 65504) value = std::copysign(kInf, value);
    CauseCase fault{Planter::tensor(right, {20, 64}, kFp32),
                    Planter::tensor(wrong, {20, 64}, actual)};
    auto causes = likely_causes(fault);
    ASSERT_FALSE(causes.empty());
    EXPECT_EQ(causes[0].name, "overflow");
    EXPECT_NE(causes[0].text.find("beyond the 65504 of float16"), std::string::npos)
        << causes[0].text;
    // A single NaN, far within every type's range.
    Numbers small = planter.normals(20 * 64);
    fault.golden = Planter::tensor(small, {20, 64}, kFp32);
    small[70] = std::numeric_limits<double>::quiet_NaN();
    fault.actual = Planter::tensor(small, {20, 64}, actual);
    causes = likely_causes(fault);
    ASSERT_FALSE(causes.empty());
    EXPECT_EQ(causes[0].name, "overflow");
    EXPECT_NE(causes[0].text.find("first in row 1"), std::string::npos) << causes[0].text;
  }
}

}  // namespace
}  // namespace ait::locate
