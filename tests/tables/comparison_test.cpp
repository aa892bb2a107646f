#include "tables/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compare/measure.h"
#include "tensors.h"

namespace ait::tables {
namespace {

using compare::MetricCompat;
using compare::Row;
using report::column_names;
using report::ColumnGroup;
using ::testing::ElementsAre;

Row measured(const Result<Tensor>& golden, const Result<Tensor>& actual) {
  return compare::measure(golden, actual, {MetricCompat::kOwn, true, 1});
}

std::string text(std::string_view column, const Row& row) {
  return find_comparison_column(column)->text(row);
}

TEST(Columns, AreTheOldReportsInTheirOrder) {
  EXPECT_THAT(column_names(comparison_columns(false)),
              ElementsAre("token_id", "data_id", "golden_data_path", "golden_dtype", "golden_shape",
                          "golden_max_value", "golden_min_value", "golden_mean_value",
                          "my_data_path", "my_dtype", "my_shape", "my_max_value", "my_min_value",
                          "my_mean_value", "cosine_similarity", "max_relative_error",
                          "mean_relative_error", "max_absolute_error", "mean_absolute_error",
                          "kl_divergence", "relative_euclidean_distance", "cmp_fail_reason"));
}

TEST(Columns, AddOursAfterTheReason) {
  const auto all = column_names(comparison_columns(true));
  const auto seed = column_names(comparison_columns(false));
  ASSERT_EQ(all.size(), seed.size() + 41);
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

TEST(Columns, WriteIntegersAsIntegers) {
  const auto row = measured(make_tensor<uint32_t>(DType::kUInt32, {2}, {4294967295U, 1}),
                            make_tensor<int64_t>(DType::kInt64, {2}, {-16777217, 1}));
  EXPECT_EQ(text("golden_max_value", row), "4294967295");
  EXPECT_EQ(text("golden_min_value", row), "1");
  EXPECT_EQ(text("my_min_value", row), "-16777217");
  EXPECT_EQ(text("worst_golden", row), "4294967295");
  EXPECT_EQ(text("worst_my", row), "-16777217");
  EXPECT_EQ(text("max_absolute_error", row), "4311744512");
  // Held against a float, the difference need not be one.
  const auto mixed = measured(make_tensor<int32_t>(DType::kInt32, {1}, {3}), floats({3.5}));
  EXPECT_EQ(text("golden_max_value", mixed), "3");
  EXPECT_EQ(text("my_max_value", mixed), "3.5");
  EXPECT_EQ(text("max_absolute_error", mixed), "0.5");
  const auto largest = measured(make_tensor<uint64_t>(DType::kUInt64, {1}, {UINT64_MAX}),
                                make_tensor<int64_t>(DType::kInt64, {1}, {INT64_MIN}));
  EXPECT_EQ(text("golden_max_value", largest),
            "1.8446744e+19");  // beyond what a double tells apart
  EXPECT_EQ(text("my_max_value", largest), "-9223372036854775808");
}

TEST(Columns, AreEmptyWhereNothingWasMeasured) {
  const Row row = measured(floats({1, 2, 3}), floats({1, 2}));
  for (const ComparisonColumn* column : comparison_columns(true)) {
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

TEST(Columns, MakeOneTextOfWhatWasCompared) {
  match::Subject subject;
  subject.name = "2_Layer/0_Linear";
  EXPECT_EQ(data_id(subject), "2_Layer/0_Linear");
  subject.tensor = "outtensor0";
  EXPECT_EQ(data_id(subject), "2_Layer/0_Linear/outtensor0");
  subject.first_column = 64;
  EXPECT_EQ(data_id(subject), "2_Layer/0_Linear/outtensor0:64");
  subject.rank = "1";
  EXPECT_EQ(data_id(subject), "2_Layer/0_Linear/outtensor0@1:64");
  match::Subject file;
  file.name = "all.npz";
  file.member = "w";
  EXPECT_EQ(data_id(file), "all.npz:w");
  file.name = "w";  // a weight that goes by its own name
  EXPECT_EQ(data_id(file), "w");
}

TEST(Columns, JoinPathsAndRanksOfShards) {
  Row row = measured(floats({1}), floats({1}));
  for (const char* rank : {"0", "1"}) {
    capture::TensorRecord record;
    record.path = std::string("run/") + rank + ".bin";
    record.rank = rank;
    record.operation = "3_Linear";
    row.actual.records.push_back(record);
  }
  EXPECT_EQ(text("my_data_path", row), "run/0.bin;run/1.bin");
  EXPECT_EQ(text("my_rank", row), "0;1");
  EXPECT_EQ(text("my_operation", row), "3_Linear");
  EXPECT_EQ(text("golden_data_path", row), "");
}

}  // namespace
}  // namespace ait::tables
