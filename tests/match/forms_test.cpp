#include "match/forms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tiny_recording.h"

namespace ait::match {
namespace {

constexpr size_t kRows = 5;

Readings one(const Matrix& matrix) { return readings_of({{sample_of(matrix)}}); }

Readings ranks(const std::vector<Matrix>& matrices) {
  std::vector<Sample> samples;
  for (const Matrix& each : matrices) samples.push_back(sample_of(each));
  return readings_of({std::move(samples)});
}

Matrix random(const std::string& name, size_t columns) {
  return random_matrix(name, kRows, columns);
}

TEST(Readings, OfReplicasAreEachForItself) {
  const Matrix x = random("x", 16);
  const Readings replicas = ranks({x, noisy(x, 0.01f)});
  ASSERT_EQ(replicas.ways.size(), 1u);
  EXPECT_EQ(replicas.ways[0].ranks, RankUse::kEach);
  EXPECT_EQ(replicas.ways[0].transform.join, Join::kNone);
  EXPECT_TRUE(replicas.shards.empty());
  EXPECT_EQ(one(x).ways[0].ranks, RankUse::kOne);
}

TEST(Readings, OfShardsAreSideBySideAndTheirSum) {
  const Readings shards = ranks({random("a", 16), random("b", 16)});
  ASSERT_EQ(shards.ways.size(), 2u);
  EXPECT_EQ(shards.ways[0].transform.join, Join::kColumns);
  EXPECT_EQ(shards.ways[0].transform.columns, 16);
  EXPECT_EQ(shards.ways[0].sample.columns, 32u);
  EXPECT_EQ(shards.ways[1].transform.join, Join::kSum);
  EXPECT_EQ(shards.ways[1].sample.columns, 16u);
  // Of different widths they cannot be added.
  EXPECT_EQ(ranks({random("a", 16), random("b", 24)}).ways.size(), 1u);
}

TEST(Readings, HaveTheSameContentWhereDataAreTheSame) {
  const Matrix x = random("x", 16);
  const Matrix y = random("y", 16);
  EXPECT_EQ(one(x).content, one(x).content);
  EXPECT_NE(one(x).content, one(y).content);
  EXPECT_EQ(ranks({x, y}).content, ranks({x, y}).content);
  EXPECT_NE(ranks({x, y}).content, ranks({y, x}).content);
  EXPECT_NE(ranks({x, y}).content, one(x).content);
}

TEST(Readings, HaveNoContentWhereTheyTellNothing) {
  const Matrix constant{kRows, 16, std::vector<float>(kRows * 16, 1)};
  EXPECT_EQ(one(constant).content, 0u);
  EXPECT_EQ(readings_of({}).content, 0u);
  // Nor do they on several ranks, which hold the same then.
  const Matrix nothing{kRows, 16, std::vector<float>(kRows * 16, std::nanf(""))};
  EXPECT_EQ(ranks({nothing, nothing}).content, 0u);
  EXPECT_EQ(ranks({nothing, nothing}).ways[0].ranks, RankUse::kEach);
  EXPECT_EQ(ranks({nothing, constant}).content, 0u);
}

// What ranks gathered as [ranks, tokens, size] is no copy of its transpose: it is laid out otherwise.
TEST(Readings, WithHeadsFirstAreNotTheSameAsTheirTranspose) {
  Sample moved = sample_of(random("x", 16));
  moved.heads_first = true;
  EXPECT_NE(readings_of({{moved}}).content, one(random("x", 16)).content);
}

TEST(Kin, AreTheSameButForRounding) {
  const Matrix x = random("x", 64);
  EXPECT_TRUE(are_kin(one(x), one(noisy(x, 0.01f))));
  EXPECT_FALSE(are_kin(one(x), one(noisy(x, 0.1f))));
  EXPECT_FALSE(are_kin(one(x), one(random("y", 64))));
  // Partial sums of two ranks, and what the all-reduce makes of them on both.
  const Matrix y = random("y", 64);
  EXPECT_TRUE(are_kin(ranks({x, y}), ranks({x + y, x + y})));
}

TEST(WholeForm, OfOneRankIsTensorAgainstTensor) {
  const Matrix x = random("x", 16);
  const auto form = whole_form(one(x), one(noisy(x, 0.01f)));
  ASSERT_TRUE(form);
  EXPECT_NEAR(form->distance.value, 0.01, 0.005);
  EXPECT_TRUE(form->golden.is_identity());
  EXPECT_TRUE(form->actual.is_identity());
  EXPECT_FALSE(whole_form(one(x), one(random("y", 24))));
  // Strangers have one, too, but are far apart.
  EXPECT_GT(whole_form(one(x), one(random("y", 16)))->distance.value, 1);
}

TEST(WholeForm, OfColumnParallelShardsIsSideBySide) {
  const Matrix x = random("x", 64);
  const auto form = whole_form(one(x), ranks({columns_of(x, 0, 32), columns_of(x, 32, 32)}));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual.join, Join::kColumns);
  EXPECT_EQ(form->actual_ranks, RankUse::kAll);
  EXPECT_EQ(form->golden_ranks, RankUse::kOne);
  EXPECT_EQ(form->distance.value, 0);
}

TEST(WholeForm, OfRowParallelShardsIsTheirSum) {
  const Matrix a = random("a", 64);
  const Matrix b = random("b", 64);
  const auto form = whole_form(one(a + b), ranks({a, b}));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual.join, Join::kSum);
  EXPECT_EQ(form->actual_ranks, RankUse::kAll);
  EXPECT_EQ(form->distance.value, 0);
}

