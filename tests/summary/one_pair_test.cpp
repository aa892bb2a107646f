#include "summary/one_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "../compare/tensors.h"

namespace ait::summary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string text_of(const Tensor& golden, const Tensor& actual) {
  const compare::Content a(golden);
  const compare::Content b(actual);
  return pair_text(measure_pair(a, b, {}), a, b, false, false);
}

TEST(OnePair, SaysWhereItDiffersMost) {
  EXPECT_THAT(text_of(*floats({2, 2}, {1, 2, 3, 4}), *floats({2, 2}, {1, 2, 3.5, 4})),
              AllOf(HasSubstr("1 of 4 values differ; the largest difference is at [1, 0] (flat "
                              "index 2): golden 3.0, my 3.5\n"),
                    HasSubstr("max_absolute_error"), Not(HasSubstr("Reason"))));
}

TEST(OnePair, SaysThatNothingDiffers) {
  EXPECT_THAT(text_of(*floats({1, 2}), *floats({1, 2})),
              HasSubstr("Every element is identical.\n"));
}

TEST(OnePair, NanOnOneSideComesFirst) {
  const compare::Content golden(*floats({1, 2, 3}));
  const compare::Content actual(*floats({1, kNan, 4}));
  const PairResult result = measure_pair(golden, actual, {});
  EXPECT_THAT(pair_text(result, golden, actual, false, false),
              HasSubstr("1 of 3 values are NaN or infinite on one side only; the first is at [1] "
                        "(flat index 1): golden 2.0, my nan\n1 other value differs; the largest "
                        "difference is at [2]"));
  EXPECT_THAT(broken_json(result).text(),
              AllOf(HasSubstr(R"("elements": 1)"), HasSubstr(R"("first_index": 1)")));
  EXPECT_EQ(broken_json(measure_pair(golden, golden, {})).text(), "null");
}

TEST(OnePair, GivesTheReasonWhereNothingCouldBeCompared) {
  EXPECT_THAT(text_of(*floats({1, 2}), *floats({1, 2, 3})),
              HasSubstr("Reason: data shape doesn't match.\n"));
}

TEST(OnePair, TheOldLineIsAPythonDict) {
  const compare::Content golden(*floats({1, 2}));
  const std::string line = old_result_line(measure_pair(golden, golden, {}).row);
  EXPECT_THAT(line, AllOf(HasSubstr("Compared results: {'cosine_similarity': 1.0, "),
                          HasSubstr("'cmp_fail_reason': ''}")));
}

}  // namespace
}  // namespace ait::summary
