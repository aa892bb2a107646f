#include "compare/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "compare/non_finite.h"
#include "tensors.h"

namespace ait::compare {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const Options kOwn{MetricCompat::kOwn, false, 1};
const Options kMsit{MetricCompat::kMsit, false, 1};
const Options kAit{MetricCompat::kAit, false, 1};

TEST(Measure, SaysNothingOfAnOrdinaryPair) {
  const Row row = measure(floats({1, 2, 3}), floats({1, 2, 4}), kOwn);
  EXPECT_EQ(row.reason, "");
  ASSERT_TRUE(metrics_of(row));
  EXPECT_EQ(row.comparison->max_absolute_error, 1);
  EXPECT_EQ(row.golden.statistics->maximum, 3);
  EXPECT_EQ(row.actual.statistics->maximum, 4);
}

TEST(Measure, SaysWhereTheErrorIsIfAsked) {
  const auto golden = floats({2, 2}, {1, 2, 3, 4});
  const auto actual = floats({2, 2}, {1, 2, 3, 5});
  EXPECT_FALSE(measure(golden, actual, kOwn).comparison->profile);
  for (Options options : {kOwn, kMsit, kAit}) {
    options.profile = true;
    const Row row = measure(golden, actual, options);
    EXPECT_EQ(row.comparison->profile->worst_row, 1U);
    EXPECT_NEAR(row.comparison->profile->worst_row_error, 1 / 5.0, 1e-6);
    const std::vector<bool> padding = {false, true};
    EXPECT_EQ(measure(golden, actual, options, &padding).comparison->profile->error, 0);
  }
}

TEST(Measure, TakesShapesThatDifferInOnesOnlyAsEqual) {
  EXPECT_EQ(measure(floats({1, 2, 2}, {1, 2, 3, 4}), floats({2, 2, 1}, {1, 2, 3, 4}), kOwn).reason,
            "");
}

TEST(Measure, ComparesOtherShapesOfEqualCountFlattenedAndSaysSo) {
  const Row row =
      measure(floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 2}, {1, 2, 3, 4, 5, 6}), kOwn);
  EXPECT_EQ(row.reason, "shape differs, compared flattened.");
  EXPECT_TRUE(metrics_of(row));
}

TEST(Measure, GivesBothSidesStatisticsWhenCountsDiffer) {
  const Row row = measure(floats({1, 2, 3}), floats({1, kNan}), kOwn);
  EXPECT_EQ(row.reason, "data shape doesn't match. my_data includes NAN or inf.");
  EXPECT_FALSE(metrics_of(row));
  EXPECT_EQ(row.golden.statistics->mean, 2);
  EXPECT_EQ(row.actual.statistics->nan, 1U);
}

TEST(Measure, HasNothingToSayOfTwoEmptyTensorsButThat) {
  const Row row = measure(floats({}), floats({0, 4}, {}), kOwn);
  EXPECT_EQ(row.reason, "data is empty.");
  EXPECT_FALSE(metrics_of(row));
}

TEST(Measure, CallsOneEmptyTensorAShapeMismatch) {
  EXPECT_EQ(measure(floats({}), floats({1}), kOwn).reason, "data shape doesn't match.");
}

TEST(Measure, MeasuresTheFinitePositionsAndNamesTheSide) {
  const Row row = measure(floats({1, kNan, 3}), floats({1, 2, 4}), kOwn);
  EXPECT_EQ(row.reason, "golden_data includes NAN or inf.");
  ASSERT_TRUE(metrics_of(row));
  EXPECT_EQ(row.comparison->compared, 2U);
  EXPECT_EQ(row.comparison->max_absolute_error, 1);
  EXPECT_EQ(measure(floats({kInf, 1}), floats({1, kNan}), kOwn).reason,
            "golden_data includes NAN or inf. my_data includes NAN or inf.");
}

TEST(Measure, HasNoMetricsWhereNoPositionIsFiniteOnBothSides) {
  EXPECT_FALSE(metrics_of(measure(floats({1, kNan}), floats({kInf, 2}), kOwn)));
}

