#include "api_check/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tables/api_check.h"
#include "values.h"

namespace ait::api_check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Function kLinear{"linear", Direction::kForward};

TEST(Output, PassesWhatIsRoundedRightly) {
  const Output out = judge_tensors(kLinear, f64({0.1, 0.2}).view(), f32({0.1F, 0.2F}).view(), {});
  EXPECT_TRUE(out.passes);
  EXPECT_TRUE(out.within);
  EXPECT_EQ(out.message, "");
}

TEST(Output, SmallTensorsNeedEveryElement) {
  const auto off = f32({0.1F, 0.20004F});
  EXPECT_FALSE(judge_tensors(kLinear, f64({0.1, 0.2}).view(), off.view(), {}).passes);
}

TEST(Output, RoundingOfInputsMayExplainWhatTheRuleCannot) {
  const auto bench = f64({1e-9, 1e-9});
  const auto device = f32({3e-8F, 1e-9F});
  const auto moved = f64({1e-9 + 6e-8, 1e-9 + 6e-8});
  const TensorView view = moved.view();
  const Output first = judge_tensors(kLinear, bench.view(), device.view(), {});
  EXPECT_FALSE(first.passes);
  EXPECT_FALSE(first.within);
  EXPECT_TRUE(first.wants_moved);
  const Output second = judge_tensors(kLinear, bench.view(), device.view(), {.moved = &view});
  EXPECT_FALSE(second.passes);
  EXPECT_TRUE(second.within);
  EXPECT_FALSE(second.wants_moved);
  EXPECT_THAT(second.message, HasSubstr("no fault"));
}

TEST(Output, ASmallErrorOfAllElementsIsNoRounding) {
  std::vector<float> bench(64), device(64);
  for (size_t i = 0; i < bench.size(); ++i) {
    bench[i] = 1 + static_cast<float>(i) / 64;
    device[i] = bench[i] * 1.04F;
  }
  const Output out = judge_tensors({"layer_norm", Direction::kForward}, f32(bench).view(),
                                   bf16(device).view(), {});
  EXPECT_LT(out.difference.roundings, out.limit);
  EXPECT_FALSE(out.within);
}

TEST(Output, NothingExplainsAWrongCopy) {
  const Output out = judge_tensors({"cat", Direction::kForward}, f64({1, 2}).view(),
                                   f32({1, 2.0000002F}).view(), {});
  EXPECT_TRUE(out.passes);
  EXPECT_FALSE(out.within);
  EXPECT_FALSE(out.wants_moved);
  EXPECT_THAT(out.message, HasSubstr("element 1"));
}

TEST(Output, WholeNumbersAreEqualOrNot) {
  const auto big = int64_t{1} << 60;
  EXPECT_TRUE(judge_tensors(kLinear, i64({big, 2}).view(), i64({big, 2}).view(), {}).passes);
  const Output out = judge_tensors(kLinear, i64({big, 2}).view(), i64({big + 1, 2}).view(), {});
  EXPECT_FALSE(out.passes);
  EXPECT_FALSE(out.within);
  EXPECT_DOUBLE_EQ(out.error_rate, 0.5);
}

TEST(Output, TypesOfDifferentClassesCannotBeCompared) {
  const Output out = judge_tensors(kLinear, f64({1}).view(), i64({1}).view(), {});
  EXPECT_FALSE(out.passes);
  EXPECT_EQ(
      out.message,
      "Bench out dtype is torch.float64 but npu output dtype is torch.int64, cannot compare.");
}

TEST(Output, AnInfinityOfTheDeviceAloneFailsBoth) {
  const auto device = f32({1, std::numeric_limits<float>::infinity()});
  const Output out = judge_tensors(kLinear, f64({1, 2}).view(), device.view(), {});
  EXPECT_FALSE(out.passes);
  EXPECT_FALSE(out.within);
  EXPECT_EQ(out.message, "NaN/Inf mismatch at 1 of 2 elements");
}

TEST(Output, DropoutIsJudgedByItsZeros) {
  std::vector<float> input(1000, 1), half(1000, 2), none(1000, 1), wrong(1000, 3);
  for (size_t i = 0; i < 500; ++i) half[2 * i] = wrong[2 * i] = 0;
  const Dropout dropout{0.5, true, 1000};
  const auto in = f32(input), b = f32(half);
  EXPECT_TRUE(judge_dropout(dropout, in.view(), b.view(), f32(half).view()).within);
  EXPECT_FALSE(judge_dropout(dropout, in.view(), b.view(), f32(none).view()).passes);
  const Output scaled = judge_dropout(dropout, in.view(), b.view(), f32(wrong).view());
  EXPECT_TRUE(scaled.passes);
  EXPECT_FALSE(scaled.within);
  EXPECT_THAT(scaled.message, HasSubstr("500 of the kept elements"));
}

TEST(Output, HasTheOldColumnsInTheirOrder) {
  const auto names = report::column_names(tables::api_output_columns());
  ASSERT_EQ(names.size(), 22U);
  EXPECT_EQ(names[0], "Npu Name");
  EXPECT_EQ(names[12], "Relative Error (dual ten thousandth)");
  EXPECT_EQ(names[16], "Pass");
  EXPECT_THAT(report::column_names(tables::api_result_columns()),
              ElementsAre("API name", "Forward Test Success", "Backward Test Success", "Message",
                          "Forward Within Rounding", "Backward Within Rounding"));
}

TEST(Output, TextsHaveFourteenDecimals) {
  Output out = judge_tensors(kLinear, f64({1, 2}).view(), f32({1, 2}).view(), {});
  out.name = "Functional*linear*0.forward.output.0";
  EXPECT_THAT(
      tables::api_output_texts(out),
      ElementsAre(out.name, "torch.float64", "torch.float32", "(2,)", "1.00000000000000", "",
                  "0.00000000000000", "", "0.00000000000000", "", "1.00000000000000", "",
                  "1.00000000000000", "", "N/A", "", "True", "True", "0.0", "0.0", "128.0", ""));
}

}  // namespace
}  // namespace ait::api_check
