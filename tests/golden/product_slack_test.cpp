#include "golden/product_slack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "golden/rounding.h"

namespace ait::golden {
namespace {

std::vector<double> normals(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(count);
  for (double& value : out) value = normal(random);
  return out;
}

TEST(ProductSlack, IsNoLessThanTheTermsOfEachSumExplainAndNotMuchMore) {
  for (const size_t depth : {1, 7, 64, 1000}) {
    const size_t rows = 20, columns = 100;
    const auto left = normals(rows * depth, 1), right = normals(depth * columns, 2);
    const Matrix a = row_major(left.data(), rows, depth);
    for (const bool turned : {false, true}) {
      const Matrix b = turned ? transposed(row_major(right.data(), columns, depth))
                              : row_major(right.data(), depth, columns);
      const ProductSlack slack(a, b);
      double wider = 0;
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j) {
          double sum = 0, squares = 0;
          for (size_t k = 0; k < depth; ++k) {
            const double term = a.at(i, k) * b.at(k, j);
            sum += term;
            squares += term * term;
          }
          const double exact = sum_slack_of(walked_squares(depth, sum, squares), squares);
          ASSERT_GE(slack.at(i, j, sum), exact * (1 - 1e-12));
          wider += slack.at(i, j, sum) / exact / static_cast<double>(rows * columns);
        }
      EXPECT_LT(wider, 2.5);
    }
  }
}

TEST(ProductSlack, GrowsWhereTermsAreOrdered) {
  const size_t depth = 1000;
  auto left = normals(depth, 1);
  const std::vector<double> right(depth, 1.0);
  const Matrix b = row_major(right.data(), depth, 1);
  const ProductSlack at_random(row_major(left.data(), 1, depth), b);
  std::sort(left.begin(), left.end());
  const ProductSlack ordered(row_major(left.data(), 1, depth), b);
  EXPECT_GT(ordered.at(0, 0, 0), 5 * at_random.at(0, 0, 0));
}

TEST(ProductSlack, IsNoneForWhatIsNotFinite) {
  const std::vector<double> left = {1, INFINITY, 2, 3}, right = {1, 1};
  const ProductSlack slack(row_major(left.data(), 2, 2), row_major(right.data(), 2, 1));
  EXPECT_EQ(slack.at(0, 0, INFINITY), 0);
  EXPECT_GT(slack.at(1, 0, 5), 0);
  const ProductSlack empty(row_major(left.data(), 2, 0), row_major(right.data(), 0, 1));
  EXPECT_EQ(empty.at(0, 0, 0), 0);
}

TEST(Walk, KeepsWhatIsLostBesideALargeSum) {
  Walk walk;
  walk.add(1e9);
  for (int i = 0; i < 1000; ++i) walk.add(1);
  EXPECT_EQ(walk.sum(), 1e9 + 1000);
  EXPECT_GE(walk.slack(), 1000);
  Walk small;
  for (int i = 0; i < 1000; ++i) small.add(1);
  EXPECT_NEAR(small.slack(), kMargin * kFloat32Unit * std::sqrt(1000.0) * 1000, 1e-4);
  EXPECT_LT(small.drift(), 1);
}

}  // namespace
}  // namespace ait::golden
