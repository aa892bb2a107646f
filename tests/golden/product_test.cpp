#include "golden/product.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "metrics/compare.h"
#include "tensor/half.h"

namespace ait::golden {
namespace {

std::vector<double> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(count);
  for (double& value : out) value = normal(random);
  return out;
}

std::vector<double> norms_of_columns(const Matrix& m) {
  std::vector<double> norms;
  for (size_t j = 0; j < m.columns; ++j) {
    double powers = 0;
    for (size_t k = 0; k < m.rows; ++k) powers += std::pow(m.at(k, j), 4);
    norms.push_back(std::sqrt(powers));
  }
  return norms;
}

void expect_near(const std::vector<double>& expected, const std::vector<double>& found,
                 double tolerance) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], found[i], tolerance) << i;
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
  std::vector<double> norms;
  multiply_plainly(a, b, plain.data());
  multiply(a, b, fast.data(), 0);
  multiply(a, b, single.data(), 1, &norms);
  EXPECT_EQ(fast, single) << "the result depends on the number of threads";
  const double tolerance = 1e-14 * (1 + static_cast<double>(depth));
  expect_near(plain, fast, tolerance);
  expect_near(norms_of_columns(b), norms, tolerance);
}

// Runs a test once for every instruction set that this machine has.
template <typename Body>
void on_every_target(const Body& body) {
  for (const std::string& target : metrics::simd_targets()) {
    ASSERT_TRUE(metrics::force_simd_target(target));
    SCOPED_TRACE(target);
    body();
  }
  metrics::force_simd_target("");
}

TEST(Product, OfShapesAroundTheSizesOfBlocks) {
  on_every_target([] {
    for (const size_t rows : {1, 3, 4, 5, 7, 8, 9, 95})
      for (const size_t columns : {1, 7, 24, 25, 50})
        for (const size_t depth : {1, 191, 193})
          for (const bool turn_a : {false, true})
            expect_same(rows, depth, columns, turn_a, columns % 2 == 1);
  });
}

TEST(Product, LargerThanOneTaskTakes) {
  on_every_target([] {
    for (const bool turn : {false, true})
      for (const size_t rows : {2, 3, 12}) expect_same(rows, 37, 901, false, turn);
    expect_same(110, 5 * 192 + 5, 30, true, true);
    for (const bool turn : {false, true}) expect_same(2 * 512 + 9, 3, 192 + 25, turn, !turn);
  });
}

// Numbers that every type holds, as a tensor of one.
template <typename Stored, typename Convert>
std::vector<Stored> small_numbers(size_t count, std::vector<double>& numbers, Convert convert) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> small(-100, 100);
  std::vector<Stored> stored(count);
  numbers.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int value = small(random);
    numbers[i] = value;
    stored[i] = static_cast<Stored>(convert(value));
  }
  return stored;
}

// With the right side still in a tensor the product is exactly that with its numbers in memory.
template <typename Stored, typename Convert>
void expect_same_from_tensor(DType dtype, size_t rows, size_t depth, size_t columns,
                             Convert convert) {
  constexpr size_t kBefore = 5;  // the matrix begins somewhere in the tensor
  std::vector<double> numbers;
  const auto stored = small_numbers<Stored>(kBefore + depth * columns, numbers, convert);
  const Shape shape = {static_cast<int64_t>(stored.size())};
  const Strides strides = {1};
  const TensorView view = {dtype, shape, strides, reinterpret_cast<const std::byte*>(stored.data()),
                           stored.size()};
  const auto a_data = random_numbers(rows * depth, 1);
  const Matrix a = row_major(a_data.data(), rows, depth);
  for (const bool turn : {false, true}) {
    Matrix in_memory = turn ? transposed(row_major(numbers.data() + kBefore, columns, depth))
                            : row_major(numbers.data() + kBefore, depth, columns);
    Matrix in_tensor = in_memory;
    in_tensor.data = nullptr;
    in_tensor.stored = &view;
    in_tensor.first = kBefore;
    std::vector<double> expected(rows * columns, -1), found(rows * columns, -2);
    std::vector<double> expected_norms, norms;
    multiply(a, in_memory, expected.data(), 0, &expected_norms);
    multiply(a, in_tensor, found.data(), 0, &norms);
    EXPECT_EQ(expected, found) << name(dtype) << turn;
    EXPECT_EQ(expected_norms, norms) << name(dtype) << turn;
  }
}

