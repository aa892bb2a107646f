#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checked.h"
#include "small_dump.h"
#include "stand_in.h"

namespace ait::opcheck {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An operation that doubles, which the stand-in does, too, or does as `stand_in` says.
std::string doubling(const std::string& stand_in = "DoublingOperation") {
  return R"({"elewiseType": 2, "mulsParam": {"varAttr": 2.0}, "standIn": ")" + stand_in + "\"}";
}

class Rerun : public testing::Test {
 protected:
  void SetUp() override {
    rerun::Settings settings = rerun::stand_in();
    settings.limit = std::chrono::seconds(2);
    auto runner = rerun::Runner::start(settings);
    ASSERT_TRUE(runner) << runner.error().text();
    runner_ = std::move(*runner);
    options_.runner = runner_.get();
  }

  std::vector<CheckRow> rows() const { return check(dump_.path(), options_); }

  SmallDump dump_;
  std::unique_ptr<rerun::Runner> runner_;
  Options options_;
};

TEST_F(Rerun, ChecksWhatTheLibraryGivesInPlaceOfWhatWasRecorded) {
  dump_.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 9});
  EXPECT_EQ(check(dump_.path())[0].verdict, Verdict::kFailed);
  EXPECT_EQ(check(dump_.path())[0].source, "");
  EXPECT_EQ(rows()[0].verdict, Verdict::kPass);
  EXPECT_EQ(rows()[0].source, "rerun: stand_in.so");
}

TEST_F(Rerun, NeedsNoRecordedOutputs) {
  dump_.set_param("0_7/0/1_ElewiseOperation", doubling());
  dump_.add("0_7/0/1_ElewiseOperation", "before/intensor0", {2}, {3, 4});
  EXPECT_EQ(rows()[0].verdict, Verdict::kPass);
  EXPECT_THAT(check(dump_.path())[0].reasons[0], HasSubstr("output 0 was not recorded"));
}

TEST_F(Rerun, OfOneOperationThatGoesWrongLeavesTheOthersAlone) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"CrashingOperation", "its process"},
      {"FailingOperation", "is on fire"},
      {"HangingOperation", "gave no answer"},
      {"HugeOperation", "that they may take"}};
  for (size_t i = 0; i < wrong.size(); ++i) {
    const std::string at = "0_7/0/" + std::to_string(2 * i) + "_ElewiseOperation";
    dump_.add_doubling(at, {2, 4, 6});
    dump_.set_param(at, doubling(wrong[i].first));
    dump_.add_doubling("0_7/0/" + std::to_string(2 * i + 1) + "_ElewiseOperation", {2, 4, 6});
  }
  const auto found = rows();
  ASSERT_EQ(found.size(), 2 * wrong.size());
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_FALSE(found[2 * i].was_compared());
    EXPECT_EQ(found[2 * i].verdict, Verdict::kFailed);
    EXPECT_THAT(found[2 * i].reasons[0], HasSubstr(wrong[i].second));
    EXPECT_THAT(found[2 * i].reasons[0], HasSubstr("stand_in.so: "));
    EXPECT_EQ(found[2 * i + 1].verdict, Verdict::kPass) << i;
  }
}

TEST_F(Rerun, TakesWhatWasRecordedWhereTheLibraryLacksTheOperationAndSaysIt) {
  dump_.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 9});
  dump_.set_param("0_7/0/1_ElewiseOperation", doubling("RefusedOperation"));
  dump_.set_param("0_7/0/2_AllReduceOperation", R"({"rank": 0, "rankSize": 1})");
  dump_.add("0_7/0/2_AllReduceOperation", "after/intensor0", {1}, {3});
  dump_.add("0_7/0/2_AllReduceOperation", "after/outtensor0", {1}, {3});
  const auto found = rows();
  EXPECT_EQ(found[0].verdict, Verdict::kFailed);
  EXPECT_TRUE(found[0].was_compared());
  EXPECT_THAT(found[0].source, StartsWith("dump: stand_in.so: has no ElewiseOperation with {"));
  EXPECT_EQ(found[1].source, "dump: several ranks do it together");
}

// The cache as it was recorded holds what was written already: nothing can be told from it, but
// what a library makes of it can be held against the golden of the same cache.
TEST_F(Rerun, NeedsNoInputsFromBeforeAWriteToThem) {
  const std::string at = "0_7/0/1_SetValueOperation";
  dump_.set_param(at,
                  R"({"starts": [0], "ends": [2], "strides": [1], "standIn": "InPlaceOperation"})");
  dump_.add(at, "after/intensor0", {3}, {-1, -2, -3});
  dump_.add(at, "after/intensor1", {2}, {1, 2});
  const auto found = rows();
  ASSERT_TRUE(found[0].was_compared()) << found[0].reasons[0];
  // The stand-in turns every sign: the first two are right by that, the third is beside the part.
  EXPECT_THAT(found[0].reasons.back(), EndsWith("changed outside of what it writes: 1"));
}

}  // namespace
}  // namespace ait::opcheck
