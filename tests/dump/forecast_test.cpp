#include "dump/forecast.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
namespace fs = std::filesystem;

TEST(CountRounds, CountsEachOnce) {
  EXPECT_EQ(count_rounds({{0, 0}}, INT64_MAX), 1U);
  EXPECT_EQ(count_rounds({{3, 5}, {7, 7}}, INT64_MAX), 4U);
  EXPECT_EQ(count_rounds({{3, 5}, {4, 8}, {4, 4}}, INT64_MAX), 6U);
  EXPECT_EQ(count_rounds({{3, 5}, {7, 7}}, 6), 3U);
  EXPECT_EQ(count_rounds({{3, 5}}, 2), 0U);
  EXPECT_EQ(count_rounds({{0, INT64_MAX}}, INT64_MAX), uint64_t{1} << 63);
}

TEST(Forecast, MultipliesOneRound) {
  const ScratchFolder folder;
  Options options;
  options.rounds = {{0, 9}};
  const auto predicted = forecast(options, 20, 20'000, 4, folder.path());
  ASSERT_TRUE(predicted) << predicted.error().text();
  EXPECT_EQ(predicted->rounds_requested, 10U);
  EXPECT_EQ(predicted->rounds_reached, 5U);
  EXPECT_EQ(predicted->tensors, 100U);
  EXPECT_EQ(predicted->bytes, 100'000U);
  EXPECT_GT(predicted->seconds, 0);
  EXPECT_GT(predicted->free_bytes, 0U);
  EXPECT_TRUE(predicted->fits);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Forecast, WarnsWhenItWillNotFit) {
  const ScratchFolder folder;
  const auto predicted = forecast(Options{}, 1'000'000, uint64_t{1} << 60, 0, folder.path());
  ASSERT_TRUE(predicted) << predicted.error().text();
  EXPECT_FALSE(predicted->fits);
  const auto nothing = forecast(Options{}, 0, 0, 0, folder.path());
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->tensors, 0U);
  EXPECT_TRUE(nothing->fits);
}

}  // namespace
}  // namespace ait::dump
