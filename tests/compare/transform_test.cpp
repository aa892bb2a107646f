#include "compare/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/elements.h"
#include "tensors.h"

namespace ait::compare {
namespace {

using match::Fit;
using match::Join;
using match::Transform;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> values(const Tensor& tensor) {
  std::vector<double> wide;
  metrics::read_elements(tensor.view(), 0, tensor.elements(), wide);
  return {wide.begin(), wide.begin() + static_cast<ptrdiff_t>(tensor.elements())};
}

std::vector<float> result(const std::vector<Tensor>& parts, const Transform& transform) {
  const auto tensor = transformed(parts, transform);
  EXPECT_TRUE(tensor) << tensor.error().text();
  return tensor ? values(*tensor) : std::vector<float>();
}

Transform columns(int64_t wide, int64_t first, int64_t taken, int64_t period = 0) {
  Transform out;
  out.columns = wide;
  out.first = first;
  out.taken = taken;
  out.period = period;
  return out;
}

TEST(Transform, TakesColumnsOfEveryRowWithoutCopying) {
  const Tensor tensor = *floats({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto taken = transformed(std::vector<Tensor>{tensor}, columns(6, 1, 2));
  ASSERT_TRUE(taken);
  EXPECT_THAT(values(*taken), ElementsAre(1, 2, 7, 8));
  EXPECT_EQ(taken->owner(), tensor.owner());
}

TEST(Transform, TakesColumnsOfEveryHead) {
  const Tensor tensor = *floats({1, 6}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(result({tensor}, columns(6, 1, 1, 3)), ElementsAre(1, 4));
}

TEST(Transform, PutsColumnsOfEveryHeadOfEachShardSideBySide) {
  Transform transform = columns(4, 1, 1, 2);
  transform.join = Join::kColumns;
  EXPECT_THAT(result({*floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}),
                      *floats({2, 4}, {10, 11, 12, 13, 14, 15, 16, 17})},
                     transform),
              ElementsAre(1, 3, 11, 13, 5, 7, 15, 17));
}

TEST(Transform, PutsShardsSideBySide) {
  Transform transform;
  transform.join = Join::kColumns;
  const std::vector<Tensor> shards = {*floats({2, 2}, {1, 2, 5, 6}), *floats({2, 1}, {3, 7})};
  EXPECT_THAT(result(shards, transform), ElementsAre(1, 2, 3, 5, 6, 7));
  // Each of them after its columns were taken.
  Transform parts = columns(2, 1, 1);
  parts.join = Join::kColumns;
  EXPECT_THAT(result({*floats({2, 2}, {1, 2, 3, 4}), *floats({2, 2}, {5, 6, 7, 8})}, parts),
              ElementsAre(2, 6, 4, 8));
}

TEST(Transform, AddsPartialResults) {
  Transform transform;
  transform.join = Join::kSum;
  EXPECT_THAT(result({*floats({1, 3}, {1, 2, 3}), *floats({3}, {10, 20, 30})}, transform),
              ElementsAre(11, 22, 33));
}

TEST(Transform, PutsTokensBeforeHeads) {
  Transform transform;
  transform.heads_first = true;
  // [heads 2, tokens 3, size 1]
  EXPECT_THAT(result({*floats({2, 3, 1}, {1, 2, 3, 11, 12, 13})}, transform),
              ElementsAre(1, 11, 2, 12, 3, 13));
  // Ones in between change nothing: [batch 1, heads 2, 1, tokens 3, size 1].
  EXPECT_THAT(result({*floats({1, 2, 1, 3, 1}, {1, 2, 3, 11, 12, 13})}, transform),
              ElementsAre(1, 11, 2, 12, 3, 13));
  EXPECT_FALSE(transformed({{*floats({2, 1}, {1, 2})}}, transform));
}

TEST(Transform, RefusesWhatDoesNotFit) {
  Transform beside;
  beside.join = Join::kColumns;
  Transform sum;
  sum.join = Join::kSum;
  const Tensor tensor = *floats({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const auto& [parts, transform] : std::vector<std::pair<std::vector<Tensor>, Transform>>{
           {{tensor}, columns(4, 0, 2)},
           {{tensor}, columns(3, 2, 2)},
           {{tensor}, columns(3, 0, 4)},
           {{tensor}, columns(6, 0, 1, 4)},
           {{tensor, *floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})}, beside},
           {{tensor, *floats({1}, {1})}, sum},
           {{}, sum}}) {
    const auto refused = transformed(parts, transform);
    ASSERT_FALSE(refused);
    EXPECT_FALSE(refused.error().message().empty());
  }
}

TEST(Fit, RepeatsTheSmallerBatch) {
  Tensor golden = *floats({1, 2}, {1, 2});
  Tensor actual = *floats({3, 2}, {1, 2, 1, 2, 1, 2});
  EXPECT_THAT(fit(golden, actual, Fit::kRepeat), HasSubstr("golden data is repeated"));
  EXPECT_THAT(values(golden), ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(Fit, TakesTheLastRowOfEachSequence) {
  Tensor golden = *floats({2, 2, 1}, {1, 2, 3, 4});
  Tensor actual = *floats({2, 1}, {2, 4});
  EXPECT_THAT(fit(golden, actual, Fit::kLastRows), HasSubstr("last row"));
  EXPECT_THAT(values(golden), ElementsAre(2, 4));
}

TEST(Fit, RepeatsWhatHoldsForAllSequences) {
  Tensor golden = *floats({1, 2, 1}, {1, 2});
  Tensor actual = *floats({4, 1}, {1, 2, 1, 2});
  EXPECT_THAT(fit(golden, actual, Fit::kRepeat), HasSubstr("golden data is repeated"));
  EXPECT_THAT(values(golden), ElementsAre(1, 2, 1, 2));
}

// Two sequences of two tokens; the first one's first is padding that my side does not have.
TEST(Fit, TakesTheRowsThatCorrespond) {
  const match::RowChoice padded{4, {1, 2, 3}, {1, 3}};
  const match::RowChoice packed{3, {}, {0, 2}};
  Tensor golden = *floats({2, 2, 1}, {0, 1, 2, 3});
  Tensor actual = *floats({3, 1}, {1, 2, 3});
  EXPECT_THAT(fit(golden, actual, Fit::kNone, &padded, &packed), HasSubstr("rows that correspond"));
  EXPECT_THAT(values(golden), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(actual), ElementsAre(1, 2, 3));
  // My side has the last row of each sequence only.
  golden = *floats({2, 2, 1}, {0, 1, 2, 3});
  actual = *floats({2, 1}, {1, 3});
  EXPECT_THAT(fit(golden, actual, Fit::kLastRows, &padded, &packed), HasSubstr("rows"));
  EXPECT_THAT(values(golden), ElementsAre(1, 3));
}

TEST(Fit, LeavesAloneWhatItMayNotOrCannotChange) {
  Tensor golden = *floats({2, 2}, {1, 2, 3, 4});
  Tensor actual = *floats({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const Fit how : {Fit::kNone, Fit::kRepeat, Fit::kLastRows}) {
    EXPECT_EQ(fit(golden, actual, how), "");
    EXPECT_EQ(golden.elements(), 4u);
    EXPECT_EQ(actual.elements(), 6u);
  }
}

TEST(Dequantised, IsTheWeightLessItsOffsetTimesItsScale) {
  const auto weight = make_tensor<int8_t>(DType::kInt8, {2, 4}, {-3, -2, -1, 0, 1, 2, 3, 4});
  const auto values = [&](const std::vector<Result<Tensor>>& parts) -> std::vector<float> {
    std::vector<Tensor> tensors = {*weight};
    for (const auto& part : parts) tensors.push_back(*part);
    const auto tensor = dequantised(tensors);
    if (!tensor) return {};
    EXPECT_EQ(tensor->dtype(), DType::kFloat32);
    EXPECT_EQ(tensor->shape(), weight->shape());
    std::vector<float> out(8);
    gather(tensor->view(), 0, 8, std::as_writable_bytes(std::span(out)).data());
    return out;
  };
  using V = std::vector<float>;
  EXPECT_EQ(values({floats({0.5})}), (V{-1.5, -1, -.5, 0, .5, 1, 1.5, 2}));
  EXPECT_EQ(values({floats({2, 1}, {1, 10}), floats({2, 1}, {1, 2})}),
            (V{-4, -3, -2, -1, -10, 0, 10, 20}));
  EXPECT_EQ(values({floats({1, 10})}), (V{-3, -2, -1, 0, 10, 20, 30, 40})) << "one for each row";
  EXPECT_EQ(values({floats({2, 2}, {1, 2, 3, 4})}), (V{-3, -2, -2, 0, 3, 6, 12, 16}));
  EXPECT_EQ(values({floats({1, 2, 3})}), V{});
  const std::vector<Tensor> real = {*floats({1, 2}), *floats({0.5})};
  EXPECT_EQ(dequantised(real)->elements(), 2U) << "it is no quantised weight";
}

}  // namespace
}  // namespace ait::compare
