#include "report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/chart.h"
#include "report/utf8.h"

namespace ait::report {
namespace {

TEST(Table, AlignsByDisplayWidth) {
  Table table({{"name"}, {"n", Align::kRight}});
  table.add({"标杆", "1"});
  table.add({"e\u0301", "100"});
  EXPECT_EQ(table.text(false), "name    n\n标杆    1\ne\u0301     100\n");
}

TEST(Table, HasNoHeaderWithoutTitles) {
  Table table({{}, {}});
  table.add({"a", "b"});
  EXPECT_EQ(table.text(true), "a  b\n");
}

TEST(Table, ColoursTheHeaderOnlyWhenTold) {
  Table table({{"x"}});
  EXPECT_EQ(table.text(true), "\033[1mx\033[0m\n");
  EXPECT_EQ(table.text(false), "x\n");
}

TEST(Table, MakesTerminalEscapesVisible) {
  Table table({{"x"}});
  table.add({"\033[2Jgone\n\u202e"});
  EXPECT_EQ(table.text(false), "x\n\\x1b[2Jgone\\x0a\\xe2\\x80\\xae\n");
}

TEST(Utf8, RejectsOverlongAndSurrogateForms) {
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(valid_utf8("\xe6\xa0"), "\\xe6\\xa0");
}

TEST(Bar, ShowsEverythingAboveZero) {
  EXPECT_EQ(bar(0, 8), "");
  EXPECT_EQ(bar(1e-9, 8), "▏");
  EXPECT_EQ(bar(0.5, 8), "████");
  EXPECT_EQ(bar(1, 2), "██");
}

TEST(HistogramChart, HasALineForEachBin) {
  const std::vector<size_t> counts = {1, 0, 4};
  EXPECT_EQ(histogram_chart(counts, 0, 3, 4),
            "from        count\n   0  █         1\n   1            0\n   2  ████      4\n");
}

}  // namespace
}  // namespace ait::report
