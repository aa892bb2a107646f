#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace ait {
namespace {

class ParallelFor : public testing::TestWithParam<size_t> {};

TEST_P(ParallelFor, VisitsEachIndexOnce) {
  constexpr size_t kCount = 10'000;
  std::vector<std::atomic<int>> visits(kCount);
  parallel_for(kCount, GetParam(), [&](size_t i) { ++visits[i]; });
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(visits[i], 1) << i;
}

TEST_P(ParallelFor, DoesNothingForNothing) {
  parallel_for(0, GetParam(), [](size_t) { FAIL(); });
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(0, 1, 2, 8),
                         testing::PrintToStringParamName());

TEST(ParallelForThreads, OneMeansTheCaller) {
  const auto caller = std::this_thread::get_id();
  parallel_for(100, 1, [&](size_t) { ASSERT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ParallelForThreads, AreNoMoreThanAskedFor) {
  constexpr size_t kThreads = 2;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  parallel_for(1000, kThreads, [&](size_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), kThreads);
}

TEST(AvailableThreads, AreAtLeastOne) { EXPECT_GE(available_threads(), 1u); }

}  // namespace
}  // namespace ait