TEST(WholeForm, OfReplicasIsEachForItself) {
  const Matrix x = random("x", 64);
  const auto form = whole_form(one(x), ranks({x, x}));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual_ranks, RankUse::kEach);
  EXPECT_EQ(form->golden_ranks, RankUse::kOne);
}

TEST(WholeForm, OfEquallyManyShardsIsSideBySideOrShardByShard) {
  const std::vector<Matrix> shards = {random("a", 32), random("b", 32)};
  EXPECT_EQ(whole_form(ranks(shards), ranks(shards))->actual.join, Join::kColumns);
  // Each rank is wrong for two of the five tokens, but not for the same ones: each is near for most
  // tokens, and only as shards are they.
  const Matrix wrong = random("wrong", 32);
  std::vector<Matrix> faulty = shards;
  const auto spoil = [&](Matrix& matrix, size_t first_row) {
    std::copy_n(wrong.values.begin(), 2 * 32,
                matrix.values.begin() + static_cast<ptrdiff_t>(first_row * 32));
  };
  spoil(faulty[0], 0);
  spoil(faulty[1], 2);
  const auto form = whole_form(ranks(shards), ranks(faulty));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->golden_ranks, RankUse::kEach);
  EXPECT_EQ(form->actual_ranks, RankUse::kEach);
  EXPECT_EQ(form->distance.value, 0);
}

TEST(WholeForm, OfAHeadForTheLastTokenOnlySaysSo) {
  const Matrix x = random("x", 16);
  Readings all = one(x);
  Sample last = sample_of(x);
  last.last_only = true;
  last.rows = {last.rows[3], last.rows[4]};  // of the first sequence and of the last one
  const auto form = whole_form(all, readings_of({{last}}));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->fit, Fit::kLastRows);
  EXPECT_EQ(form->distance.value, 0);
}

TEST(WholeForm, OfHeadsFirstMovesThem) {
  const Matrix x = random("x", 16);
  Sample moved = sample_of(x);
  moved.heads_first = true;
  const auto form = whole_form(one(x), readings_of({{sample_of(random("y", 16))}, {moved}}));
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->actual.heads_first);
  EXPECT_FALSE(form->golden.heads_first);
  EXPECT_EQ(form->distance.value, 0);
}

