#include "opcheck/operation_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader =
    "CaseNum|CaseName|OpName |OpParam|InNum|OutDType|InTensorFile|OutTensorFile\n";

OperationRows parse(const std::string& lines) {
  auto rows = parse_operation_rows(kHeader + lines, "table.csv");
  EXPECT_TRUE(rows) << rows.error().text();
  return rows ? std::move(*rows) : OperationRows();
}

TEST(OperationRows, FindCellsByTheNamesOfColumnsAndTrimThem) {
  const auto rows =
      parse("1|x| LinearOperation_3_1_0 |{\"hasBias\":true}|3|float16 |a.bin;b.bin|c.bin\r\n");
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.rows[0].type, "LinearOperation");
  EXPECT_THAT(rows.rows[0].ids, ElementsAre(3, 1, 0));
  EXPECT_EQ(rows.rows[0].param, "{\"hasBias\":true}");
  EXPECT_THAT(rows.rows[0].input_files, ElementsAre("a.bin", "b.bin"));
  EXPECT_THAT(rows.rows[0].output_files, ElementsAre("c.bin"));
}

TEST(OperationRows, OfEqualIdsTheLastCounts) {
  const auto rows = parse("1|x|AOperation_1|{}|0|float|||\n2|x|BOperation_1|{}|0|float||\n");
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.rows[0].type, "BOperation");
}

TEST(OperationRows, LeaveOutWhatMakesNoSenseAndSayIt) {
  const auto rows = parse(
      "1|x|Nothing|{}|0|float||\n"
      "2|x|AOperation_x|{}|0|float||\n"
      "3|x|AOperation_99999999999999999999|{}|0|float||\n"
      "4|x|AOperation_4|{}|0|||\n"
      "5\n"
      "6|x|AOperation_6|{}|0|float||\n");
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_THAT(rows.rows[0].ids, ElementsAre(6));
  EXPECT_EQ(rows.problems.size(), 5u);
  EXPECT_THAT(rows.problems[0].text(), HasSubstr("table.csv"));
}

TEST(OperationRows, NeedTheirColumns) {
  for (const char* text : {"", "\n", "a|b|c\n1|2|3\n", "OpName\nA_1\n"})
    EXPECT_THAT(parse_operation_rows(text, "t.csv").error().text(),
                HasSubstr("Cannot find enough info in csv file"));
}

}  // namespace
}  // namespace ait::opcheck
