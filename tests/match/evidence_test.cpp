#include "match/evidence.h"

#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;

constexpr size_t kTokens = 5;

Matrix random(const std::string& name, size_t columns, size_t tokens = kTokens) {
  return random_matrix(name, tokens, columns);
}

// All operations of a run in its first round.
struct Looked {
  Segment segment;
  std::vector<Value> values;
  SegmentRound round;

  explicit Looked(const TinyRun& run, Tokens tokens = {kTokens, 1, 0})
      : segment(run.whole()),
        values(values_of(run.recording, segment)),
        round{{run.recording, segment, values}, tokens, [](uint32_t) { return size_t{0}; }} {}

  // The value of an operation's last tensor.
  size_t value(const TinyRun& run, const std::string& operation) const {
    size_t found = values.size();
    for (size_t i = 0; i < values.size(); ++i)
      if (segment.operation_at(values[i].position) == run.operation(operation)) found = i;
    return found;
  }
};

TEST(Band, HoldsEachAgainstEachWhereTheseAreNotTooMany) {
  for (const auto& [rows, columns] : {std::pair(3, 4), {4, 3}, {1, 12}, {0, 5}, {5, 0}}) {
    const Band band(static_cast<size_t>(rows), static_cast<size_t>(columns), 12);
    EXPECT_TRUE(band.is_whole());
    EXPECT_EQ(band.cells(), static_cast<size_t>(rows * columns));
    for (size_t row = 0; row < band.rows; ++row)
      for (size_t column = 0; column < band.columns; ++column)
        EXPECT_EQ(band.cell(row, column), row * band.columns + column);
  }
}

TEST(Band, HoldsManyAgainstThoseAtTheSamePlace) {
  for (const auto& [rows, columns] : {std::pair(10, 20), {20, 10}, {100, 7}, {7, 100}, {90, 90}}) {
    const Band band(static_cast<size_t>(rows), static_cast<size_t>(columns), 60);
    EXPECT_FALSE(band.is_whole());
    EXPECT_LE(band.cells(), std::max<size_t>(60, band.rows));
    for (size_t row = 0; row < band.rows; ++row) {
      EXPECT_TRUE(band.cell(row, row * band.columns / band.rows)) << row;
      size_t held = 0;
      for (size_t column = 0; column < band.columns; ++column) {
        const auto cell = band.cell(row, column);
        if (!cell) continue;
        EXPECT_EQ(*cell, row * band.width + column - band.first(row));
        ++held;
      }
      EXPECT_EQ(held, band.width);
    }
    EXPECT_FALSE(band.cell(0, band.columns - 1));
    EXPECT_FALSE(band.cell(band.rows - 1, 0));
  }
}

TEST(Kin, AreKinWhicheverIsNamedFirst) {
  Evidence::Kin kin(3);
  kin.cells[1 * 3 + 2] = 1;
  EXPECT_TRUE(kin.are(1, 2));
  EXPECT_TRUE(kin.are(2, 1));
  EXPECT_FALSE(kin.are(0, 2));
}

// Torch with separate projections, a library with a fused one on one rank.
TEST(Evidence, FindsProjectionsInAFusedOne) {
  TinyRun torch(kTorchTraits, "q\nk\nv");
  TinyRun library(kAtbTraits, "0_Linear");
  torch.save("q", random("q", 64));
  torch.save("k", random("k", 32));
  torch.save("v", random("v", 32));
  library.save("0_Linear", beside({random("q", 64), random("k", 32), random("v", 32)}));
  const Looked golden(torch);
  const Looked actual(library);
  const Evidence evidence = weigh(golden.round, actual.round);
  for (const auto& [name, first] : {std::pair("q", 0), {"k", 64}, {"v", 96}}) {
    const auto& facts = evidence.at(golden.value(torch, name), 0);
    EXPECT_FALSE(facts.whole) << name;
    ASSERT_TRUE(facts.part) << name;
    EXPECT_EQ(facts.part->actual.first, first);
  }
}

TEST(Evidence, ReadsShardsOfAllRanks) {
  const Matrix x = random("x", 64);
  TinyRun torch(kTorchTraits, "x");
  TinyRun library(kAtbTraits, "0_Columns\n1_Sum\n2_Same\n3_Lost", 2);
  torch.save("x", x);
  const Matrix part = random("part", 64);
  Matrix rest = x;
  for (size_t i = 0; i < rest.values.size(); ++i) rest.values[i] -= part.values[i];
  for (const size_t rank : {0u, 1u}) {
    library.save("0_Columns", columns_of(x, rank * 32, 32), rank);
    library.save("1_Sum", rank == 0 ? part : rest, rank);
    library.save("2_Same", x, rank);
  }
  library.save("3_Lost", x, 0);  // rank 1's file cannot be read
  const Looked golden(torch);
  const Looked actual(library);
  const Evidence evidence = weigh(golden.round, actual.round);
  EXPECT_EQ(evidence.at(0, 0).whole->actual.join, Join::kColumns);
  EXPECT_EQ(evidence.at(0, 1).whole->actual.join, Join::kSum);
  EXPECT_EQ(evidence.at(0, 2).whole->actual_ranks, RankUse::kEach);
  for (const size_t a : {0u, 1u, 2u}) EXPECT_LT(evidence.at(0, a).whole->distance.value, 1e-5);
  EXPECT_FALSE(evidence.at(0, 3).whole);
  EXPECT_EQ(evidence.actual[3].content, 0u);
  EXPECT_TRUE(evidence.actual_kin.are(1, 2));  // partial sums and their sum
  EXPECT_FALSE(evidence.actual_kin.are(1, 3));
}

