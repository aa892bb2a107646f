#include "launch/output_of.h"

#include <gtest/gtest.h>

namespace ait::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(OutputOf, ReturnsWhatTheProgramPrints) {
  const auto answer = output_of({"sh", "-c", "cat; echo hello; echo noise >&2"}, seconds(10));
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(*answer, "hello\n");
}

TEST(OutputOf, FailsForAnUnknownProgramAndABadStatus) {
  EXPECT_FALSE(output_of({"no-such-program-of-ours"}, seconds(10)));
  EXPECT_FALSE(output_of({"sh", "-c", "echo half; exit 3"}, seconds(10)));
}

TEST(OutputOf, KillsWhatTakesTooLong) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(output_of({"sh", "-c", "sleep 60 & sleep 60"}, milliseconds(200)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST(OutputOf, StopsReadingAFlood) { EXPECT_FALSE(output_of({"yes"}, seconds(10))); }

}  // namespace
}  // namespace ait::launch
