// Where the error is, on every instruction set of this CPU against plain loops in long double.
#include <gtest/gtest.h>

#include "data.h"
#include "metrics/compare.h"
#include "reference.h"

namespace ait::metrics {
namespace {

// Sums are right to 1e-6. A median is right to 2.5e-4, and an error may be a median of what was
// divided by another.
constexpr double kSumTolerance = 1e-6;
constexpr double kMedianTolerance = 6e-4;

ErrorProfile profile_of(const Data& golden, const Data& actual,
                        const std::vector<bool>* padding = nullptr, size_t threads = 1) {
  Request request;
  request.profile = true;
  request.padding = padding;
  request.threads = threads;
  const auto compared = compare(golden.view(), actual.view(), request);
  EXPECT_TRUE(compared);
  EXPECT_TRUE(compared->profile.has_value());
  return compared->profile.value_or(ErrorProfile());
}

void expect_near(double got, double want, double tolerance, const char* what) {
  if (std::isinf(want)) {
    EXPECT_EQ(got, want) << what;
  } else {
    EXPECT_NEAR(got, want, want * tolerance) << what;
  }
}

void expect_rows(const ErrorProfile& got, const ErrorProfile& want) {
  expect_near(got.error, want.error, kSumTolerance, "error");
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.worst_row, want.worst_row);
  expect_near(got.worst_row_error, want.worst_row_error, kMedianTolerance, "worst_row_error");
  expect_near(got.usual_row_error, want.usual_row_error, kMedianTolerance, "usual_row_error");
  EXPECT_EQ(got.flushed, want.flushed);
}

void expect_columns(const ErrorProfile& got, const ErrorProfile& want) {
  EXPECT_EQ(got.columns, want.columns);
  EXPECT_EQ(got.column_rows, want.column_rows);
  EXPECT_EQ(got.worst_column, want.worst_column);
  expect_near(got.worst_column_error, want.worst_column_error, kMedianTolerance,
              "worst_column_error");
  expect_near(got.usual_column_error, want.usual_column_error, kMedianTolerance,
              "usual_column_error");
}

// Of at most 32 rows and 256 columns, so that all of them are looked at.
void check(const Data& golden, const Data& actual, const std::vector<bool>* padding = nullptr) {
  const ErrorProfile got = profile_of(golden, actual, padding);
  const ErrorProfile want = reference_profile(golden.view(), actual.view(), padding);
  expect_rows(got, want);
  expect_columns(got, want);
}

size_t elements_of(const Shape& shape) { return *count_elements(shape); }

// Rows and columns of different size and with different errors.
struct Pair {
  std::vector<double> golden;
  std::vector<double> actual;
};
Pair uneven(const Shape& shape, unsigned seed, double noise = 0.01) {
  Pair pair;
  pair.golden = normal(elements_of(shape), seed);
  const std::vector<double> errors = normal(pair.golden.size(), seed + 1, noise);
  const size_t columns = shape.empty() ? 1 : static_cast<size_t>(shape.back());
  for (size_t i = 0; i < pair.golden.size(); ++i) {
    const size_t row = i / columns;
    const size_t column = i % columns;
    pair.golden[i] *= 1 + static_cast<double>(row % 7) + 0.1 * static_cast<double>(column % 3);
    pair.actual.push_back(pair.golden[i] + errors[i] * (1 + static_cast<double>(column % 5) +
                                                        static_cast<double>(row % 4)));
  }
  return pair;
}

class Profile : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_simd_target(GetParam())); }
  void TearDown() override { force_simd_target(""); }
};

TEST_P(Profile, AgreesWithPlainLoopsForEveryPairOfTypes) {
  const Shape shape = {20, 50};
  const Pair pair = uneven(shape, 1, 0.3);
  for (const DType g : kTypes)
    for (const DType m : kTypes) {
      SCOPED_TRACE(std::string(name(g)) + " against " + std::string(name(m)));
      check(make(g, pair.golden, shape), make(m, pair.actual, shape));
    }
}

TEST_P(Profile, AgreesForAnyBytesOfEveryType) {
  std::mt19937 random(2);
  for (size_t type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    SCOPED_TRACE(name(dtype));
    Data golden = make(DType::kUInt8, std::vector<double>(24 * 40 * size_bytes(dtype)));
    for (std::byte& byte : golden.bytes) byte = static_cast<std::byte>(random());
    golden.dtype = dtype;
    golden.shape = {24, 40};
    golden.strides = row_major_strides(golden.shape);
    Data actual = golden;
    for (size_t i = 0; i < actual.bytes.size(); i += 3) actual.bytes[i] ^= std::byte{1};
    check(golden, actual);
  }
}

