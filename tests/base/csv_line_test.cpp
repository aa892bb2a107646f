#include "base/csv_line.h"

#include <gmock/gmock.h>

namespace ait {
namespace {

using ::testing::ElementsAre;

TEST(CsvLine, TakesOneLineAtATime) {
  std::string_view rest = "a,b\r\n,\nlast";
  EXPECT_THAT(take_csv_line(rest).cells, ElementsAre("a", "b"));
  EXPECT_THAT(take_csv_line(rest).cells, ElementsAre("", ""));
  EXPECT_THAT(take_csv_line(rest).cells, ElementsAre("last"));
  EXPECT_TRUE(rest.empty());
}

TEST(CsvLine, QuotesHoldCommasLineEndsAndQuotes) {
  std::string_view rest = "\"a,\"\"b\"\"\nc\",d\ne";
  EXPECT_THAT(take_csv_line(rest).cells, ElementsAre("a,\"b\"\nc", "d"));
  EXPECT_EQ(rest, "e");
}

TEST(CsvLine, AQuoteWithoutAnEndIsCut) {
  std::string_view rest = "a,\"b\nc";
  EXPECT_TRUE(take_csv_line(rest).is_cut);
  EXPECT_TRUE(rest.empty());
}

TEST(CsvLine, CellsThatNobodyAskedForAreCountedAndNotKept) {
  std::string_view rest = "a,b,c,\"d,e\",f\ng";
  const CsvLine line = take_csv_line(rest, 2);
  EXPECT_THAT(line.cells, ElementsAre("a", "b"));
  EXPECT_EQ(line.count, 5u);
  EXPECT_EQ(rest, "g");
}

}  // namespace
}  // namespace ait
