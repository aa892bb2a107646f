#include "opcheck/save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checked.h"
#include "formats/registry.h"
#include "small_dump.h"

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::vector<double> numbers(const std::string& path) {
  const auto tensor = formats::load_single(path);
  EXPECT_TRUE(tensor) << tensor.error().text();
  EXPECT_EQ(tensor->dtype(), DType::kFloat64);
  std::vector<double> out(tensor->elements());
  gather(tensor->view(), 0, out.size(), std::as_writable_bytes(std::span(out)).data());
  return out;
}

class ErrorData : public testing::Test {
 protected:
  ErrorData() { options_.error_folder = dump_.folder().path() / "saved"; }

  SmallDump dump_;
  Options options_;
};

TEST_F(ErrorData, OfFailingOperationsIsADumpThatFailsAgain) {
  dump_.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 6});
  dump_.add_doubling("0_7/0/3_Layer/2_ElewiseOperation", {2, 4, 9});
  const auto rows = check(dump_.path(), options_);
  EXPECT_EQ(rows[0].error_data, "");
  EXPECT_EQ(rows[1].error_data,
            options_.error_folder + "/tensors/0_7/0/3_Layer/2_ElewiseOperation");
  EXPECT_THAT(numbers(rows[1].error_data + "/golden/outtensor0.npy"), ElementsAre(2, 4, 6));
  EXPECT_EQ(numbers(rows[1].error_data + "/golden/bound0.npy").size(), 3u);
  const auto again = check(options_.error_folder);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].id, "3_2");
  EXPECT_EQ(again[0].param, rows[1].param);
  EXPECT_EQ(again[0].max_relative_error, rows[1].max_relative_error);
  EXPECT_EQ(again[0].verdict, Verdict::kFailed);
}

TEST_F(ErrorData, HoldsInputsFromBeforeAndAfterAndThePartThatIsWritten) {
  const std::string at = "0_7/0/1_SetValueOperation";
  dump_.set_param(at, R"({"starts": [1], "ends": [3], "strides": [1]})");
  dump_.add(at, "before/intensor0", {4}, {9, 9, 9, 9});
  dump_.add(at, "before/intensor1", {2}, {1, 2});
  dump_.add(at, "after/intensor0", {4}, {9, 1, 5, 9});
  dump_.add(at, "after/intensor1", {2}, {1, 2});
  const auto rows = check(dump_.path(), options_);
  ASSERT_NE(rows[0].error_data, "") << rows[0].reasons[0];
  EXPECT_THAT(numbers(rows[0].error_data + "/golden/outtensor0.npy"), ElementsAre(1, 2));
  EXPECT_TRUE(fs::exists(rows[0].error_data + "/golden/starts0.npy"));
  const auto again = check(options_.error_folder);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].verdict, Verdict::kFailed);
  EXPECT_EQ(again[0].reasons, rows[0].reasons);
}

// Each rank alone would lack what the others sent.
TEST_F(ErrorData, OfWhatRanksDoTogetherHoldsTheInputsOfAll) {
  for (const char* rank : {"0", "1"}) {
    const std::string at = std::string(rank) + "_7/0/1_AllReduceOperation";
    dump_.set_param(at, R"({"rank": )" + std::string(rank) + R"(, "rankSize": 2})");
    dump_.add(at, "after/intensor0", {1}, {3});
    dump_.add(at, "after/outtensor0", {1}, {rank[0] == '0' ? 7.0F : 6.0F});
  }
  const auto rows = check(dump_.path(), options_);
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_NE(rows[0].error_data, "") << rows[0].reasons[0];
  EXPECT_EQ(rows[1].error_data, "");
  const auto again = check(options_.error_folder);
  ASSERT_FALSE(again.empty());
  EXPECT_TRUE(again[0].is_failing());
}

TEST_F(ErrorData, ThatCannotBeSavedIsAReasonAndNoMore) {
  dump_.folder().write("saved", "a file where the folder should be");
  dump_.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 9});
  const auto rows = check(dump_.path(), options_);
  EXPECT_TRUE(rows[0].was_compared());
  EXPECT_EQ(rows[0].error_data, "");
  EXPECT_THAT(rows[0].reasons.back(), HasSubstr("its data could not be saved: "));
}

}  // namespace
}  // namespace ait::opcheck
