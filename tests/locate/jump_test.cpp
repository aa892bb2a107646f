#include "locate/jump.h"

#include <gtest/gtest.h>

namespace ait::locate {
namespace {

compare::Row row(const std::string& name, double distance, const std::string& token = "0",
                 DType dtype = DType::kFloat16) {
  compare::Row out;
  out.token = token;
  out.subject.name = name;
  out.golden.dtype = DType::kFloat32;
  out.actual.dtype = dtype;
  out.comparison.emplace();
  out.comparison->compared = 1;
  out.comparison->relative_euclidean_distance = distance;
  return out;
}

TEST(ErrorJump, IsTheFirstRowFarAboveEverythingBefore) {
  ErrorJump jump;
  for (const auto& [name, distance] : {std::pair("a", 1e-4), {"b", 3e-4}, {"c", 0.05}, {"d", 0.9}})
    jump.add(row(name, distance));
  ASSERT_NE(jump.row(), nullptr);
  EXPECT_EQ(jump.row()->subject.name, "c");
  EXPECT_EQ(jump.before(), 3e-4);
}

TEST(ErrorJump, IsNoneWhereErrorsGrowSlowlyOrStayWithinRounding) {
  ErrorJump slow;
  for (const double distance : {1e-4, 5e-4, 2e-3, 9e-3}) slow.add(row("x", distance));
  EXPECT_EQ(slow.row(), nullptr);
  ErrorJump small;
  small.add(row("x", 4e-3));  // below ten units of fp16's rounding
  EXPECT_EQ(small.row(), nullptr);
}

TEST(ErrorJump, StartsAnewWithEveryTokenAndPassesOverWhatHasNoMetrics) {
  ErrorJump jump;
  jump.add(row("a", 4e-3, "0"));
  compare::Row failed = row("b", 9, "0");
  failed.comparison.reset();
  jump.add(failed);
  jump.add(row("c", 0.02, "1"));
  ASSERT_NE(jump.row(), nullptr);
  EXPECT_EQ(jump.row()->subject.name, "c");
}

TEST(ErrorJump, IsWhereNanOrInfinitiesStandOnOneSideOnly) {
  ErrorJump jump;
  jump.add(row("a", 1e-4));
  compare::Row agreeing = row("b", 1e-4);
  agreeing.golden.statistics.emplace().nan = 1;
  agreeing.actual.statistics.emplace().nan = 1;
  jump.add(agreeing);
  EXPECT_EQ(jump.row(), nullptr);
  compare::Row broken = row("c", 0);
  broken.comparison->non_finite_agree = false;
  jump.add(broken);
  ASSERT_NE(jump.row(), nullptr);
  EXPECT_EQ(jump.row()->subject.name, "c");
  EXPECT_EQ(jump.before(), 1e-4);
}

TEST(ErrorJump, IsSeenInWhatStatisticsProve) {
  const auto bounded = [](const std::string& name, double at_least) {
    compare::Row out = row(name, 0);
    out.comparison.reset();
    out.distance_at_least = at_least;
    return out;
  };
  ErrorJump jump;
  jump.add(bounded("a", 0));
  jump.add(bounded("b", 4e-3));  // within rounding
  jump.add(bounded("c", 0.5));
  ASSERT_NE(jump.row(), nullptr);
  EXPECT_EQ(jump.row()->subject.name, "c");
  EXPECT_EQ(jump.before(), 4e-3);
}

}  // namespace
}  // namespace ait::locate
