#include "opcheck/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensors.h"

namespace ait::opcheck {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

golden::Output output(std::vector<double> values, double slack = 1e-9) {
  golden::Output out;
  out.shape = {static_cast<int64_t>(values.size())};
  out.slack.assign(values.size(), slack);
  out.values = std::move(values);
  return out;
}

CheckRow checked(const golden::Output& expected, const std::vector<float>& actual) {
  CheckRow row;
  measure(expected, floats(actual)->view(), std::nullopt, {true, true, true}, row);
  return row;
}

TEST(Measure, CountsWhatIsRightToTheTolerance) {
  const CheckRow row = checked(output({1, 2, 4, 8}), {1, 2.00015F, 4.1F, 8});
  EXPECT_EQ(*row.relative_rate_percent, 75);
  EXPECT_NEAR(*row.max_relative_error, 0.025, 1e-6);
  EXPECT_EQ(*row.absolute_rate_percent, 50);
  EXPECT_NEAR(*row.max_absolute_error, 0.1, 1e-6);
  EXPECT_EQ(row.verdict, Verdict::kFailed);
  EXPECT_EQ(row.standard->rate_percent, 99.99);
  EXPECT_EQ(*row.worst_element, 2u);
  EXPECT_TRUE(row.is_outside_bound());
}

TEST(Measure, TellsWhatRoundingExplainsFromWhatItDoesNot) {
  const double third = 1.0 / 3;
  const CheckRow sound = checked(output({third}, 0), {static_cast<float>(third)});
  EXPECT_FALSE(sound.is_outside_bound());
  EXPECT_EQ(sound.verdict, Verdict::kPass);
  const float next = std::nextafter(static_cast<float>(third), 1.0F);
  const CheckRow off = checked(output({third}, 0), {std::nextafter(next, 1.0F)});
  EXPECT_TRUE(off.is_outside_bound());
  EXPECT_EQ(off.verdict, Verdict::kPass) << "the old standard does not see it";
}

TEST(Measure, SeesNumbersBesideZeroAndOneSidedInfinities) {
  const CheckRow row = checked(output({0, 1, 2, 3}), {0.5F, kNan, kInf, 3});
  EXPECT_THAT(row.reasons, ElementsAre("nan/inf mismatch: 2", "nonzero where golden is zero: 1"));
  EXPECT_EQ(*row.relative_rate_percent, 50);
  EXPECT_TRUE(std::isinf(*row.of_bound));
  const CheckRow same = checked(output({std::nan(""), -kInf}), {kNan, -kInf});
  EXPECT_EQ(same.verdict, Verdict::kPass);
  EXPECT_FALSE(same.is_outside_bound());
  EXPECT_TRUE(std::isnan(*same.cosine_similarity)) << "no element is finite";
}

TEST(Measure, GoesByTheFormThatFitsBest) {
  golden::Output expected = output({1, 2});
  expected.form = "one";
  expected.forms.push_back({"other", {3, 4}});
  const CheckRow row = checked(expected, {3, 4});
  EXPECT_EQ(row.form, "other");
  EXPECT_EQ(row.verdict, Verdict::kPass);
}

TEST(Measure, LeavesOutWhatTheDefinitionLeavesOpen) {
  golden::Output expected = output({1, 2});
  expected.undefined = {false, true};
  const CheckRow row = checked(expected, {1, 99});
  EXPECT_EQ(*row.relative_rate_percent, 100);
  EXPECT_FALSE(row.is_outside_bound());
}

// A cache of six of which one stretch of two is written.
TEST(Measure, ComparesWhatIsWrittenAndSeesChangesBesideIt) {
  golden::Output expected = output({7, 8}, 0);
  expected.slack.clear();
  expected.shape = {6};
  expected.part = golden::Part{2, 2, {3}};
  const auto before = floats({0, 1, 2, 3, 4, 5});
  const auto verdict = [&](const std::vector<float>& actual) {
    CheckRow row;
    measure(expected, floats(actual)->view(), *before, {}, row);
    return row;
  };
  EXPECT_EQ(verdict({0, 1, 2, 7, 8, 5}).verdict, Verdict::kPass);
  EXPECT_EQ(verdict({0, 1, 2, 7, 8, 5}).reasons.size(), 0u);
  EXPECT_EQ(verdict({0, 1, 2, 7, 9, 5}).verdict, Verdict::kFailed);
  const CheckRow beside = verdict({0, 9, 2, 7, 8, 9});
  EXPECT_EQ(beside.verdict, Verdict::kFailed);
  EXPECT_THAT(beside.reasons, ElementsAre("changed outside of what it writes: 2"));
  CheckRow alone;
  measure(expected, floats({9, 9, 9, 7, 8, 9})->view(), std::nullopt, {}, alone);
  EXPECT_EQ(alone.verdict, Verdict::kPass);
  EXPECT_THAT(alone.reasons[0], ::testing::StartsWith("input dumped after in-place write"));
}

TEST(Measure, TakesAnyOfEqualPlaces) {
  golden::Output expected = output({1, 2}, 0);
  expected.ties = {{1, 4}};
  expected.tie_of = {0, golden::Output::kNoTie};
  EXPECT_EQ(checked(expected, {4, 2}).verdict, Verdict::kPass);
  EXPECT_EQ(checked(expected, {3, 2}).verdict, Verdict::kFailed);
}

TEST(Measure, LetsSmallIntegersBeOffByOne) {
  const auto tensor = make_tensor(DType::kInt8, {3}, std::vector<int8_t>{10, 21, 32});
  CheckRow row;
  measure(output({10, 20, 30}, 0), tensor->view(), std::nullopt, {}, row);
  EXPECT_NEAR(*row.relative_rate_percent, 200.0 / 3, 1e-9);
  EXPECT_EQ(row.verdict, Verdict::kFailed);
  EXPECT_FALSE(row.absolute_rate_percent) << "not asked for";
}

TEST(Measure, HasTheMetricsOfTheDefinitions) {
  const CheckRow row = checked(output({1, 0}), {0, 1});
  EXPECT_EQ(*row.cosine_similarity, 0);
  // softmax(1, 0) = (p, q); KL of it and its mirror image is (p - q) ln(p / q) = p - q.
  const double p = std::exp(1.0) / (std::exp(1.0) + 1);
  EXPECT_NEAR(*row.kl_divergence, p - (1 - p), 1e-12);
  EXPECT_EQ(*checked(output({0, 0}), {0, 0}).cosine_similarity, 1);
}

TEST(Standards, AreThoseOfTheDocumentsGeneration) {
  EXPECT_EQ(standard_of(DType::kFloat16)->tolerance, 0.001);
  EXPECT_EQ(standard_of(DType::kBFloat16)->rate_percent, 99.6);
  EXPECT_TRUE(standard_of(DType::kInt8)->by_one);
  EXPECT_FALSE(standard_of(DType::kComplex64));
}

}  // namespace
}  // namespace ait::opcheck