TEST(Product, WithAMatrixThatIsStillInItsTensor) {
  const auto whole = [](int value) { return value; };
  on_every_target([&] {
    for (const size_t rows : {1, 3, 5, 20})
      for (const size_t depth : {1, 63, 200})
        for (const size_t columns : {1, 30, 211}) {
          expect_same_from_tensor<int8_t>(DType::kInt8, rows, depth, columns, whole);
          expect_same_from_tensor<float>(DType::kFloat32, rows, depth, columns, whole);
          expect_same_from_tensor<double>(DType::kFloat64, rows, depth, columns, whole);
          expect_same_from_tensor<uint16_t>(DType::kFloat16, rows, depth, columns, [](int value) {
            return float_to_fp16(static_cast<float>(value));
          });
          expect_same_from_tensor<uint16_t>(DType::kBFloat16, rows, depth, columns, [](int value) {
            return float_to_bf16(static_cast<float>(value));
          });
        }
  });
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
void expect_panels_like_plain_loops(const Matrix& b, Panels& panels) {
  panels.set(b);
  for (const size_t rows : {1, 8, 13, 200})
    for (const size_t depth : {b.rows, (b.rows + 1) / 2})
      for (const size_t columns : {b.columns, (b.columns + 1) / 2}) {
        const size_t step = depth + 3;
        const auto a_data = random_numbers(rows * step, 1);
        const Matrix part = part_of(b, 0, depth, 0, columns);
        for (const Matrix& a : {Matrix{a_data.data(), rows, depth, step, 1},
                                Matrix{a_data.data(), rows, depth, 1, rows}}) {
          std::vector<double> plain(rows * columns, -1), fast(rows * columns, -2);
          multiply_plainly(a, part, plain.data());
          panels.multiply(a, columns, true, fast.data(), columns);
          expect_near(plain, fast, 1e-11);
          panels.multiply(a, columns, false, fast.data(), columns);
          for (double& value : plain) value *= 2;
          expect_near(plain, fast, 1e-11);
        }
      }
}

TEST(Product, WithPanelsIsThePlainOne) {
  on_every_target([] {
    Panels panels;
    for (const size_t depth : {500, 1, 192, 193})
      for (const size_t columns : {1, 24, 61}) {
        const auto data = random_numbers(depth * columns, 2);
        expect_panels_like_plain_loops(row_major(data.data(), depth, columns), panels);
        expect_panels_like_plain_loops(transposed(row_major(data.data(), columns, depth)), panels);
      }
  });
}

TEST(Product, WithPanelsLeavesWhatIsBesideItAlone) {
  const auto a = random_numbers(5 * 7, 1);
  const auto b = random_numbers(7 * 9, 2);
  Panels panels;
  panels.set(row_major(b.data(), 7, 9));
  std::vector<double> plain(5 * 9), out(5 * 12, -1);
  multiply_plainly(row_major(a.data(), 5, 7), row_major(b.data(), 7, 9), plain.data());
  panels.multiply(row_major(a.data(), 5, 7), 9, true, out.data(), 12);
  for (size_t row = 0; row < 5; ++row)
    for (size_t column = 0; column < 12; ++column) {
      const double expected = column < 9 ? plain[row * 9 + column] : -1;
      ASSERT_NEAR(out[row * 12 + column], expected, 1e-12) << row << " " << column;
    }
}

TEST(Product, NormsOfRowsAreTheirLengths) {
  const auto data = random_numbers(300 * 70, 4);
  const Matrix m = {data.data(), 300, 40, 70, 1};
  const auto norms = row_norms(m);
  ASSERT_EQ(norms.size(), m.rows);
  for (size_t i = 0; i < m.rows; ++i) {
    double squares = 0;
    for (size_t k = 0; k < m.columns; ++k) squares += m.at(i, k) * m.at(i, k);
    ASSERT_NEAR(norms[i], std::sqrt(squares), 1e-12) << i;
  }
}

TEST(Product, FourthNormsAreThoseOfAnyMatrix) {
  const auto data = random_numbers(300 * 70, 4);
  const Matrix rows = row_major(data.data(), 300, 70);
  const Matrix strided = {data.data(), 150, 35, 140, 2};
  on_every_target([&] {
    for (const Matrix& m : {rows, transposed(rows), strided})
      expect_near(norms_of_columns(transposed(m)), fourth_norms(m), 1e-12);
  });
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
  const auto rows = size(120), depth = size(300), columns = size(60);
  const bool turn_a = *rc::gen::arbitrary<bool>(), turn_b = *rc::gen::arbitrary<bool>();
  on_every_target([&] { expect_same(rows, depth, columns, turn_a, turn_b); });
}

}  // namespace
}  // namespace ait::golden