TEST_P(Profile, AgreesForShapesOfAllKinds) {
  const std::vector<Shape> shapes = {
      {1},      {7},      {200},    {1, 1},    {5, 1},   {32, 1}, {4, 3},   {3, 1, 2},
      {31, 33}, {2, 255}, {30, 64}, {32, 256}, {9, 100}, {8, 16}, {32, 96}, {2, 3, 5, 7}};
  for (const Shape& shape : shapes) {
    const Pair pair = uneven(shape, 3);
    for (const DType dtype :
         {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(shape_text(shape) + " of " + std::string(name(dtype)));
      check(make(dtype, pair.golden, shape), make(dtype, pair.actual, shape));
    }
  }
}

TEST_P(Profile, RowsAreExactHoweverLongAndWhereverTheyEnd) {
  const std::vector<Shape> shapes = {{70, 1000},  {70, 4096},  {40, 8192},  {100, 3000},
                                     {2, 300001}, {2, 262144}, {1, 300000}, {256, 64}};
  for (const Shape& shape : shapes) {
    Pair pair = uneven(shape, 4);
    for (const DType dtype : {DType::kBFloat16, DType::kInt32}) {
      SCOPED_TRACE(shape_text(shape) + " of " + std::string(name(dtype)));
      const Data golden = make(dtype, pair.golden, shape);
      const Data actual = make(dtype, pair.actual, shape);
      const ErrorProfile want = reference_profile(golden.view(), actual.view(), nullptr);
      const ErrorProfile got = profile_of(golden, actual);
      expect_rows(got, want);
      expect_near(got.worst_row_error, want.worst_row_error, kSumTolerance, "worst_row_error");
      EXPECT_EQ(got.columns, static_cast<size_t>(shape[1]));
    }
  }
}

TEST_P(Profile, LeavesOutPaddingAndWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const int64_t columns : {3, 32, 50, 200}) {
    const Shape shape = {30, columns};
    Pair pair = uneven(shape, 5);
    std::vector<bool> padding(30);
    for (const size_t row : {0, 1, 7, 9, 28, 29}) {
      padding[row] = true;
      for (int64_t i = 0; i < columns; ++i)
        pair.actual[row * static_cast<size_t>(columns) + static_cast<size_t>(i)] = 1e4;
    }
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(std::to_string(columns) + " of " + std::string(name(dtype)));
      check(make(dtype, pair.golden, shape), make(dtype, pair.actual, shape), &padding);
      Pair holes = pair;
      holes.golden[10] = NAN;
      holes.actual[13] = -inf;
      // A row of which nothing is left.
      const auto width = static_cast<size_t>(columns);
      for (size_t i = 5 * width; i < 6 * width; ++i)
        (i % 2 == 0 ? holes.golden : holes.actual)[i] = inf;
      check(make(dtype, holes.golden, shape), make(dtype, holes.actual, shape), &padding);
      check(make(dtype, holes.golden, shape), make(dtype, holes.actual, shape));
      const std::vector<bool> all(30, true);
      const ErrorProfile none =
          profile_of(make(dtype, pair.golden, shape), make(dtype, pair.actual, shape), &all);
      EXPECT_EQ(none.rows, 0u);
      EXPECT_EQ(none.worst_row_error, 0);
      EXPECT_EQ(none.columns, 0u);
    }
  }
}

TEST_P(Profile, SquaresNeitherOverflowNorVanish) {
  const Shape shape = {20, 64};
  const Pair pair = uneven(shape, 6);
  for (const double scale : {1e-300, 1e-40, 1e-30, 1e-20, 1e-12, 1e12, 1e20, 1e30, 1e37, 1e300}) {
    std::vector<double> golden = pair.golden;
    std::vector<double> actual = pair.actual;
    for (double& v : golden) v *= scale;
    for (double& v : actual) v *= scale;
    SCOPED_TRACE(scale);
    check(make(DType::kFloat64, golden, shape), make(DType::kFloat64, actual, shape));
    if (scale < 1e-40 || scale > 1e37) continue;
    check(make(DType::kFloat32, golden, shape), make(DType::kFloat32, actual, shape));
    check(make(DType::kBFloat16, golden, shape), make(DType::kBFloat16, actual, shape));
  }
  // Rows that have nothing to do with each other.
  std::vector<double> golden = pair.golden;
  std::vector<double> actual = pair.actual;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double scale = std::pow(10, static_cast<double>(i / 64) * 3 - 30);
    golden[i] *= scale;
    actual[i] *= scale;
  }
  check(make(DType::kFloat32, golden, shape), make(DType::kFloat32, actual, shape));
}

