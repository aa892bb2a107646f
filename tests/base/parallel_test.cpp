#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
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

TEST(WithThreads, HoldsForTheLoopsInside) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  with_threads(1, [&] {
    parallel_for(100, 0, [&](size_t) {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  });
  EXPECT_EQ(seen.size(), 1u);
}

class RunPipeline : public testing::TestWithParam<size_t> {};

TEST_P(RunPipeline, PreparesAndFinishesInOrderAndWorksOnEachOnce) {
  constexpr size_t kCount = 2000;
  constexpr size_t kInFlight = 6;
  std::vector<size_t> prepared;
  std::vector<size_t> finished;
  std::vector<int> worked(kCount);
  Pipeline line;
  line.prepare = [&](size_t i) {
    prepared.push_back(i);
    EXPECT_LE(prepared.size() - finished.size(), kInFlight);
    return true;
  };
  line.work = [&](size_t i) { ++worked[i]; };
  line.finish = [&](size_t i) {
    EXPECT_EQ(worked[i], 1);
    finished.push_back(i);
  };
  with_threads(GetParam(), [&] { EXPECT_EQ(run_pipeline(kCount, kInFlight, line), kCount); });
  std::vector<size_t> order(kCount);
  std::iota(order.begin(), order.end(), size_t{0});
  EXPECT_EQ(prepared, order);
  EXPECT_EQ(finished, order);
}

TEST_P(RunPipeline, FinishesWhatWasPreparedWhenItIsStopped) {
  size_t finished = 0;
  Pipeline line;
  line.prepare = [](size_t i) { return i < 50; };
  line.work = [](size_t) {};
  line.finish = [&](size_t) { ++finished; };
  with_threads(GetParam(), [&] { EXPECT_EQ(run_pipeline(1000, 8, line), 50u); });
  EXPECT_EQ(finished, 50u);
}

INSTANTIATE_TEST_SUITE_P(Threads, RunPipeline, testing::Values(1, 2, 8),
                         testing::PrintToStringParamName());

TEST(AvailableThreads, AreAtLeastOne) { EXPECT_GE(available_threads(), 1u); }

}  // namespace
}  // namespace ait
