#include "base/log.h"

#include <gtest/gtest.h>

namespace ait {
namespace {

TEST(LogLevel, AcceptsEverySpellingOfTheCommandLine) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("info"), LogLevel::kInfo);
  EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::kWarning);
  EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("fatal"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("critical"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

TEST(Log, WritesOneLineToStderrFromItsLevelUp) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  set_log_level(LogLevel::kWarning);
  log_info("unheard");
  log_warning("heard");
  log_error("also heard");
  set_log_level(LogLevel::kInfo);
  log_info("plain");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ait: warning: heard\nait: error: also heard\nait: plain\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace ait