TEST(Measure, KnowsWhetherNanAndInfinitiesStandOnOneSideOnly) {
  const auto differ = [](const std::vector<float>& golden, const std::vector<float>& actual,
                         const Options& options = kOwn) {
    return non_finite_differ(measure(floats(golden), floats(actual), options));
  };
  EXPECT_FALSE(differ({1, 2}, {1, 3}));
  EXPECT_FALSE(differ({1, kNan, kInf}, {2, kNan, kInf}));
  EXPECT_TRUE(differ({1, 2}, {1, kNan}));
  EXPECT_TRUE(differ({kInf, 2}, {1, 2}));
  EXPECT_TRUE(differ({1, kNan}, {kNan, 1}));
  EXPECT_TRUE(differ({1, kNan}, {1, kInf}));
  EXPECT_TRUE(differ({1, 2}, {kNan, kNan}));
  EXPECT_TRUE(differ({1, 2}, {1, kNan}, kMsit));
  EXPECT_FALSE(differ({1, 2, 3}, {1, kNan})) << "nothing stood against anything";
}

TEST(Measure, KnowsItOfStatisticsToo) {
  const auto described = [](float maximum) {
    formats::Description description{DType::kFloat32, {2}, false, {}};
    description.statistics = {maximum, 0, maximum, 1, 0};
    return Content(description);
  };
  EXPECT_TRUE(non_finite_differ(measure(described(kNan), floats({1, 2}), kOwn)));
  EXPECT_TRUE(non_finite_differ(measure(described(1), described(kInf), kOwn)));
  EXPECT_FALSE(non_finite_differ(measure(described(kNan), floats({1, kNan}), kOwn)));
  EXPECT_FALSE(non_finite_differ(measure(described(1), floats({1, 2}), kOwn)));
  EXPECT_FALSE(non_finite_differ(measure(described(kNan), floats({1, 2, 3}), kOwn)));
}

TEST(Measure, FindsTheFirstValueThatIsFiniteOnOneSideOnly) {
  const auto none = find_non_finite_difference(*floats({1, kNan}), *floats({2, kNan}));
  EXPECT_EQ(none.count, 0U);
  std::vector<float> golden(10000, 1);
  std::vector<float> actual = golden;
  golden[3] = actual[3] = kNan;
  actual[7000] = -kInf;
  golden[8000] = kNan;
  actual[8000] = kInf;
  const auto found = find_non_finite_difference(*floats(golden), *floats(actual));
  EXPECT_EQ(found.count, 2U);
  EXPECT_EQ(found.first_index, 7000U);
  EXPECT_EQ(found.golden, 1);
  EXPECT_EQ(found.actual, -kInf);
  const auto complex_golden =
      make_tensor(DType::kComplex64, {2}, std::vector<std::complex<float>>{{1, 2}, {3, 4}});
  const auto complex_actual =
      make_tensor(DType::kComplex64, {2}, std::vector<std::complex<float>>{{1, 2}, {3, kNan}});
  const auto part = find_non_finite_difference(*complex_golden, *complex_actual);
  EXPECT_EQ(part.count, 1U);
  EXPECT_EQ(part.first_index, 3U);
  EXPECT_EQ(part.golden, 4);
}

TEST(Measure, WithholdsMetricsOfNonFiniteDataAsTheOldToolsDid) {
  for (const Options& options : {kMsit, kAit}) {
    const Row row = measure(floats({1, kNan}), floats({1, 2}), options);
    EXPECT_EQ(row.reason, "golden_data includes NAN or inf.");
    EXPECT_FALSE(metrics_of(row));
    EXPECT_EQ(row.actual.statistics->maximum, 2);
  }
}

