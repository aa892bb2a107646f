#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgressLine, TellsShareRateAndTimeLeft) {
  const std::string line = progress_line(500, 2000, 8'000'000'000, 4.0);
  EXPECT_THAT(line, HasSubstr("[#######-----------------------]"));
  EXPECT_THAT(line, HasSubstr(" 25%"));
  EXPECT_THAT(line, HasSubstr("500/2000 rows"));
  EXPECT_THAT(line, HasSubstr("2.0 GB/s"));
  EXPECT_THAT(line, EndsWith("12 s left"));
}

TEST(ProgressLine, KeepsItsShapeAtBothEnds) {
  EXPECT_THAT(progress_line(0, 10, 0, 1.0), Not(HasSubstr("left")));
  EXPECT_THAT(progress_line(10, 10, 1, 1.0), Not(HasSubstr("left")));
  EXPECT_THAT(progress_line(10, 10, 1, 1.0), HasSubstr("100%"));
}

TEST(ProgressLine, SpeaksOfMinutesAndHours) {
  EXPECT_THAT(progress_line(1, 11, 1, 30.0), EndsWith("5 min 00 s left"));
  EXPECT_THAT(progress_line(1, 1001, 1, 60.0), EndsWith("16 h 40 min left"));
}

}  // namespace
}  // namespace ait::cli
