#include "report/wrap.h"

#include <gtest/gtest.h>

namespace ait::report {
namespace {

TEST(Wrapped, BreaksBetweenWordsAndFartherIn) {
  EXPECT_EQ(wrapped("  one two three four\n", 12), "  one two\n    three\n    four\n");
  EXPECT_EQ(wrapped("one two\nthree\n\nfour", 7), "one two\nthree\n\nfour");
}

TEST(Wrapped, LeavesLongWordsWholeAndCountsColumns) {
  EXPECT_EQ(wrapped("see /a/very/long/path now", 8), "see\n  /a/very/long/path\n  now");
  EXPECT_EQ(wrapped("\u6f22\u5b57 \u6f22\u5b57", 8), "\u6f22\u5b57\n  \u6f22\u5b57");
  EXPECT_EQ(wrapped("\u6f22\u5b57 \u6f22\u5b57", 9), "\u6f22\u5b57 \u6f22\u5b57");
}

TEST(Wrapped, ChangesNothingWithoutATerminal) {
  EXPECT_EQ(wrapped("  one two three four\n", 0), "  one two three four\n");
}

}  // namespace
}  // namespace ait::report
