// A row of a softmax on every instruction set of this machine against the plain loop.
#include "golden/exponentials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "metrics/compare.h"

namespace ait::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr RowNoise kNoise = {0x1p-11, 0x1p-12, 0x1p-25};

class EachTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(metrics::force_simd_target(GetParam())); }
  void TearDown() override { metrics::force_simd_target(""); }
};

// One row by one of the two ways.
struct Row {
  RowSums sums;
  std::vector<double> scores;
  std::vector<double> noises;
  std::vector<double> each;
};

template <typename Way>
Row run(Way way, std::vector<double> scores) {
  const size_t count = scores.size();
  Row row{{}, std::move(scores), {}, std::vector<double>(count, -1)};
  row.noises.assign((count + kGroupKeys - 1) / kGroupKeys, -1);
  row.sums = way(row.scores.data(), count, kNoise, row.noises.data(), row.each.data());
  return row;
}

void expect_close(double golden, double actual, const char* what, size_t index) {
  if (std::isnan(golden) || std::isinf(golden) || golden == 0) {
    EXPECT_TRUE(golden == actual || (std::isnan(golden) && std::isnan(actual)))
        << what << ' ' << index << ": " << actual << " in place of " << golden;
    return;
  }
  EXPECT_NEAR(actual / golden, 1, 1e-13) << what << ' ' << index;
}

void expect_same(const std::vector<double>& scores) {
  const Row plain = run(exponentials_plainly, scores);
  const Row fast = run(exponentials, scores);
  expect_close(plain.sums.largest, fast.sums.largest, "largest of", scores.size());
  expect_close(plain.sums.total, fast.sums.total, "total of", scores.size());
  expect_close(plain.sums.noise, fast.sums.noise, "noise of", scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    // Below this a number in double precision has fewer digits.
    if (plain.scores[i] != 0 && plain.scores[i] < 1e-290) continue;
    expect_close(plain.scores[i], fast.scores[i], "exponential", i);
    expect_close(plain.each[i], fast.each[i], "noise of exponential", i);
  }
  for (size_t i = 0; i < plain.noises.size(); ++i)
    expect_close(plain.noises[i], fast.noises[i], "noise of group", i);
}

std::vector<double> random_scores(size_t count, double scale) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> out(count);
  for (double& value : out) value = normal(random);
  return out;
}

TEST_P(EachTarget, GivesWhatThePlainLoopGives) {
  for (size_t count = 0; count < 70; ++count)
    for (const double scale : {0.1, 3.0, 200.0}) expect_same(random_scores(count, scale));
}

TEST_P(EachTarget, LeavesNothingOfHiddenKeys) {
  for (const size_t count : {1, 15, 16, 17, 40}) {
    auto scores = random_scores(count, 1);
    for (size_t i = 1; i < count; i += 2) scores[i] = i % 4 == 1 ? -kInfinity : -3e38;
    expect_same(scores);
    std::fill(scores.begin(), scores.end(), -kInfinity);
    const Row row = run(exponentials, scores);
    EXPECT_EQ(row.sums.largest, -kInfinity);
    EXPECT_EQ(row.scores, scores) << "where all are hidden nothing is changed";
  }
}

TEST_P(EachTarget, SpreadsWhatIsNoNumber) {
  for (const double number : {std::nan(""), kInfinity})
    for (const size_t place : {0, 7, 16, 32}) {
      auto scores = random_scores(33, 1);
      scores[place] = number;
      expect_same(scores);
      const Row row = run(exponentials, scores);
      for (const double value : row.scores) EXPECT_TRUE(std::isnan(value));
    }
}

INSTANTIATE_TEST_SUITE_P(Exponentials, EachTarget, testing::ValuesIn(metrics::simd_targets()));

}  // namespace
}  // namespace ait::golden
