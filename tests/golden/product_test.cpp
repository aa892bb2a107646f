#include "golden/product.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "metrics/compare.h"

namespace ait::golden {
namespace {

std::vector<double> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(count);
  for (double& value : out) value = normal(random);
  return out;
}

// The product in blocks is the plain one, but for the order of its sums.
void expect_same(size_t rows, size_t depth, size_t columns, bool turn_a, bool turn_b) {
  const auto a_data = random_numbers(rows * depth, 1);
  const auto b_data = random_numbers(depth * columns, 2);
  const Matrix a = turn_a ? transposed(row_major(a_data.data(), depth, rows))
                          : row_major(a_data.data(), rows, depth);
  const Matrix b = turn_b ? transposed(row_major(b_data.data(), columns, depth))
                          : row_major(b_data.data(), depth, columns);
  std::vector<double> plain(rows * columns, -1);
  std::vector<double> fast(rows * columns, -2);
  std::vector<double> single(rows * columns, -3);
  multiply_plainly(a, b, plain.data());
  multiply(a, b, fast.data(), 0);
  multiply(a, b, single.data(), 1);
  EXPECT_EQ(fast, single) << "the result depends on the number of threads";
  const double tolerance = 1e-14 * (1 + static_cast<double>(depth));
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], fast[i], tolerance) << i;
}

TEST(Product, OfShapesAroundTheSizesOfBlocks) {
  for (const size_t rows : {1, 3, 4, 5, 7, 8, 9, 95, 97, 193})
    for (const size_t columns : {1, 7, 24, 25, 50})
      for (const size_t depth : {1, 191, 193}) expect_same(rows, depth, columns, false, true);
}

TEST(Product, LargerThanOneTaskTakes) {
  for (const bool turn : {false, true})
    for (const size_t rows : {2, 3, 12}) expect_same(rows, 37, 901, false, turn);
  expect_same(110, 2 * 192 * 6 + 5, 30, true, true);  // deeper than one slab
  expect_same(5, 3, 8192 + 25, false, true);          // and more than one part
  expect_same(4096 + 9, 3, 25, true, false);
}

TEST(Product, OfMatricesWhoseStepsAreBothLarge) {
  const auto data = random_numbers(2 * 30 * 20, 3);
  const Matrix a = {data.data(), 9, 20, 40, 2};  // every other number
  const Matrix b = {data.data() + 1, 20, 15, 2, 40};
  std::vector<double> plain(9 * 15);
  std::vector<double> fast(9 * 15);
  multiply_plainly(a, b, plain.data());
  multiply(a, b, fast.data(), 0);
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], fast[i], 1e-12) << i;
  multiply({data.data(), 2, 20, 40, 2}, b, fast.data(), 0);
  for (size_t i = 0; i < 30; ++i) ASSERT_NEAR(plain[i], fast[i], 1e-12) << i;
}

TEST(Product, KeepsWhatIsNotFiniteInItsRow) {
  std::vector<double> a(9 * 5, 1.0);
  a[3] = std::numeric_limits<double>::infinity();
  const std::vector<double> b(5 * 30, 1.0);
  std::vector<double> out(9 * 30);
  multiply(row_major(a.data(), 9, 5), row_major(b.data(), 5, 30), out.data(), 0);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isinf(out[i]), i < 30) << i;
}

// Laid out once, it gives the product with the first rows and columns of the right side.
void expect_panels_like_plain_loops(const Matrix& b, Panels& panels, std::vector<double>& tiles) {
  panels.set(b);
  for (const size_t rows : {1, 8, 13, 200})
    for (const size_t depth : {b.rows, (b.rows + 1) / 2})
      for (const size_t columns : {b.columns, (b.columns + 1) / 2}) {
        const size_t step = depth + 3;
        const auto a_data = random_numbers(rows * step, 1);
        Matrix part = b;
        part.rows = depth;
        part.columns = columns;
        for (const Matrix& a : {Matrix{a_data.data(), rows, depth, step, 1},
                                Matrix{a_data.data(), rows, depth, 1, rows}}) {
          std::vector<double> plain(rows * columns, -1), fast(rows * columns, -2);
          multiply_plainly(a, part, plain.data());
          panels.multiply(a, columns, tiles, fast.data());
          for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], fast[i], 1e-11) << i;
        }
      }
}

TEST(Product, WithPanelsIsThePlainOneOnEveryTarget) {
  for (const std::string& target : metrics::simd_targets()) {
    ASSERT_TRUE(metrics::force_simd_target(target));
    Panels panels;
    std::vector<double> tiles;
    for (const size_t depth : {500, 1, 192, 193})
      for (const size_t columns : {1, 24, 61}) {
        const auto data = random_numbers(depth * columns, 2);
        expect_panels_like_plain_loops(row_major(data.data(), depth, columns), panels, tiles);
        expect_panels_like_plain_loops(transposed(row_major(data.data(), columns, depth)), panels,
                                       tiles);
      }
  }
  metrics::force_simd_target("");
}

TEST(Product, NormsOfRowsAreTheirLengths) {
  const auto data = random_numbers(300 * 70, 4);
  const Matrix rows = row_major(data.data(), 300, 70);
  const Matrix strided = {data.data(), 150, 35, 140, 2};
  for (const Matrix& m : {rows, transposed(rows), strided}) {
    const auto norms = row_norms(m);
    ASSERT_EQ(norms.size(), m.rows);
    for (size_t i = 0; i < m.rows; ++i) {
      double squares = 0;
      for (size_t k = 0; k < m.columns; ++k) squares += m.at(i, k) * m.at(i, k);
      ASSERT_NEAR(norms[i], std::sqrt(squares), 1e-12) << i;
    }
  }
}

TEST(Product, OfNothingIsZeroOrNothing) {
  std::vector<double> out(6, 1);
  multiply(row_major(nullptr, 2, 0), row_major(nullptr, 0, 3), out.data(), 0);
  EXPECT_EQ(out, std::vector<double>(6, 0));
  multiply(row_major(nullptr, 0, 4), row_major(nullptr, 4, 0), nullptr, 0);
}

TEST(Product, IsRightForSmallNumbersOneCanCount) {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6};
  const std::vector<double> b = {1, 0, 2, 1, 0, 3};
  std::vector<double> out(4);
  multiply(row_major(a.data(), 2, 3), row_major(b.data(), 3, 2), out.data(), 0);
  EXPECT_EQ(out, (std::vector<double>{5, 11, 14, 23}));
}

RC_GTEST_PROP(Product, EqualsThePlainLoop, ()) {
  const auto size = [](int highest) { return *rc::gen::inRange<size_t>(1, highest); };
  expect_same(size(120), size(300), size(60), *rc::gen::arbitrary<bool>(),
              *rc::gen::arbitrary<bool>());
}

}  // namespace
}  // namespace ait::golden