TEST_P(Profile, CountsWhatIsSaturatedAndWhatIsFlushed) {
  const auto counts = [](DType dtype, const std::vector<double>& golden,
                         const std::vector<double>& actual) {
    const ErrorProfile got = profile_of(make(dtype, golden, {2, 4}), make(dtype, actual, {2, 4}));
    return std::pair(got.saturated, got.flushed);
  };
  using Counts = std::pair<size_t, size_t>;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> golden = {1, 2, 3, 4, 5, 0, -7, 8};
  EXPECT_EQ(counts(DType::kFloat16, golden, {1, 65504, inf, -65504, 0, 0, -inf, NAN}),
            Counts(4, 1));
  EXPECT_EQ(counts(DType::kFloat16, golden, {1, 65472, 3, 4, 5, 0, -7, 0}), Counts(0, 1));
  EXPECT_EQ(counts(DType::kBFloat16, golden, {1, 0x1.fep127, 3, 4, 5, 1, -0.0, 8}), Counts(1, 1));
  EXPECT_EQ(counts(DType::kFloat32, golden, {-0x1.fffffep127, 0, 0, 4, 5, 0, -7, 8}), Counts(1, 2));
  EXPECT_EQ(
      counts(DType::kFloat64, golden, {std::numeric_limits<double>::max(), 2, 3, 4, 5, 0, 0, 8}),
      Counts(1, 1));
  EXPECT_EQ(counts(DType::kFloat8E4M3FN, golden, {448, 2, 3, 4, 5, 0, -448, 0}), Counts(2, 1));
  EXPECT_EQ(counts(DType::kFloat8E5M2, golden, {57344, inf, 3, 4, 5, 0, -7, 8}), Counts(2, 0));
  // The tests' integers are ten times the value.
  EXPECT_EQ(counts(DType::kInt8, golden, {12.7, 2, 3, 4, -12.8, 0, -7, 0}), Counts(2, 1));
  EXPECT_EQ(counts(DType::kUInt8, golden, {25.5, 0, 3, 4, 5, 0, 0, 8}), Counts(1, 1));
  EXPECT_EQ(counts(DType::kBool, golden, {1, 0, 1, 1, 1, 1, 1, 1}), Counts(0, 1));

  std::vector<bool> padding = {false, true};
  const ErrorProfile got =
      profile_of(make(DType::kFloat16, golden, {2, 4}),
                 make(DType::kFloat16, {1, 0, 65504, 4, 65504, 5, 0, 0}, {2, 4}), &padding);
  EXPECT_EQ(got.saturated, 1u);
  EXPECT_EQ(got.flushed, 1u);
}

// Flushed values are looked for where something hints at them, so that none of these may be missed.
TEST_P(Profile, CountsFlushedValuesOfAnySize) {
  for (const double size : {1e4, 1.0, 1e-6, 0x1p-23, 0x1p-24, 1e-30}) {
    SCOPED_TRACE(size);
    std::vector<double> golden = normal(96 * 64, 7);
    std::vector<double> actual = near(golden, 1e-4, 8);
    for (const size_t at : {70, 5000, 6143}) {
      golden[at] = size;
      actual[at] = 0;
    }
    EXPECT_EQ(
        profile_of(make(DType::kFloat32, golden, {96, 64}), make(DType::kFloat32, actual, {96, 64}))
            .flushed,
        3u);
  }
}

