#include "watch/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::watch {
namespace {

using Kind = Condition::Kind;

TEST(Conditions, AreReadFromAList) {
  const auto found = parse_conditions("nan, inf,norm>1e4,every=100,spike=2.5");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 5U);
  EXPECT_EQ((*found)[0].kind, Kind::kNan);
  EXPECT_EQ((*found)[1].kind, Kind::kInf);
  EXPECT_EQ((*found)[1].text, "inf");
  EXPECT_EQ((*found)[2].kind, Kind::kNorm);
  EXPECT_EQ((*found)[2].limit, 1e4);
  EXPECT_EQ((*found)[2].text, "norm>1e4");
  EXPECT_EQ((*found)[3].limit, 100);
  EXPECT_EQ((*found)[4].limit, 2.5);
}

TEST(Conditions, GivenTwiceCountOnce) {
  const auto found = parse_conditions("nan,norm>2,nan,norm>3,norm>2.0");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 3U);
}

TEST(Conditions, WhatIsWrongIsNamedTogetherWithWhatIsKnown) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "'' stands where a condition is expected"},
      {"nan,", "'' stands where a condition is expected"},
      {"nan,,inf", "'' stands where a condition is expected"},
      {"NaN", "'NaN' is no condition"},
      {"nans", "'nans' is no condition"},
      {"norm", "'norm' is no condition"},
      {"norm>", "'norm>' is no condition, X must be a number, 0 or above"},
      {"norm>-1", "'norm>-1' is no condition, X"},
      {"norm>inf", "'norm>inf' is no condition, X"},
      {"norm=3", "'norm=3' is no condition"},
      {"every=0", "'every=0' is no condition, N must be a whole number, 1 or above"},
      {"every=2.5", "'every=2.5' is no condition, N"},
      {"every=1e300", "'every=1e300' is no condition, N"},
      {"spike=1", "'spike=1' is no condition, F must be a number above 1"},
      {"spike=nan", "'spike=nan' is no condition, F"},
      {"nan spike=3", "'nan spike=3' is no condition"},
  };
  for (const auto& [list, why] : kCases) {
    const auto found = parse_conditions(list);
    ASSERT_FALSE(found) << list;
    EXPECT_EQ(found.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(found.error().message(), testing::StartsWith(why)) << list;
    EXPECT_THAT(found.error().message(),
                testing::EndsWith("give a comma list of nan, inf, norm>X, every=N and spike=F, as "
                                  "in nan,spike=10"));
  }
}

}  // namespace
}  // namespace ait::watch
