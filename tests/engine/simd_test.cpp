// The products of every instruction set of this machine against plain loops.
#include <hwy/targets.h>

#include <bit>
#include <cmath>

#include "tensor/half.h"
#include "tensors.h"

namespace {

using atb::DataType;
using atb_test::Make;
using atb_test::RunOnce;

class EachTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  // The emulated ones are not built into the library.
  const int64_t built = hwy::SupportedTargets() & ~(HWY_SCALAR | HWY_EMU128);
  for (int64_t rest = built; rest != 0; rest &= rest - 1) targets.push_back(rest & -rest);
  return targets;
}

std::vector<uint16_t> Stored(const std::vector<float>& values, DataType dtype) {
  std::vector<uint16_t> bits;
  for (const float value : values)
    bits.push_back(dtype == DataType::kFloat16 ? ait::float_to_fp16(value)
                                               : ait::float_to_bf16(value));
  return bits;
}

float Loaded(uint16_t bits, DataType dtype) {
  return dtype == DataType::kFloat16 ? ait::fp16_to_float(bits) : ait::bf16_to_float(bits);
}

TEST_P(EachTarget, LinearAgreesWithPlainLoops) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const int64_t m = 6, n = 9, k = 77;
  std::vector<float> x(static_cast<size_t>(m * k)), w(static_cast<size_t>(n * k));
  for (auto* values : {&x, &w})
    for (float& value : *values) value = normal(random);
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBf16}) {
    auto xs = Stored(x, dtype), ws = Stored(w, dtype);
    std::vector<uint16_t> ys(static_cast<size_t>(m * n));
    std::vector<float> y(ys.size());
    const bool wide = dtype == DataType::kFloat;
    const auto tensor = [&](std::vector<float>& f, std::vector<uint16_t>& h, atb::Dims dims) {
      return atb::Tensor{{dtype, dims}, wide ? static_cast<void*>(f.data()) : h.data()};
    };
    atb::Context context(0);
    const auto linear = Make("LinearOperation", R"({"hasBias":false})");
    ASSERT_TRUE(RunOnce(*linear,
                        {{tensor(x, xs, {m, k}), tensor(w, ws, {n, k})}, {tensor(y, ys, {m, n})}},
                        context)
                    .ok());
    // One rounding of the result, and k fp32 additions.
    const double unit = wide ? 0x1p-24 : dtype == DataType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < y.size(); ++i) {
      double exact = 0, magnitude = 0;
      for (size_t j = 0; j < static_cast<size_t>(k); ++j) {
        const size_t xi = i / static_cast<size_t>(n) * static_cast<size_t>(k) + j;
        const size_t wi = i % static_cast<size_t>(n) * static_cast<size_t>(k) + j;
        const double product =
            wide ? double{x[xi]} * w[wi] : double{Loaded(xs[xi], dtype)} * Loaded(ws[wi], dtype);
        exact += product;
        magnitude += std::fabs(product);
      }
      const double actual = wide ? y[i] : Loaded(ys[i], dtype);
      EXPECT_NEAR(actual, exact, unit * std::fabs(exact) * 1.01 + 0x1p-24 * 16 * magnitude);
    }
  }
}

TEST_P(EachTarget, Int8ProductsAreExact) {
  const int64_t m = 3, n = 5, k = 131;
  std::mt19937 random(8);
  std::vector<int8_t> x(static_cast<size_t>(m * k)), w(static_cast<size_t>(n * k));
  for (auto* values : {&x, &w})
    for (int8_t& value : *values) value = static_cast<int8_t>(random());
  x[0] = w[0] = -128;
  std::vector<float> scale(static_cast<size_t>(n), 0x1p-10f);
  std::vector<uint16_t> y(static_cast<size_t>(m * n));
  atb::Context context(0);
  const auto linear = Make("LinearOperation", R"({"hasBias":false,"outDataType":27})");
  const auto status = RunOnce(*linear,
                              {{{{DataType::kInt8, {m, k}}, x.data()},
                                {{DataType::kInt8, {n, k}}, w.data()},
                                {{DataType::kFloat, {n}}, scale.data()}},
                               {{{DataType::kBf16, {m, n}}, y.data()}}},
                              context);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < y.size(); ++i) {
    int64_t exact = 0;
    for (size_t j = 0; j < static_cast<size_t>(k); ++j)
      exact += int64_t{x[i / static_cast<size_t>(n) * static_cast<size_t>(k) + j]} *
               w[i % static_cast<size_t>(n) * static_cast<size_t>(k) + j];
    EXPECT_EQ(y[i], ait::float_to_bf16(static_cast<float>(exact) * 0x1p-10f));
  }
}

// Every half through a cast to fp32 and back is itself.
TEST_P(EachTarget, EveryHalfSurvivesWideningAndNarrowing) {
  atb::Context context(0);
  for (const DataType dtype : {DataType::kFloat16, DataType::kBf16}) {
    std::vector<uint16_t> from(65536), back(65536);
    std::vector<float> wide(65536);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint16_t>(i);
    const atb::Dims dims{65536};
    const auto up = Make("ElewiseOperation", R"({"elewiseType":1,"outTensorType":0})");
    const auto down = Make("ElewiseOperation", R"({"elewiseType":1,"outTensorType":)" +
                                                   std::to_string(static_cast<int>(dtype)) + "}");
    const atb::Tensor wide_tensor{{DataType::kFloat, dims}, wide.data()};
    ASSERT_TRUE(RunOnce(*up, {{{{dtype, dims}, from.data()}}, {wide_tensor}}, context).ok());
    ASSERT_TRUE(RunOnce(*down, {{wide_tensor}, {{{dtype, dims}, back.data()}}}, context).ok());
    for (size_t i = 0; i < from.size(); ++i) {
      const float expected = Loaded(from[i], dtype);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(wide[i]) && std::isnan(Loaded(back[i], dtype)));
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected));
        ASSERT_EQ(back[i], from[i]);
      }
    }
  }
}

TEST_P(EachTarget, SoftmaxAndSwishAgreeWithTheStandardLibrary) {
  atb::Context context(0);
  std::vector<float> x, y(41);
  for (int i = 0; i < 41; ++i) x.push_back(static_cast<float>(i - 20) * 0.7f);
  const atb::Tensor in{{DataType::kFloat, {41}}, x.data()}, out{{DataType::kFloat, {41}}, y.data()};
  ASSERT_TRUE(RunOnce(*Make("SoftmaxOperation", R"({"axes":[-1]})"), {{in}, {out}}, context).ok());
  double sum = 0;
  for (const float value : x) sum += std::exp(double{value});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i] / (std::exp(double{x[i]}) / sum), 1, 1e-5);
  ASSERT_TRUE(
      RunOnce(*Make("ActivationOperation", R"({"activationType":4})"), {{in}, {out}}, context)
          .ok());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], x[i] / (1 + std::exp(-double{x[i]})), 1e-5 * std::fabs(x[i]));
}

INSTANTIATE_TEST_SUITE_P(Simd, EachTarget, testing::ValuesIn(Targets()),
                         [](const auto& one) { return std::string(hwy::TargetName(one.param)); });

}  // namespace