TEST(Measure, NamesTheSideThatIsAllZero) {
  const Row golden = measure(floats({0, 0}), floats({1, 2}), kOwn);
  EXPECT_EQ(golden.reason, "golden_data is all zero.");
  EXPECT_EQ(golden.comparison->cosine_similarity, 0);
  EXPECT_TRUE(std::isinf(golden.comparison->relative_euclidean_distance));
  EXPECT_EQ(measure(floats({1, 2}), floats({0, 0}), kOwn).reason, "my_data is all zero.");
  const Row both = measure(floats({0, 0}), floats({0, 0}), kOwn);
  EXPECT_EQ(both.reason, "");
  EXPECT_EQ(both.comparison->cosine_similarity, 1);
}

TEST(Measure, RestoresTheOldZeroAtAZeroGolden) {
  const Row row = measure(floats({0, 0}), floats({1, 2}), kMsit);
  EXPECT_EQ(row.reason, "");
  EXPECT_EQ(row.comparison->relative_euclidean_distance, 0);
  EXPECT_EQ(row.comparison->max_absolute_error, 0);
}

TEST(Measure, RestoresTheOldMaskOfAbsoluteErrors) {
  EXPECT_EQ(measure(floats({0, 1}), floats({5, 2}), kOwn).comparison->max_absolute_error, 5);
  EXPECT_EQ(measure(floats({0, 1}), floats({5, 2}), kMsit).comparison->max_absolute_error, 1);
}

TEST(Measure, RestoresTheMissingSquareRootForAit) {
  const auto distance = [](const Options& options) {
    return measure(floats({1, 2}), floats({10, 20}), options)
        .comparison->relative_euclidean_distance;
  };
  EXPECT_DOUBLE_EQ(distance(kOwn), 9);
  EXPECT_DOUBLE_EQ(distance(kMsit), 9);
  EXPECT_DOUBLE_EQ(distance(kAit), 81);
}

TEST(Measure, RestoresTheOldClampOfTinyNorms) {
  // |g| = |m| = 1e-9: the clamp at 1e-8 makes the cosine (1e-9 / 1e-8)^2.
  const auto cosine = [](const Options& options) {
    return measure(floats({1e-9F}), floats({1e-9F}), options).comparison->cosine_similarity;
  };
  EXPECT_DOUBLE_EQ(cosine(kOwn), 1);
  EXPECT_NEAR(cosine(kMsit), 0.01, 1e-9);
}

TEST(Measure, NotesThatComplexNumbersArePairs) {
  const std::vector<std::complex<float>> values = {{1, 2}, {3, 4}};
  const auto complex = make_tensor(DType::kComplex64, {2}, values);
  const Row row = measure(complex, complex, kOwn);
  EXPECT_EQ(row.reason, "complex data, compared as pairs of reals.");
  EXPECT_TRUE(metrics_of(row));
  EXPECT_EQ(measure(complex, floats({1, 3}), kOwn).reason,
            "complex against real data, not compared.");
}

TEST(Measure, KeepsTheRowOfAMissingFileInTheOldWords) {
  const Result<Tensor> missing = fail(Error(ErrorCode::kNotFound, "no/such.npy") << "no such file");
  const Row row = measure(missing, floats({1, 2}), kOwn);
  EXPECT_EQ(row.reason, "golden_data_path: no/such.npy is not a file.");
  EXPECT_FALSE(row.golden.was_read());
  EXPECT_EQ(row.actual.statistics->maximum, 2);
  EXPECT_EQ(measure(floats({1}), missing, kOwn).reason, "my_data_path: no/such.npy is not a file.");
}

TEST(Measure, KeepsTheReadersOwnWordsForADamagedFile) {
  const Result<Tensor> damaged = fail(Error(ErrorCode::kCorrupt, "/dev/null/x") << "cut off");
  const Result<Tensor> nameless = fail(Error(ErrorCode::kCorrupt) << "cut off");
  EXPECT_EQ(measure(nameless, floats({1}), kOwn).reason, "cut off");
  const std::string exists = AIT_TEST_DATA "/../CMakeLists.txt";
  const Result<Tensor> real = fail(Error(ErrorCode::kCorrupt, exists) << "cut off");
  EXPECT_EQ(measure(real, floats({1}), kOwn).reason, exists + ": cut off");
  EXPECT_EQ(
      measure(damaged, damaged, kOwn).reason,
      "golden_data_path: /dev/null/x is not a file. my_data_path: /dev/null/x is not a file.");
}

