#include "opcheck/operation_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader =
    "CaseNum|CaseName|OpName |OpParam|InNum|OutDType|InTensorFile|OutTensorFile\n";

std::vector<OperationRow> parse(const std::string& lines) {
  auto rows = parse_operation_rows(kHeader + lines, "t.csv");
  EXPECT_TRUE(rows) << rows.error().text();
  return rows ? std::move(*rows) : std::vector<OperationRow>();
}

TEST(OperationRows, FindCellsByTheNamesOfColumnsAndTrimThem) {
  const auto rows =
      parse("1|x| LinearOperation_3_1_0 |{\"hasBias\":true}|3|float16 |a.bin;b.bin|c.bin\r\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].type, "LinearOperation");
  EXPECT_THAT(rows[0].ids, ElementsAre(3, 1, 0));
  EXPECT_EQ(rows[0].param, "{\"hasBias\":true}");
  EXPECT_THAT(rows[0].input_files, ElementsAre("a.bin", "b.bin"));
  EXPECT_THAT(rows[0].output_files, ElementsAre("c.bin"));
}

TEST(OperationRows, OfEqualIdsTheLastCounts) {
  const auto rows = parse("1|x|AOperation_1|{}|0|float|||\n2|x|BOperation_1|{}|0|float||\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].type, "BOperation");
}

TEST(OperationRows, ThatMakeNoSenseSayWhyAndInWhichLine) {
  const auto rows = parse(
      "1|x|Nothing|{}|0|float||\n"
      "2|x|AOperation_x|{}|0|float||\n"
      "3|x|AOperation_99999999999999999999|{}|0|float||\n"
      "\n"
      "4|x|AOperation_4|{}|0|||\n"
      "5\n"
      "6|x|AOperation_6|" +
      std::string(kMaxParamBytes + 1, 'x') + "|0|float||\n7|x|AOperation_7|{}|0|float|" +
      std::string(kMaxTensors, ';') + "|\n8|x|AOperation_8|{}|0|float||\n");
  const std::vector<std::string> problems = {
      "t.csv: line 2: the OpName is not {type}_{id}_{id}…",
      "t.csv: line 3: the OpName is not {type}_{id}_{id}…",
      "t.csv: line 4: the OpName is not {type}_{id}_{id}…",
      "t.csv: line 6: the OutDType is empty",
      "t.csv: line 7: the OpName is not {type}_{id}_{id}…",
      "t.csv: line 8: the OpParam has 65537 bytes, which are not the parameters of an operation",
      "t.csv: line 9: it names more than 256 tensors",
      ""};
  ASSERT_EQ(rows.size(), problems.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].problem, problems[i]);
  EXPECT_EQ(rows[0].type, "Nothing");
  EXPECT_THAT(rows[5].ids, ElementsAre(6));
}

TEST(OperationRows, TakeWritersToTheirInputsWithoutTypesOfOutputs) {
  EXPECT_EQ(parse("1|x|KvCacheOperation_1|{}|5|||\n")[0].problem, "");
}

TEST(OperationRows, NeedTheirColumns) {
  for (const char* text : {"", "\n", "a|b|c\n1|2|3\n", "OpName\nA_1\n"})
    EXPECT_THAT(parse_operation_rows(text, "t.csv").error().text(),
                HasSubstr("Cannot find enough info in csv file"));
}

}  // namespace
}  // namespace ait::opcheck
