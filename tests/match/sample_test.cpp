#include "match/sample.h"

#include <gtest/gtest.h>

#include <random>

#include "tiny_recording.h"

namespace ait::match {
namespace {

Sample random_sample(uint32_t seed, size_t rows, size_t columns) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Sample out;
  out.columns = columns;
  for (size_t r = 0; r < rows; ++r) {
    out.rows.emplace_back();
    for (size_t c = 0; c < columns; ++c) out.rows.back().push_back(normal(engine));
  }
  return out;
}

Sample noisy(Sample sample, float size, uint32_t seed = 99) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, size);
  for (auto& row : sample.rows)
    for (float& value : row) value += normal(engine);
  return sample;
}

TEST(Distance, AgreesWithinNoiseAndNotBetweenStrangers) {
  // As few elements as a decode step of a tiny model has, and more.
  for (const size_t columns : {8u, 16u, 64u, 1024u}) {
    const Sample sample = random_sample(1, 1, columns);
    EXPECT_TRUE(distance(sample, noisy(sample, 0.05f)).agrees()) << columns;
    for (uint32_t seed = 2; seed < 500; ++seed)
      EXPECT_FALSE(distance(sample, random_sample(seed, 1, columns)).agrees()) << columns;
  }
}

TEST(Distance, IsNotDecidedByOneRowOfOutliers) {
  Sample golden = random_sample(1, 5, 64);
  Sample actual = random_sample(2, 5, 64);
  golden.rows[0][3] = actual.rows[0][3] = 1e6f;  // the first token of real models
  EXPECT_FALSE(distance(golden, actual).agrees());
  Sample broken = golden;
  broken.rows[4] = random_sample(3, 1, 64).rows[0];
  EXPECT_TRUE(distance(golden, broken).agrees());
}

TEST(Distance, LeavesOutWhatIsNotFinite) {
  const Sample golden = random_sample(1, 2, 64);
  Sample actual = golden;
  actual.rows[0][5] = std::numeric_limits<float>::infinity();
  actual.rows[1][6] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(distance(golden, actual).value, 0);
}

TEST(FindColumns, FindsAPartAnywhere) {
  const Sample wide = random_sample(1, 3, 300);
  for (const size_t first : {0u, 1u, 100u, 268u}) {
    Sample narrow;
    narrow.columns = 32;
    for (const auto& row : wide.rows)
      narrow.rows.emplace_back(row.begin() + static_cast<ptrdiff_t>(first),
                               row.begin() + static_cast<ptrdiff_t>(first) + 32);
    EXPECT_EQ(find_columns(noisy(narrow, 0.02f), 0, 32, wide, wide.columns), first);
  }
}

TEST(MayAddUp, TellsMostStrangersFromASum) {
  const Matrix x = random_matrix("x", 5, 64);
  const Matrix y = random_matrix("y", 5, 64);
  const Matrix z = random_matrix("z", 5, 64);
  const auto may = [](const Matrix& one, const Matrix& other, const Matrix& sum) {
    return may_add_up(sample_of(one), sample_of(other), sample_of(sum));
  };
  EXPECT_TRUE(may(x, y, noisy(x + y, 0.05f)));
  EXPECT_FALSE(may(x, z, x + y));
  EXPECT_FALSE(may(z, z, x + y));
  // Rows that do not correspond tell nothing.
  Sample last = sample_of(x + y);
  last.last_only = true;
  EXPECT_TRUE(may_add_up(sample_of(x), sample_of(z), last));
}

TEST(GuessTokens, CountsWhatMostTensorsHave) {
  const std::vector<Shape> torch = {{2, 7, 64}, {2, 7, 96}, {1, 7, 16}, {2, 7, 64}};
  EXPECT_EQ(guess_tokens(torch, capture::Traits::Batch::kApart).count, 14u);
  EXPECT_EQ(guess_tokens(torch, capture::Traits::Batch::kApart).sequences, 2u);
  const std::vector<Shape> library = {{14, 64}, {14, 96}, {14, 4, 16}, {2, 97}};
  EXPECT_EQ(guess_tokens(library, capture::Traits::Batch::kPacked).count, 14u);
}

// Three sequences of two tokens: their first ones are as if there were nothing but them.
TEST(SampledRows, AreNotMostlyFirstOnesOfSequences) {
  EXPECT_EQ(sampled_rows({6, 3}), (std::vector<size_t>{0, 3, 5, 1, 5}));
  EXPECT_EQ(sampled_rows({2, 1}), (std::vector<size_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(sampled_rows({1, 1}), (std::vector<size_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(sampled_rows({7, 1}), (std::vector<size_t>{0, 2, 4, 6, 6}));
  Tokens chosen{8, 2};
  chosen.choice = std::make_shared<RowChoice>(RowChoice{8, {3, 4, 5, 6, 7}, {4, 7}});
  EXPECT_EQ(sampled_rows(chosen), (std::vector<size_t>{3, 6, 6, 4, 7}));
}

// Five tokens, three of which an expert was given.
TEST(ReadSamples, TakesAMatrixOfOtherRowsForRowsOfItsOwn) {
  TinyRun run(capture::kTorchTraits, "expert  Linear");
  run.save("expert", random_matrix("x", 3, 16).values, {3, 16}, DType::kFloat32);
  const auto samples = read_samples(run.recording.record(0, 0, 0), {5, 1});
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].own_rows, 3u);
  EXPECT_EQ(samples[0].columns, 16u);
  EXPECT_FALSE(read_sample(run.recording.record(0, 0, 0), {5, 1}));
  Sample all = samples[0];
  all.own_rows = 0;
  EXPECT_FALSE(distance(samples[0], all).agrees());  // the same rows, of other tokens
}

TEST(ReadTable, ReadsTheColumnsThatATransformTakes) {
  TinyRun run(capture::kTorchTraits, "expert  Linear");
  const Matrix matrix = random_matrix("x", 2, 64);
  run.save("expert", matrix.values, {2, 64}, DType::kFloat32);
  Transform half;
  half.columns = 64;
  half.first = half.taken = 32;
  const RowTable table = read_table(run.recording.record(0, 0, 0), {2, 1}, half);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1][0], matrix.values[64 + 32]);
  half.taken = 64;
  EXPECT_TRUE(read_table(run.recording.record(0, 0, 0), {2, 1}, half).empty());
}

TEST(ReadIntegers, ReadsNothingElse) {
  TinyRun run(capture::kTorchTraits, "ids\nnumbers");
  run.save("ids", std::vector<int64_t>{7, 8, 9}, {1, 3}, DType::kInt64);
  run.save("numbers", random_matrix("x", 1, 3));
  const auto ids = read_integers(run.recording.record(0, 0, 0));
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->shape, (Shape{1, 3}));
  EXPECT_EQ(ids->numbers, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_FALSE(read_integers(run.recording.record(0, 0, 1)));
}

}  // namespace
}  // namespace ait::match
