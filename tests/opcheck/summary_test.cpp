#include "opcheck/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

CheckRow compared(std::string id, double of_bound, Verdict verdict = Verdict::kPass) {
  CheckRow row;
  row.id = std::move(id);
  row.relative_rate_percent = 100;
  row.of_bound = of_bound;
  row.verdict = verdict;
  return row;
}

CheckRow unchecked(const std::string& reason) {
  CheckRow row;
  row.reasons = {"a note", reason};
  return row;
}

TEST(Summary, CountsOperationsOutputsAndReasons) {
  Summary summary;
  summary.add({compared("1", 0.5), compared("1", 2)});
  summary.add({compared("2", 0.5, Verdict::kFailed)});
  summary.add({unchecked("no golden")});
  summary.add({unchecked("no golden"), unchecked("lost")});
  EXPECT_EQ(summary.operations, 4u);
  EXPECT_EQ(summary.outputs, 3u);
  EXPECT_EQ(summary.outside, 1u);
  EXPECT_EQ(summary.below, 1u);
  EXPECT_EQ(summary.unchecked, 3u);
  EXPECT_THAT(summary.reasons, ElementsAre(Pair("lost", 1), Pair("no golden", 2)));
}

TEST(Summary, KeepsTheWorstRowsFirst) {
  Summary summary;
  for (int i = 0; i < 20; ++i) summary.add({compared("in", 0.1), compared("out", 2 + i)});
  summary.add({compared("low", 0.9, Verdict::kFailed)});
  ASSERT_EQ(summary.worst.size(), Summary::kWorstRows);
  EXPECT_EQ(*summary.worst.front().of_bound, 21);
  EXPECT_EQ(*summary.worst.back().of_bound, 12) << "what rounding explains comes after the others";
  Summary few;
  few.add({compared("low", 0.9, Verdict::kFailed)});
  few.add({compared("out", 1.5)});
  ASSERT_EQ(few.worst.size(), 2u);
  EXPECT_EQ(few.worst[0].id, "out");
}

TEST(FailOn, IsMetByItsOwnCountAlone) {
  const auto conditions = parse_fail_on({"unchecked", "bound", "failed"});
  ASSERT_TRUE(conditions);
  EXPECT_THAT(*conditions, ElementsAre(FailOn::kUnchecked, FailOn::kBound, FailOn::kStandard));
  Summary below, outside, lost;
  below.add({compared("1", 0.5, Verdict::kFailed)});
  outside.add({compared("1", 2)});
  lost.add({unchecked("lost")});
  for (const Summary* summary : {&below, &outside, &lost})
    for (const FailOn condition : *conditions)
      EXPECT_EQ(is_met(condition, *summary), summary == (condition == FailOn::kStandard ? &below
                                                         : condition == FailOn::kBound  ? &outside
                                                                                        : &lost))
          << word(condition);
}

TEST(FailOn, KnowsNoOtherWords) {
  EXPECT_THAT(parse_fail_on({"bound", "nan"}).error().text(), HasSubstr("does not know 'nan'"));
  EXPECT_TRUE(parse_fail_on({})->empty());
}

}  // namespace
}  // namespace ait::opcheck
