// The example of trigger.h, word for word.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "watch/trigger.h"

namespace ait::watch {
namespace {

TEST(Example, OfTheMainHeader) {
  std::vector<uint64_t> removed;
  const auto remove_tensors = [&](uint64_t each) { removed.push_back(each); };
  // clang-format off
  Trigger trigger(*parse_conditions("nan,spike=10"), 2);
  trigger.see(7, "root.norm", "output", "[1, 64]", Values::of(3, -3, 12));
  for (uint64_t round : trigger.end_round(7)) remove_tensors(round);
  trigger.finish();  // those of the last rounds, of which nothing more can be said
  // clang-format on
  EXPECT_TRUE(removed.empty());
  EXPECT_EQ(trigger.rounds_seen(), 1U);
}

}  // namespace
}  // namespace ait::watch
