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
  return {{tokens.size(), sequences}, false, {table(tokens)}};
}

RowsSide packed(const std::string& tokens) { return {{tokens.size(), 1}, true, {table(tokens)}}; }

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

TEST(Rows, AreNotGuessed) {
  EXPECT_FALSE(find_rows(batch(2, "..abcdefgh"), packed("abcdefgx")));
  EXPECT_FALSE(find_rows(batch(2, "abcdef"), packed("uvwxyz")));
  // One sequence of three and one of one, or two of two.
  EXPECT_FALSE(find_rows(batch(2, "abababab"), packed("ababab")));
}

}  // namespace
}  // namespace ait::match
