#include "golden/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::golden {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WritesTest : public ::testing::Test {
 protected:
  static Output written(std::initializer_list<std::pair<size_t, std::vector<double>>> stretches,
                        std::vector<std::string>* notes = nullptr) {
    const Operation operation;
    const Limits limits;
    Task task(operation, limits);
    Writes writes(3, {4, 2}, 2);
    for (const auto& [start, values] : stretches) writes.add(start, values);
    Output out = std::move(writes).finish(task);
    if (notes != nullptr) *notes = task.give(std::vector<Output>{})->notes;
    return out;
  }
};

TEST_F(WritesTest, AreOrderedByTheirPlace) {
  std::vector<std::string> notes;
  const Output out = written({{4, {5, 6}}, {0, {1, 2}}, {2, {3, 4}}}, &notes);
  EXPECT_THAT(out.part->starts, ElementsAre(0, 2, 4));
  EXPECT_THAT(out.values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(out.part->input, 3u);
  EXPECT_EQ(out.written_input, 3u);
  EXPECT_THAT(out.undefined, IsEmpty());
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(WritesTest, OfTheSameValuesTwiceAreDefined) {
  const Output out = written({{2, {3, 4}}, {2, {3, 4}}});
  EXPECT_THAT(out.part->starts, ElementsAre(2));
  EXPECT_THAT(out.values, ElementsAre(3, 4));
  EXPECT_THAT(out.undefined, IsEmpty());
}

TEST_F(WritesTest, OfDifferentValuesToOnePlaceAreNot) {
  std::vector<std::string> notes;
  const Output out = written({{6, {7, 8}}, {2, {3, 4}}, {2, {3, 5}}, {0, {1, 2}}}, &notes);
  EXPECT_THAT(out.part->starts, ElementsAre(0, 2, 6));
  EXPECT_THAT(out.values, ElementsAre(1, 2, 3, 5, 7, 8));
  EXPECT_THAT(out.undefined, ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(notes, ElementsAre("1 places of input 3 are written several times with different "
                                 "values, so they are not compared"));
}

TEST(Ties, StandForEachOther) {
  Output out = exact_output({3}, {4, 7, 1});
  EXPECT_FALSE(is_tied(out, 0, 4));
  out.ties = {{2, 4, 9}};
  out.tie_of = {0, Output::kNoTie, 0};
  EXPECT_TRUE(is_tied(out, 0, 9));
  EXPECT_FALSE(is_tied(out, 0, 3));
  EXPECT_FALSE(is_tied(out, 1, 2));
  EXPECT_TRUE(is_tied(out, 2, 2));
}

}  // namespace
}  // namespace ait::golden
