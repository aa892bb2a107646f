#include "dump/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::dump {
namespace {

using ::testing::HasSubstr;

TEST(Texts, AreForPeople) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(count_text(1, "process"), "1 process");
  EXPECT_EQ(count_text(2, "process"), "2 processes");
  EXPECT_EQ(shell_word("a/b"), "a/b");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(end_text({3, 0}), "ended with status 3");
  EXPECT_THAT(end_text({0, 9}), HasSubstr("signal 9"));
  EXPECT_THAT(iso_text(0), ::testing::MatchesRegex("19(70-01-01|69-12-31)T..:..:00[+-]..:.."));
}

}  // namespace
}  // namespace ait::dump