Content statistics_of(const std::vector<float>& values) {
  const auto measured = metrics::statistics(floats(values)->view());
  formats::Description description{
      DType::kFloat32, {static_cast<int64_t>(values.size())}, false, {}};
  description.statistics = {measured.maximum, measured.minimum, measured.mean, measured.l2_norm};
  return Content(description);
}

TEST(Measure, PutsStatisticsBesideATensorWhereOneSideHasNoData) {
  const Row row = measure(statistics_of({1, 2, 3}), floats({1, 2, 4}), kOwn);
  EXPECT_FALSE(metrics_of(row));
  EXPECT_EQ(row.golden.statistics->maximum, 3);
  EXPECT_EQ(row.actual.statistics->maximum, 4);
  EXPECT_EQ(row.golden.kept, capture::Kept::kStatistics);
  EXPECT_EQ(row.reason.find("golden_data holds statistics only"), 0U);
}

TEST(Measure, BoundsTheDistanceByStatisticsFromBelow) {
  std::vector<float> golden(64);
  for (size_t i = 0; i < golden.size(); ++i) golden[i] = std::sin(static_cast<float>(i));
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<float> actual = golden;
    if (kind == 0)
      for (float& value : actual) value *= 1.25F;  // the norm
    if (kind == 1)
      for (float& value : actual) value += 0.3F;  // the mean
    if (kind == 2) actual[8] = 5;                 // the maximum
    if (kind == 3) actual[11] = -7;               // the minimum
    const double real =
        measure(floats(golden), floats(actual), kOwn).comparison->relative_euclidean_distance;
    const Row row = measure(statistics_of(golden), statistics_of(actual), kOwn);
    ASSERT_TRUE(row.distance_at_least) << kind;
    EXPECT_LE(*row.distance_at_least, real * (1 + 1e-9)) << kind;
    EXPECT_GE(*row.distance_at_least, 0.5 * real) << kind;
  }
  EXPECT_EQ(measure(statistics_of(golden), floats(golden), kOwn).distance_at_least, 0);
}

Content sketch_of(const std::vector<float>& values, const Shape& shape) {
  const Content whole(*floats(shape, values));
  const auto measured = metrics::statistics(whole.tensor->view());
  formats::Description description{DType::kFloat32, shape, false, {}};
  description.statistics = {measured.maximum,
                            measured.minimum,
                            measured.mean,
                            measured.l2_norm,
                            0,
                            metrics::sketch_text(metrics::sketch(whole.tensor->view()))};
  return Content(description);
}

