#include "watch/trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace ait::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

class Watched {
 public:
  explicit Watched(const char* conditions, size_t keep = 2)
      : trigger(*parse_conditions(conditions), keep) {}

  // One round with one tensor.
  void round(double maximum, double norm = 1, const char* shape = "(4,)") {
    trigger.see(next_, "root.fc", "output", shape, Values::of(maximum, -1, norm));
    for (const uint64_t each : trigger.end_round(next_)) removed.push_back(each);
    ++next_;
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) round(1);
  }
  void end() {
    for (const uint64_t each : trigger.finish()) removed.push_back(each);
  }

  Trigger trigger;
  std::vector<uint64_t> removed;

 private:
  uint64_t next_ = 0;
};

TEST(Trigger, KeepsTheRoundsBeforeAndAfter) {
  Watched run("nan");
  run.rounds(10);
  run.round(kNan);
  run.rounds(10);
  run.end();
  EXPECT_THAT(run.trigger.kept(), ElementsAre(Pair(8, 12)));
  EXPECT_THAT(run.removed, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 16, 17, 18, 19, 20));
  EXPECT_EQ(run.trigger.rounds_seen(), 21U);
  ASSERT_EQ(run.trigger.events().size(), 1U);
  const Event event = run.trigger.events().front();
  EXPECT_EQ(event.round, 10U);
  EXPECT_EQ(event.condition, "nan");
  EXPECT_EQ(event.module, "root.fc");
  EXPECT_EQ(event.tensor, "output");
  EXPECT_EQ(event.statistic, "max");
  EXPECT_TRUE(std::isnan(event.value));
}

TEST(Trigger, AConditionThatGoesOnHoldingFiresOnce) {
  Watched run("nan,inf", 1);
  run.rounds(3);
  for (int i = 0; i < 20; ++i) run.round(kNan);
  run.rounds(3);
  run.round(kInf);
  run.rounds(3);
  run.round(kNan);
  run.end();
  EXPECT_THAT(run.trigger.kept(), ElementsAre(Pair(2, 4), Pair(25, 27), Pair(29, 30)));
  EXPECT_EQ(run.trigger.events().size(), 3U);
}

TEST(Trigger, TheFirstTensorOfARoundIsTheEvent) {
  Trigger trigger(*parse_conditions("nan"), 0);
  trigger.see(0, "root.a", "output", "", Values::of(1, 0, 1));
  trigger.see(0, "root.b", "output", "", Values::of(kNan, kNan, 1));
  trigger.see(0, "root.c", "output", "", Values::of(kNan, kNan, 1));
  trigger.end_round(0);
  ASSERT_EQ(trigger.events().size(), 1U);
  EXPECT_EQ(trigger.events().front().module, "root.b");
}

TEST(Trigger, NothingHeldNothingIsKept) {
  Watched run("nan,inf,norm>100,spike=3");
  run.rounds(50);
  run.end();
  EXPECT_THAT(run.trigger.kept(), IsEmpty());
  EXPECT_THAT(run.trigger.events(), IsEmpty());
  EXPECT_EQ(run.removed.size(), 50U);
}

TEST(Trigger, NormsAndInfinities) {
  Watched run("norm>10,inf", 0);
  run.round(1, 10);
  run.round(1, 10.5);
  run.round(-kInf, 1);
  run.end();
  EXPECT_THAT(run.trigger.kept(), ElementsAre(Pair(1, 2)));
  EXPECT_EQ(run.trigger.events()[0].value, 10.5);
  EXPECT_EQ(run.trigger.events()[1].statistic, "max");
}

TEST(Trigger, EveryNthRoundIsKeptAlone) {
  Watched run("every=5,nan", 1);
  run.rounds(12);
  run.round(kNan);
  run.rounds(5);
  run.end();
  EXPECT_THAT(run.trigger.kept(), ElementsAre(Pair(0, 0), Pair(5, 5), Pair(10, 13), Pair(15, 15)));
}

TEST(Trigger, ASpikeIsMeasuredByTheRoundsBefore) {
  Watched run("spike=4", 0);
  for (int i = 0; i < 20; ++i) run.round(1 + 0.1 * (i % 5), 10 + i % 7);
  run.round(1, 60);
  run.round(6, 10);
  run.rounds(2);
  run.round(6, 10);
  const auto events = run.trigger.events();
  ASSERT_EQ(events.size(), 2U);  // of two in a row the first
  EXPECT_EQ(events[0].round, 20U);
  EXPECT_EQ(events[0].statistic, "norm");
  EXPECT_EQ(events[0].value, 60);
  EXPECT_NEAR(*events[0].median, 13, 1);
  EXPECT_EQ(events[1].round, 24U);
  EXPECT_EQ(events[1].statistic, "largest magnitude");
}

TEST(Trigger, AFewRoundsAreNoHistory) {
  Watched run("spike=4", 0);
  run.rounds(7);
  run.round(1, 50);
  EXPECT_THAT(run.trigger.events(), IsEmpty());
}

// A prompt of many tokens has another norm than the single tokens that follow it.
TEST(Trigger, ShapesHaveHistoriesOfTheirOwn) {
  Watched run("spike=4", 0);
  for (int i = 0; i < 40; ++i) run.round(1, i % 10 == 0 ? 500 : 10, i % 10 == 0 ? "(9,)" : "(1,)");
  EXPECT_THAT(run.trigger.events(), IsEmpty());
  run.round(1, 500, "(1,)");
  EXPECT_EQ(run.trigger.events().size(), 1U);
}

TEST(Trigger, AValueThatGrowsSlowlyIsNoSpike) {
  Watched run("spike=2", 0);
  double norm = 1;
  for (int i = 0; i < 300; ++i) run.round(1, norm *= 1.02);
  EXPECT_THAT(run.trigger.events(), IsEmpty());
}

TEST(Trigger, MoreEventsThanAnybodyLooksAtAreCounted) {
  Watched run("nan", 0);
  for (int i = 0; i < 1200; ++i) {
    run.round(kNan);
    run.round(1);
  }
  run.end();
  EXPECT_EQ(run.trigger.events().size(), Trigger::kMaxEvents);
  EXPECT_EQ(run.trigger.more_events(), 200U);
  EXPECT_EQ(run.removed.size(), 1400U);
}

// Rounds of several threads end in any order.
TEST(Trigger, EveryRoundIsEitherKeptOrRemovedOnce) {
  for (const size_t keep : {size_t{0}, size_t{1}, size_t{3}}) {
    Trigger trigger(*parse_conditions("nan,every=13"), keep);
    std::multiset<uint64_t> removed;
    for (uint64_t i = 0; i < 200; ++i) {
      const uint64_t round = i ^ 1;
      trigger.see(round, "m", "output", "", Values::of(round % 31 == 0 ? kNan : 1.0, 0, 1));
      for (const uint64_t each : trigger.end_round(round)) removed.insert(each);
    }
    for (const uint64_t each : trigger.finish()) removed.insert(each);
    for (const auto& [first, last] : trigger.kept())
      for (uint64_t each = first; each <= last; ++each) removed.insert(each);
    EXPECT_EQ(removed.size(), 200U);
    EXPECT_EQ(std::set<uint64_t>(removed.begin(), removed.end()).size(), 200U);
  }
}

}  // namespace
}  // namespace ait::watch