TEST_P(Profile, SeesOneDamagedColumn) {
  for (const auto& [rows, columns] :
       {std::pair<size_t, size_t>{130, 4096}, {600, 100}, {8, 20000}}) {
    const Shape shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    const std::vector<double> golden = normal(rows * columns, 9, 100);
    std::vector<double> actual = near(golden, 1e-3, 10);
    const size_t damaged = columns - 7;
    for (size_t row = 0; row < rows; ++row) actual[row * columns + damaged] = 0;
    for (const DType dtype : {DType::kBFloat16, DType::kInt16}) {
      SCOPED_TRACE(shape_text(shape) + " of " + std::string(name(dtype)));
      const ErrorProfile got = profile_of(make(dtype, golden, shape), make(dtype, actual, shape));
      EXPECT_EQ(got.worst_column, damaged);
      EXPECT_NEAR(got.worst_column_error, 1, 0.5);
      EXPECT_LT(got.usual_column_error, 0.01);
      EXPECT_GE(got.column_rows, std::min<size_t>(rows, 32));
      EXPECT_LE(got.column_rows, 128u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Profile, ::testing::ValuesIn(simd_targets()),
                         [](const auto& target) { return target.param; });

TEST(ProfileOfATensor, OneDestroyedRowInAMillionIsSeen) {
  for (const auto& [rows, columns] :
       {std::pair<size_t, size_t>{1'000'000, 1}, {1'000'000, 5}, {300'000, 32}}) {
    const Shape shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    SCOPED_TRACE(shape_text(shape));
    std::vector<double> golden(rows * columns);
    for (size_t i = 0; i < golden.size(); ++i) golden[i] = 1 + static_cast<double>(i % 101) / 101;
    std::vector<double> actual = golden;
    for (size_t i = 0; i < golden.size(); ++i) actual[i] *= 1 + 1e-3 * static_cast<double>(i % 3);
    const size_t destroyed = rows / 3;
    const size_t filler = rows - 1;
    for (size_t i = 0; i < columns; ++i) {
      actual[destroyed * columns + i] *= -1;
      actual[filler * columns + i] *= -9;
    }
    std::vector<bool> padding(rows);
    padding[filler] = true;
    const Data g = make(DType::kFloat32, golden, shape);
    const Data m = make(DType::kFloat32, actual, shape);
    const ErrorProfile got = profile_of(g, m, &padding, 2);
    EXPECT_EQ(got.rows, rows - 1);
    EXPECT_EQ(got.worst_row, destroyed);
    EXPECT_NEAR(got.worst_row_error, 2, 0.01);
    EXPECT_NEAR(got.usual_row_error, 1.2e-3, 0.6e-3);
    EXPECT_EQ(got.columns, columns);
    const ErrorProfile with_padding = profile_of(g, m);
    EXPECT_EQ(with_padding.worst_row, filler);
    EXPECT_NEAR(with_padding.worst_row_error, 10, 0.03);
  }
}

// Medians of many rows and columns are those of some of them, even where rows come in periods.
TEST(ProfileOfATensor, WhatIsUsualIsThatOfAllRows) {
  const Shape shape = {2048, 512};
  Pair pair = uneven(shape, 11);
  for (size_t i = 0; i < pair.golden.size(); ++i)
    if (i / 512 % 16 == 0) pair.actual[i] = pair.golden[i] * 1.5;
  const Data golden = make(DType::kFloat32, pair.golden, shape);
  const Data actual = make(DType::kFloat32, pair.actual, shape);
  const ErrorProfile got = profile_of(golden, actual);
  const ErrorProfile want = reference_profile(golden.view(), actual.view(), nullptr);
  EXPECT_EQ(got.column_rows, 128u);
  EXPECT_NEAR(got.usual_row_error, want.usual_row_error, 0.2 * want.usual_row_error);
  EXPECT_NEAR(got.usual_column_error, want.usual_column_error, 0.2 * want.usual_column_error);
}

TEST(ProfileOfATensor, DoesNotDependOnTheThreadCount) {
  for (const Shape& shape : {Shape{700, 3001}, Shape{300'000, 7}, Shape{3, 700'000}}) {
    const Pair pair = uneven(shape, 12);
    const Data golden = make(DType::kFloat32, pair.golden, shape);
    const Data actual = make(DType::kBFloat16, pair.actual, shape);
    const ErrorProfile one = profile_of(golden, actual);
    for (const size_t threads : {2, 3, 8}) {
      const ErrorProfile many = profile_of(golden, actual, nullptr, threads);
      EXPECT_EQ(one.error, many.error);
      EXPECT_EQ(one.worst_row, many.worst_row);
      EXPECT_EQ(one.worst_row_error, many.worst_row_error);
      EXPECT_EQ(one.usual_row_error, many.usual_row_error);
      EXPECT_EQ(one.worst_column, many.worst_column);
      EXPECT_EQ(one.worst_column_error, many.worst_column_error);
      EXPECT_EQ(one.usual_column_error, many.usual_column_error);
      EXPECT_EQ(one.flushed, many.flushed);
    }
  }
}

TEST(ProfileOfATensor, IsTheSameForOtherStrides) {
  const Pair pair = uneven({30, 70}, 13);
  std::vector<double> columns(pair.actual.size());
  for (size_t i = 0; i < 30; ++i)
    for (size_t j = 0; j < 70; ++j) columns[j * 30 + i] = pair.actual[i * 70 + j];
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Data golden = make(dtype, pair.golden, {30, 70});
    Data fortran = make(dtype, columns, {30, 70});
    fortran.strides = {1, 30};
    check(golden, fortran);
  }
}

TEST(ProfileOfATensor, EqualRowsAreNamedByTheFirst) {
  // Rows of 100 begin at another place of a vector and of a block each.
  const std::vector<double> row = normal(100, 14);
  const std::vector<double> other = near(row, 0.1, 15);
  std::vector<double> golden;
  std::vector<double> actual;
  for (size_t i = 0; i < 200; ++i) {
    golden.insert(golden.end(), row.begin(), row.end());
    const std::vector<double>& mine = i % 50 == 3 ? other : row;
    actual.insert(actual.end(), mine.begin(), mine.end());
  }
  const ErrorProfile got = profile_of(make(DType::kFloat32, golden, {200, 100}),
                                      make(DType::kFloat32, actual, {200, 100}));
  EXPECT_EQ(got.worst_row, 3u);
  EXPECT_EQ(got.usual_row_error, 0);
}

TEST(ProfileOfATensor, RowsOfZerosAreMeasuredByTheOthers) {
  std::vector<double> golden(20 * 16);
  std::vector<double> actual(20 * 16);
  for (size_t i = 0; i < 16; ++i) golden[i] = actual[i] = 10;
  actual[19 * 16] = 1;  // golden is 0 there; |g| of the only other row is 40
  const ErrorProfile got =
      profile_of(make(DType::kFloat32, golden, {20, 16}), make(DType::kFloat32, actual, {20, 16}));
  EXPECT_EQ(got.worst_row, 19u);
  EXPECT_NEAR(got.worst_row_error, 1 / 4.0, 1e-3);
  const Data zeros = make(DType::kFloat32, std::vector<double>(20 * 16), {20, 16});
  const ErrorProfile none = profile_of(zeros, make(DType::kFloat32, actual, {20, 16}));
  EXPECT_TRUE(std::isinf(none.error));
  EXPECT_TRUE(std::isinf(none.worst_row_error));
  EXPECT_EQ(none.worst_row, 0u);
  EXPECT_EQ(none.usual_row_error, 0);
  const ErrorProfile all =
      profile_of(zeros, make(DType::kFloat32, std::vector<double>(20 * 16, 1), {20, 16}));
  EXPECT_TRUE(std::isinf(all.usual_row_error)) << all.usual_row_error;
  EXPECT_TRUE(std::isinf(all.usual_column_error)) << all.usual_column_error;
}

TEST(ProfileOfATensor, IsGivenOnlyWhereAskedForAndWhereSomethingDiffers) {
  const Data golden = make(DType::kFloat32, {1, 2, 0, 4});
  const Data actual = make(DType::kFloat32, {1, 2, 0, 5});
  EXPECT_FALSE(compare(golden.view(), actual.view(), {})->profile);
  Request request;
  request.profile = true;
  EXPECT_FALSE(compare(golden.view(), golden.view(), request)->profile);
  const Data other_zero = make(DType::kFloat32, {1, 2, -0.0, 4});
  EXPECT_FALSE(compare(golden.view(), other_zero.view(), request)->profile);
  const std::vector<bool> too_long = {true, true};
  request.padding = &too_long;
  EXPECT_EQ(compare(golden.view(), actual.view(), request)->profile->rows, 1u);
}

// The kernels that other definitions of the metrics need are others.
TEST(ProfileOfATensor, DoesNotDependOnTheOtherMetrics) {
  const Pair pair = uneven({30, 64}, 16);
  const Data golden = make(DType::kFloat32, pair.golden, {30, 64});
  const Data actual = make(DType::kFloat32, pair.actual, {30, 64});
  Request request;
  request.profile = true;
  request.rows = true;
  request.mask_absolute = true;
  request.non_finite = NonFinite::kWithhold;
  const auto got = compare(golden.view(), actual.view(), request);
  const ErrorProfile want = reference_profile(golden.view(), actual.view(), nullptr);
  expect_rows(*got->profile, want);
  expect_columns(*got->profile, want);
}

}  // namespace
}  // namespace ait::metrics