// A q/k/v projection fused into one Linear: golden's k_proj stands at columns 64 to 95 of it.
TEST(PartForm, FindsAProjectionInAFusedOne) {
  const Matrix q = random("q", 64);
  const Matrix k = random("k", 32);
  const Matrix v = random("v", 32);
  const Readings fused = one(beside({q, k, v}));
  const auto form = part_form(one(noisy(k, 0.01f)), fused);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual.columns, 128);
  EXPECT_EQ(form->actual.first, 64);
  EXPECT_EQ(form->actual.taken, 32);
  EXPECT_EQ(form->actual.join, Join::kNone);
  EXPECT_TRUE(form->golden.is_identity());
  EXPECT_NEAR(form->distance.value, 0.01, 0.005);
  EXPECT_FALSE(part_form(one(random("x", 32)), fused));
  EXPECT_FALSE(part_form(one(noisy(k, 0.3f)), fused));  // a part has to agree well
  // The wide side may be golden.
  const auto other = part_form(fused, one(v));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->golden.first, 96);
  EXPECT_EQ(other->golden.taken, 32);
  EXPECT_TRUE(other->actual.is_identity());
}

// Each rank has half of the heads of q, k and v.
TEST(PartForm, FindsAProjectionInFusedShards) {
  const Matrix q = random("q", 64);
  const Matrix k = random("k", 32);
  const Readings shards = ranks({beside({columns_of(q, 0, 32), columns_of(k, 0, 16)}),
                                 beside({columns_of(q, 32, 32), columns_of(k, 16, 16)})});
  const auto form = part_form(one(k), shards);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual.columns, 48);
  EXPECT_EQ(form->actual.first, 32);
  EXPECT_EQ(form->actual.taken, 16);
  EXPECT_EQ(form->actual.join, Join::kColumns);
  EXPECT_EQ(form->actual_ranks, RankUse::kAll);
  EXPECT_EQ(form->distance.value, 0);
  // Not if only one of the ranks has it there.
  const Readings broken = ranks({beside({columns_of(q, 0, 32), columns_of(k, 0, 16)}),
                                 beside({columns_of(q, 32, 32), random("x", 16)})});
  EXPECT_FALSE(part_form(one(k), broken));
}

// Columns of each head lie together: its queries, its keys.
TEST(PartForm, FindsAProjectionThatLiesInOneInterleavedByHeads) {
  const Matrix q = random("q", 32);
  const Matrix k = random("k", 32);
  const auto interleaved = [&](size_t first, size_t heads) {
    std::vector<Matrix> parts;
    for (size_t head = first; head < first + heads; ++head) {
      parts.push_back(columns_of(q, head * 8, 8));
      parts.push_back(columns_of(k, head * 8, 8));
    }
    return beside(parts);
  };
  const auto form = part_form(one(k), one(interleaved(0, 4)));
  ASSERT_TRUE(form);
  EXPECT_EQ(form->actual.first, 8);
  EXPECT_EQ(form->actual.taken, 8);
  EXPECT_EQ(form->actual.period, 16);
  EXPECT_EQ(form->actual.columns, 64);
  const auto shards = part_form(one(k), ranks({interleaved(0, 2), interleaved(2, 2)}));
  ASSERT_TRUE(shards);
  EXPECT_EQ(shards->actual.period, 16);
  EXPECT_EQ(shards->actual.columns, 32);
  EXPECT_EQ(shards->actual.join, Join::kColumns);
}

TEST(PartForm, IsNotSoughtInWhatIsMuchWider) {
  const Matrix narrow = random("narrow", 8);
  EXPECT_TRUE(part_form(one(narrow), one(beside({narrow, random("rest", 63 * 8)}))));
  EXPECT_FALSE(part_form(one(narrow), one(beside({narrow, random("rest", 64 * 8)}))));
}

}  // namespace
}  // namespace ait::match
