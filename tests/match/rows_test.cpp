#include "match/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A letter is a token, with the row that its embedding gives it; "." is padding.
RowTable table(const std::string& tokens) {
  RowTable out;
  for (const char token : tokens) out.push_back(random_matrix(std::string(1, token), 1, 16).values);
  return out;
}

RowsSide batch(size_t sequences, const std::string& tokens) {
  return {{tokens.size(), sequences}, false, {table(tokens)}, nullptr, {}};
}

RowsSide packed(const std::string& tokens) {
  return {{tokens.size(), 1}, true, {table(tokens)}, nullptr, {}};
}

// A batch that was given a mask.
RowsSide masked(size_t sequences, const std::string& tokens) {
  RowsSide out = batch(sequences, tokens);
  std::vector<bool> padding;
  for (const char token : tokens) padding.push_back(token == '.');
  out.padding = std::make_shared<std::vector<bool>>(padding);
  return out;
}

TEST(Rows, AreTakenAsTheyLieWhereTheyAgree) {
  for (const auto& [golden, actual] : {std::pair(batch(2, "abcdef"), packed("abcdef")),
                                       std::pair(batch(1, "abc"), batch(2, "abcabc"))}) {
    const auto rows = find_rows(golden, actual);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->golden, nullptr);
    EXPECT_EQ(rows->actual, nullptr);
  }
}

TEST(Rows, OfAllSequencesMayLieBesideEachOther) {
  const auto rows = find_rows(batch(2, "abcdef"), packed("adbecf"));
  ASSERT_TRUE(rows && rows->golden);
  EXPECT_THAT(rows->golden->rows, IsEmpty());
  EXPECT_THAT(rows->golden->last, ElementsAre(2, 5));
  EXPECT_THAT(rows->actual->rows, ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(rows->actual->last, ElementsAre(4, 5));
}

TEST(Rows, OfPaddedSequencesAreFoundInPackedOnes) {
  const auto left = find_rows(batch(2, "..abcdefgh"), packed("abcdefgh"));
  ASSERT_TRUE(left && left->golden);
  EXPECT_THAT(left->golden->rows, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(left->golden->last, ElementsAre(4, 9));
  EXPECT_THAT(left->actual->rows, IsEmpty());
  EXPECT_THAT(left->actual->last, ElementsAre(2, 7));
  const auto right = find_rows(packed("abcdefgh"), batch(2, "abc..defgh"));
  ASSERT_TRUE(right && right->golden);
  EXPECT_THAT(right->actual->rows, ElementsAre(0, 1, 2, 5, 6, 7, 8, 9));
  EXPECT_THAT(right->actual->last, ElementsAre(2, 9));
}

TEST(Rows, OfOneSequenceAreFoundInABatch) {
  const auto rows = find_rows(batch(1, "abc"), batch(3, "defgh..abcijklm"));
  ASSERT_TRUE(rows && rows->golden);
  EXPECT_THAT(rows->golden->rows, IsEmpty());
  EXPECT_THAT(rows->actual->rows, ElementsAre(7, 8, 9));
}

TEST(Rows, FollowFromTheMaskWhereEmbeddingsDoNotTellThem) {
  // Another embedding, in part or altogether; or two ways to cut equal tokens.
  for (const auto& [golden, actual] :
       {std::pair("..abcdefgh", "abcdefgx"), std::pair("..abcdefgh", "stuvwxyz"),
        std::pair("..abababab", "abababab")}) {
    const auto rows = find_rows(masked(2, golden), packed(actual));
    ASSERT_TRUE(rows && rows->golden) << actual;
    EXPECT_THAT(rows->golden->rows, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
    EXPECT_THAT(rows->actual->last, ElementsAre(2, 7));
  }
  const auto other_way = find_rows(packed("stuvwxyz"), masked(2, "..abcdefgh"));
  ASSERT_TRUE(other_way && other_way->golden);
  EXPECT_THAT(other_way->actual->rows, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
  RowsSide unread = packed("");
  unread.tables.clear();
  unread.tokens.count = 8;
  EXPECT_TRUE(find_rows(masked(2, "..abcdefgh"), unread));
}

TEST(Rows, DoNotFollowFromAMaskThatDoesNotFit) {
  EXPECT_FALSE(find_rows(masked(2, "..abcdefgh"), packed("stuvwxy")));   // one row less
  EXPECT_FALSE(find_rows(masked(2, "..abcdefgh"), packed("defghabx")));  // the other one first
  RowsSide positions = packed("stuvwxyz");
  positions.positions = {0, 1, 2, 0, 1, 2, 3, 4};
  EXPECT_TRUE(find_rows(masked(2, "..abcdefgh"), positions));
  positions.positions = {0, 1, 2, 3, 4, 0, 1, 2};
  EXPECT_FALSE(find_rows(masked(2, "..abcdefgh"), positions));
}

TEST(Rows, AreNotGuessed) {
  EXPECT_FALSE(find_rows(batch(2, "..abcdefgh"), packed("abcdefgx")));
  EXPECT_FALSE(find_rows(batch(2, "abcdef"), packed("uvwxyz")));
  // One sequence of three and one of one, or two of two.
  EXPECT_FALSE(find_rows(batch(2, "abababab"), packed("ababab")));
}

}  // namespace
}  // namespace ait::match