TEST(Measure, EstimatesTheDistanceBySketches) {
  const Shape shape{50, 40};
  std::vector<float> golden(2000);
  for (size_t i = 0; i < golden.size(); ++i)
    golden[i] = std::sin(static_cast<float>(i) * static_cast<float>(i));
  // Extremes, mean and norm are the same.
  std::vector<float> actual(golden.rbegin(), golden.rend());
  const auto whole = measure(floats(shape, golden), floats(shape, actual), kOwn).comparison;
  for (const Content& mine : {sketch_of(actual, shape), Content(*floats(shape, actual))}) {
    const Row row = measure(sketch_of(golden, shape), mine, kOwn);
    ASSERT_TRUE(row.estimate);
    EXPECT_LE(row.estimate->distance.least, whole->relative_euclidean_distance);
    EXPECT_GE(row.estimate->distance.most, whole->relative_euclidean_distance);
    EXPECT_NEAR(row.estimate->cosine.value, whole->cosine_similarity, 0.3);
    EXPECT_EQ(row.distance_at_least, row.estimate->distance.least);
    EXPECT_NE(row.reason.find("by the sketches the relative euclidean distance is about "),
              std::string::npos);
  }
  // Nothing is made up where a side has none, or another shape.
  EXPECT_FALSE(measure(sketch_of(golden, shape), statistics_of(actual), kOwn).estimate);
  EXPECT_FALSE(measure(sketch_of(golden, shape), sketch_of(actual, {40, 50}), kOwn).estimate);
  golden[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(measure(sketch_of(golden, shape), sketch_of(actual, shape), kOwn).estimate);
}

// As a table has it: rounded to float32, the shortest text of that.
Content written_statistics_of(const std::vector<float>& values) {
  Content content = statistics_of(values);
  for (double* value : {&content.statistics->maximum, &content.statistics->minimum,
                        &content.statistics->mean, &content.statistics->l2_norm})
    *value = static_cast<float>(*value) * (1 + 0x1p-24);
  return content;
}

TEST(Measure, DoesNotTakeTheRoundingOfTextForADistance) {
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 3 + std::sin(static_cast<float>(i));
  const Content written = written_statistics_of(values);
  EXPECT_EQ(measure(written, floats(values), kOwn).distance_at_least, 0);
  EXPECT_EQ(measure(floats(values), written, kOwn).distance_at_least, 0);
  EXPECT_EQ(measure(written, statistics_of(values), kOwn).distance_at_least, 0);
}

TEST(Measure, CountsFixedDecimalsAsNoMoreThanTheySay) {
  // A mean of 4e-7 is written as 0.000000; a million elements make that 4e-4 of distance.
  std::vector<float> values(1'000'000, 4e-7F);
  formats::Description description{DType::kFloat32, {1'000'000}, false, {}};
  description.statistics = {0, 0, 0, 0.0004, 5e-7};
  const Row row = measure(floats(values), Content(description), kOwn);
  EXPECT_EQ(row.distance_at_least, 0);
  description.statistics = {0, 0, 0.1, 100, 5e-7};
  EXPECT_NEAR(*measure(floats(values), Content(description), kOwn).distance_at_least, 2.5e5, 1e3);
}

TEST(Measure, DrawsNoBoundFromDataThatAreNotFinite) {
  // Over the elements that are finite on both sides the two are equal.
  for (const float odd : {kNan, kInf, -kInf}) {
    const Row row = measure(statistics_of({odd, 1}), floats({5, 1}), kOwn);
    EXPECT_FALSE(row.distance_at_least) << odd;
    EXPECT_EQ(row.reason,
              "golden_data holds statistics only: max, min, mean and norm are given. "
              "golden_data includes NAN or inf.");
    EXPECT_FALSE(measure(floats({5, 1}), statistics_of({odd, 1}), kOwn).distance_at_least) << odd;
    EXPECT_FALSE(measure(statistics_of({odd, 1}), statistics_of({odd, 1}), kOwn).distance_at_least);
  }
  Content only_sum = statistics_of({1, 2});
  only_sum.statistics->mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(measure(only_sum, floats({1, 2}), kOwn).golden.has_non_finite());
}

TEST(Measure, HoldsNoStatisticsOfComplexDataAgainstThoseOfRealOnes) {
  Content complex = statistics_of({1, 2});
  complex.dtype = DType::kComplex64;
  const Row row = measure(complex, floats({1, 2}), kOwn);
  EXPECT_EQ(row.reason,
            "complex against real data, not compared. golden_data holds statistics only: max, min, "
            "mean and norm are given.");
  EXPECT_FALSE(row.distance_at_least);
}

TEST(Measure, SaysOfADescriptionThatItIsOne) {
  const Content described(formats::Description{DType::kFloat16, {3}, false, std::nullopt});
  const Row row = measure(floats({1, 2, 3}), described, kOwn);
  EXPECT_EQ(row.reason, "my_data holds type and shape only.");
  EXPECT_EQ(row.actual.dtype, DType::kFloat16);
  EXPECT_FALSE(row.distance_at_least);
  EXPECT_EQ(measure(floats({1, 2}), described, kOwn).reason,
            "data shape doesn't match. my_data holds type and shape only.");
}

}  // namespace
}  // namespace ait::compare
