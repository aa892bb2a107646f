#include "compare/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tensors.h"

namespace ait::compare {
namespace {

using ::testing::ElementsAre;

Row measured(const Result<Tensor>& golden, const Result<Tensor>& actual) {
  return measure(golden, actual, {MetricCompat::kOwn, true, 1});
}

std::string text(std::string_view column, const Row& row) {
  const Column* found = find_column(column);
  return cell_text(found->value(row), found->style);
}

TEST(Columns, AreTheOldReportsInTheirOrder) {
  EXPECT_THAT(column_names(columns(false)),
              ElementsAre("token_id", "data_id", "golden_data_path", "golden_dtype", "golden_shape",
                          "golden_max_value", "golden_min_value", "golden_mean_value",
                          "my_data_path", "my_dtype", "my_shape", "my_max_value", "my_min_value",
                          "my_mean_value", "cosine_similarity", "max_relative_error",
                          "mean_relative_error", "max_absolute_error", "mean_absolute_error",
                          "kl_divergence", "relative_euclidean_distance", "cmp_fail_reason"));
}

TEST(Columns, AddOursAfterTheReason) {
  const auto all = column_names(columns(true));
  const auto seed = column_names(columns(false));
  ASSERT_EQ(all.size(), seed.size() + 28);
  EXPECT_TRUE(std::equal(seed.begin(), seed.end(), all.begin()));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(Columns, SpellValuesAsTheOldReports) {
  Row row = measured(floats({1, 3}, {1, 2, 3}), floats({3}, {1, 2, 4}));
  EXPECT_EQ(text("golden_dtype", row), "torch.float32");
  EXPECT_EQ(text("golden_shape", row), "[1, 3]");
  EXPECT_EQ(text("golden_mean_value", row), "2.0");
  EXPECT_EQ(text("max_absolute_error", row), "1.0");
  EXPECT_EQ(text("cosine_similarity", row), "0.991460134");  // 17 / sqrt(14 * 21)
  EXPECT_EQ(text("worst_index", row), "2");
  EXPECT_EQ(text("worst_my", row), "4.0");
  EXPECT_EQ(text("differing_elements", row), "1");
  EXPECT_EQ(text("identical", row), "False");
  EXPECT_EQ(text("worst_row", row), "0");
}

TEST(Columns, AreEmptyWhereNothingWasMeasured) {
  const Row row = measured(floats({1, 2, 3}), floats({1, 2}));
  for (const Column* column : columns(true)) {
    if (column->group == ColumnGroup::kMetric || column->group == ColumnGroup::kPerRow) {
      EXPECT_EQ(text(column->name, row), "") << column->name;
    }
  }
  EXPECT_EQ(text("golden_max_value", row), "3.0");
  EXPECT_EQ(text("my_max_value", row), "2.0");
}

TEST(Columns, LeaveTheValuesOfEmptyTensorsOut) {
  const Row row = measured(floats({}), floats({}));
  EXPECT_EQ(text("golden_max_value", row), "");
  EXPECT_EQ(text("golden_shape", row), "[0]");
}

TEST(Columns, WriteNanForATensorThatHoldsOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row row = measured(floats({1, nan}), floats({1, 2}));
  EXPECT_EQ(text("golden_max_value", row), "nan");
  EXPECT_EQ(text("golden_nan", row), "1");
  EXPECT_EQ(text("non_finite_agree", row), "False");
}

}  // namespace
}  // namespace ait::compare
