#include "tables/fail_on.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "compare/measure.h"
#include "tensors.h"

namespace ait::tables {
namespace {

using compare::MetricCompat;
using compare::Row;
using ::testing::HasSubstr;

Row measured(const Result<Tensor>& golden, const Result<Tensor>& actual) {
  Row row = compare::measure(golden, actual, {MetricCompat::kOwn, true, 1});
  row.golden.records.emplace_back().path = "golden.npy";
  row.actual.records.emplace_back().path = "actual.npy";
  return row;
}

bool met(std::string_view list, const Row& row) {
  const auto conditions = parse_fail_on(list);
  EXPECT_TRUE(conditions) << conditions.error().text();
  return std::any_of(conditions->begin(), conditions->end(),
                     [&](const Condition& condition) { return hits(condition, row); });
}

TEST(FailOn, HoldsMetricsAgainstLimits) {
  const Row row = measured(floats({1, 2}), floats({1, 3}));
  EXPECT_TRUE(met("max_absolute_error>0.5", row));
  EXPECT_FALSE(met("max_absolute_error>1", row));
  EXPECT_TRUE(met(" cosine_similarity < 1 ", row));
  EXPECT_FALSE(met("cosine_similarity<0.5", row));
  EXPECT_TRUE(met("differing_elements>0", row));
  EXPECT_TRUE(met("worst_row_cosine<1", row));
}

TEST(FailOn, TakesAnyOfTheList) {
  const Row row = measured(floats({1, 2}), floats({1, 3}));
  EXPECT_TRUE(met("failed,nan,max_absolute_error>0.5", row));
  EXPECT_FALSE(met("failed,nan,unmatched", row));
}

TEST(FailOn, KnowsFailedNanAndUnmatched) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(met("failed", measured(floats({1}), floats({1, 2}))));
  EXPECT_TRUE(met("nan", measured(floats({nan, 1}), floats({1, 2}))));
  EXPECT_TRUE(met("nan", measured(floats({1, 1}), floats({inf, 2}))));
  Row alone = measured(floats({1}), floats({1}));
  EXPECT_FALSE(met("unmatched", alone));
  alone.actual.records.clear();
  EXPECT_TRUE(met("unmatched", alone));
}

TEST(FailOn, IsNotMetByAMetricThatWasNotMeasured) {
  EXPECT_FALSE(met("cosine_similarity<0.5", measured(floats({1}), floats({1, 2}))));
}

TEST(FailOn, IsMetByWhatStatisticsProve) {
  Row row;
  row.distance_at_least = 0.5;
  EXPECT_TRUE(met("relative_euclidean_distance>0.4", row));
  EXPECT_FALSE(met("relative_euclidean_distance>0.5", row)) << "it may be exactly that";
  EXPECT_FALSE(met("relative_euclidean_distance<0.6", row)) << "it may be larger";
  EXPECT_FALSE(met("max_absolute_error>0.1", row));
  EXPECT_FALSE(met("failed", row)) << "the two were compared";
}

TEST(FailOn, NamesTheChoicesForAnUnknownWord) {
  for (const char* list : {"cosine<1", "my_dtype>3", "cosine_similarity", "identical>0", "",
                           "failed,", "failed;nan"}) {
    const auto conditions = parse_fail_on(list);
    ASSERT_FALSE(conditions) << list;
    EXPECT_EQ(conditions.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(conditions.error().text(), HasSubstr("failed, nan, unmatched"));
    EXPECT_THAT(conditions.error().text(), HasSubstr("cosine_similarity"));
  }
}

TEST(FailOn, WantsANumberBehindTheSign) {
  for (const char* list : {"cosine_similarity<", "cosine_similarity<x", "cosine_similarity<0.9.9",
                           "kl_divergence>nan"}) {
    const auto conditions = parse_fail_on(list);
    ASSERT_FALSE(conditions) << list;
    EXPECT_THAT(conditions.error().text(), HasSubstr("wants a number"));
  }
}

TEST(FailOn, TakesWholeNumbers) {
  const auto row = compare::measure(make_tensor<int32_t>(DType::kInt32, {1}, {3}),
                                    make_tensor<int32_t>(DType::kInt32, {1}, {-4}), {});
  EXPECT_TRUE(hits(parse_fail_on("max_absolute_error>6")->at(0), row));
  EXPECT_FALSE(hits(parse_fail_on("max_absolute_error>7")->at(0), row));
  EXPECT_TRUE(hits(parse_fail_on("worst_my<0")->at(0), row));
}

}  // namespace
}  // namespace ait::tables
