#include "match/fused.h"

#include <gtest/gtest.h>

#include "match/by_names.h"
#include "tiny_recording.h"

namespace ait::match {
namespace {

// The same number added to all rows of a column.
Matrix with_bias(Matrix from) {
  for (float& value : from.values) value += 20;
  return from;
}

const Matrix kQ = random_matrix("q", 5, 32);
const Matrix kK = random_matrix("k", 5, 32);
const Matrix kV = random_matrix("v", 5, 32);
const std::vector<Sample> kParts = {sample_of(kQ), sample_of(kK), sample_of(kV)};

TEST(Fused, PartsStandInOrderThoughAFaultMakesThemDiffer) {
  EXPECT_EQ(stand_in_order(kParts, sample_of(beside({kQ, kK, kV}))), true);
  EXPECT_EQ(stand_in_order(kParts, sample_of(noisy(beside({kQ, kK, kV}), 0.8F))), true);
}

TEST(Fused, PartsInAnotherOrderAreNotTakenForOnesInOrder) {
  EXPECT_EQ(stand_in_order(kParts, sample_of(beside({kK, kQ, kV}))), false);
  EXPECT_EQ(stand_in_order({kParts[0], kParts[1]}, sample_of(beside({kV, kQ}))), false);
}

TEST(Fused, UnrelatedDataTellNothing) {
  EXPECT_EQ(stand_in_order(kParts, sample_of(random_matrix("other", 5, 96))), std::nullopt);
  EXPECT_EQ(stand_in_order(kParts, sample_of(random_matrix("other", 5, 64))), std::nullopt);
}

TEST(Fused, ABiasMakesNothingAlike) {
  const std::vector<Sample> parts = {sample_of(with_bias(kQ)), sample_of(with_bias(kK))};
  EXPECT_EQ(stand_in_order(parts, sample_of(with_bias(beside({kQ, kK})))), true);
  EXPECT_EQ(stand_in_order(parts, sample_of(with_bias(random_matrix("other", 5, 64)))),
            std::nullopt);
}

TEST(Masks, AreToldByWhatTheyHide) {
  EXPECT_TRUE(is_mask(sample_of({2, 2, {0, -3.4e38F, 0, 0}})));
  EXPECT_TRUE(is_mask(sample_of({2, 3, {0.3F, 0.2F, -65504, 0.1F, 7, 8}})));
  EXPECT_TRUE(is_mask(sample_of({2, 2, {1, -10000, 1, 1}})));
  EXPECT_FALSE(is_mask(sample_of(kQ)));
}

}  // namespace
}  // namespace ait::match