TEST(Evidence, KnowsWhichValuesHoldTheSame) {
  TinyRun torch(kTorchTraits, "x\ny\nz\nzero");
  torch.save("x", random("x", 16));
  torch.save("y", random("x", 16));
  torch.save("z", random("z", 24));
  torch.save("zero", Matrix{kTokens, 16, std::vector<float>(kTokens * 16)});
  TinyRun library(kAtbTraits, "0_x");
  library.save("0_x", random("x", 16));
  const Evidence evidence = weigh(Looked(torch).round, Looked(library).round);
  EXPECT_EQ(evidence.golden[0].content, evidence.golden[1].content);
  EXPECT_NE(evidence.golden[0].content, evidence.golden[2].content);
  EXPECT_EQ(evidence.golden[3].content, 0u);
  EXPECT_EQ(evidence.golden[2].columns, 24u);
  EXPECT_FALSE(evidence.at(3, 0).whole);  // zeros are like nothing
}

TEST(Evidence, HoldsNoIntegersAgainstFloats) {
  TinyRun torch(kTorchTraits, "x");
  TinyRun library(kAtbTraits, "0_Quant\n1_x");
  std::vector<int32_t> integers;
  Matrix same{kTokens, 16, {}};
  for (int32_t i = 0; i < static_cast<int32_t>(kTokens) * 16; ++i) {
    integers.push_back(i * 7 % 31);
    same.values.push_back(static_cast<float>(integers.back()));
  }
  torch.save("x", same);
  library.save("0_Quant", integers, {kTokens, 16}, DType::kInt32);
  library.save("1_x", same);
  const Evidence evidence = weigh(Looked(torch).round, Looked(library).round);
  EXPECT_FALSE(evidence.actual[0].is_float);
  EXPECT_FALSE(evidence.at(0, 0).whole);
  EXPECT_TRUE(evidence.at(0, 1).whole);
}

// The residual stream of a torch run whose inputs were not recorded.
TEST(Sums, AreFoundWhereTheyWereNotRecorded) {
  const Matrix x = random("x", 32);
  const Matrix y = random("y", 32);
  const auto sums = [&](const std::string& library_list, const std::string& torch_more) {
    TinyRun torch(kTorchTraits, "x\ny\nz\n" + torch_more);
    torch.save("x", x);
    torch.save("y", y);
    torch.save("z", random("z", 32));
    TinyRun library(kAtbTraits, library_list);
    library.save(library_list, noisy(x + y, 0.01f));
    if (torch_more == "sum") torch.save("sum", x + y);
    return weigh(Looked(torch).round, Looked(library).round).sums;
  };
  const auto found = sums("0_Layer", "");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, 0u);
  EXPECT_EQ(found[0].second, 1u);
  EXPECT_EQ(found[0].form.golden.join, Join::kSum);
  EXPECT_TRUE(sums("0_RmsNormOperation", "").empty());  // a norm adds nothing
  EXPECT_TRUE(sums("0_Layer", "sum").empty());          // a tensor holds it already
  EXPECT_TRUE(sums("0_Layer", "n  in").empty());        // inputs were recorded, sums are among them
}

TEST(Evidence, OfAnotherBatchIsRepeated) {
  TinyRun torch(kTorchTraits, "x");
  TinyRun library(kAtbTraits, "0_x");
  const Matrix x = random("x", 16);
  torch.save("x", x);
  Matrix twice = x;
  twice.rows *= 2;
  twice.values.insert(twice.values.end(), x.values.begin(), x.values.end());
  library.save("0_x", twice);
  const Evidence other = weigh(Looked(torch, {5, 1, 5}).round, Looked(library, {10, 2, 5}).round);
  ASSERT_TRUE(other.at(0, 0).whole);
  EXPECT_EQ(other.at(0, 0).whole->fit, Fit::kRepeat);
  EXPECT_EQ(other.at(0, 0).whole->distance.value, 0);
  library.save("0_x", x);
  const Evidence same = weigh(Looked(torch).round, Looked(library).round);
  EXPECT_EQ(same.at(0, 0).whole->fit, Fit::kNone);
}

TEST(Evidence, ReadsHeadsThatComeFirst) {
  const Matrix x = random("x", 16);  // 4 heads of 4
  std::vector<float> heads_first;
  for (size_t head = 0; head < 4; ++head)
    for (size_t token = 0; token < kTokens; ++token)
      for (size_t i = 0; i < 4; ++i) heads_first.push_back(x.values[token * 16 + head * 4 + i]);
  TinyRun torch(kTorchTraits, "x");
  TinyRun library(kAtbTraits, "0_x");
  torch.save("x", heads_first, {1, 4, kTokens, 4}, DType::kFloat32);
  library.save("0_x", x);
  const Evidence evidence = weigh(Looked(torch).round, Looked(library).round);
  ASSERT_TRUE(evidence.at(0, 0).whole);
  EXPECT_TRUE(evidence.at(0, 0).whole->golden.heads_first);
  EXPECT_EQ(evidence.at(0, 0).whole->distance.value, 0);
}

TEST(Evidence, LeavesOutWhatDidNotRun) {
  TinyRun torch(kTorchTraits, "x");
  TinyRun library(kAtbTraits, "0_x");
  torch.save("x", random("x", 16));
  library.save("0_x", random("x", 16));
  const Looked golden(torch);
  Looked actual(library);
  actual.round.round_of = [](uint32_t) { return std::nullopt; };
  EXPECT_FALSE(weigh(golden.round, actual.round).at(0, 0).whole);
  EXPECT_TRUE(shapes_of(actual.round).empty());
  library.drop("0_x", "0");
  EXPECT_FALSE(weigh(golden.round, Looked(library).round).at(0, 0).whole);
  EXPECT_EQ(shapes_of(golden.round), std::vector<Shape>({{1, kTokens, 16}}));
}

}  // namespace
}  // namespace ait::match
