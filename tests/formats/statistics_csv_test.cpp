#include "formats/statistics_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "test_files.h"

namespace ait::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTable =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n"
    "root.norm,LlamaRMSNorm,Input,0,torch.float16,\"(1, 7, 64)\",1.5,-2.5,0.25,12.0,input_0\r\n"
    "root.norm,LlamaRMSNorm,Output,0,torch.bfloat16,\"(3,)\",nan,nan,nan,inf,output\r\n"
    "root.norm,LlamaRMSNorm,Output,1,torch.float32,\"(0, 4)\",,,,,output_1\r\n";

TEST(StatisticsCsv, DescribesTensorsWithoutTheirData) {
  const TempFolder folder;
  const auto file = open_tensor_file(folder.write("statistics.csv", kTable));
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ((*file)->size(), 3U);
  EXPECT_EQ((*file)->name(0), "input_0");
  const auto input = (*file)->describe(0);
  ASSERT_TRUE(input);
  EXPECT_FALSE(input->has_data);
  EXPECT_EQ(input->dtype, DType::kFloat16);
  EXPECT_EQ(input->shape, (Shape{1, 7, 64}));
  EXPECT_EQ(input->statistics->maximum, 1.5);
  EXPECT_EQ(input->statistics->minimum, -2.5);
  EXPECT_EQ(input->statistics->mean, 0.25);
  EXPECT_EQ(input->statistics->l2_norm, 12.0);
  const auto output = (*file)->describe(1);
  EXPECT_EQ(output->shape, (Shape{3}));
  EXPECT_TRUE(std::isnan(output->statistics->maximum));
  EXPECT_TRUE(std::isinf(output->statistics->l2_norm));
  EXPECT_FALSE((*file)->describe(2)->statistics) << "an empty tensor has none";
  EXPECT_TRUE((*file)->describe(2)->has_data) << "and needs no data";
  EXPECT_EQ((*file)->load(2)->shape(), (Shape{0, 4}));
  EXPECT_THAT((*file)->load(0).error().message(), HasSubstr("tensor has no data."));
}

constexpr const char* kOlderHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm\r\n";

std::vector<std::string> names_in(const std::string& table) {
  const TempFolder folder;
  const auto file = open_tensor_file(folder.write("s.csv", table));
  std::vector<std::string> names;
  EXPECT_TRUE(file) << file.error().text();
  for (size_t i = 0; file && i < (*file)->size(); ++i) names.push_back((*file)->name(i));
  return names;
}

TEST(StatisticsCsv, FindsTheLaterColumnsByTheirNames) {
  const TempFolder folder;
  const std::string line = "root.x,Linear,Output,0,torch.float32,\"(2, 2)\",inf,0,0.5,1,";
  for (const auto& [columns, cells] : std::vector<std::pair<std::string, std::string>>{
           {"File,NaN,Inf,SameAs,Sketch", "root.x/output,3,4,root.w/output,1:abc"},
           {"Sketch,Unknown,Inf,File,NaN", "1:abc,9,4,root.x/output,3"}}) {
    const auto file = open_tensor_file(folder.write(
        "s.csv", "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm," +
                     columns + "\r\n" + line + cells + "\r\n"));
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ((*file)->name(0), "root.x/output") << columns;
    const auto statistics = (*file)->describe(0)->statistics;
    EXPECT_EQ(statistics->nan, 3U) << columns;
    EXPECT_EQ(statistics->inf, 4U) << columns;
    EXPECT_EQ(statistics->sketch, "1:abc") << columns;
  }
}

TEST(StatisticsCsv, HasNoCountsWhereNobodyCounted) {
  const TempFolder folder;
  const std::string header =
      "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File,NaN,Inf\r\n";
  for (const char* counts : {",", "-1,1.5", "18446744073709551616,x"}) {
    const auto file = open_tensor_file(folder.write(
        "s.csv", header + "m,L,Output,0,torch.int8,\"(2,)\",1,0,0.5,1,output," + counts + "\r\n"));
    ASSERT_TRUE(file);
    EXPECT_FALSE((*file)->describe(0)->statistics->nan) << counts;
    EXPECT_FALSE((*file)->describe(0)->statistics->inf) << counts;
  }
  EXPECT_FALSE((*open_tensor_file(folder.write("s.csv", kTable)))->describe(0)->statistics->nan);
}

TEST(StatisticsCsv, NamesTensorsOfOlderToolsByDirectionAndNumber) {
  const std::string input = "root.x,Linear,Input,0,torch.float32,\"(2, 2)\",1,0,0.5,1\r\n";
  const std::string first = "root.x,Linear,Output,0,torch.float32,\"(2, 2)\",1,0,0.5,1\r\n";
  const std::string second = "root.x,Linear,Output,1,torch.float32,\"(2,)\",1,0,0.5,1\r\n";
  EXPECT_THAT(names_in(kOlderHeader + input + first + second),
              ElementsAre("input_0", "output_0", "output_1"));
  EXPECT_THAT(names_in(kOlderHeader + input + first), ElementsAre("input_0", "output"))
      << "a module that puts out one tensor has no number in its name";
  EXPECT_THAT(names_in(kOlderHeader + input), ElementsAre("input_0"));
  EXPECT_THAT(names_in(kTable), ElementsAre("input_0", "output", "output_1"));
}

TEST(StatisticsCsv, TakesTheFirstCallWhereASecondOneWasAppended) {
  const TempFolder folder;
  const std::string call = "root.x,Linear,Output,0,torch.float32,\"(2, 2)\",";
  const auto file = open_tensor_file(
      folder.write("s.csv", kOlderHeader + call + "1,0,0.5,1\r\n" + call + "9,9,9,9\r\n"));
  ASSERT_TRUE(file);
  ASSERT_EQ((*file)->size(), 1U);
  EXPECT_EQ((*file)->name(0), "output");
  EXPECT_EQ((*file)->describe(0)->statistics->maximum, 1);
  EXPECT_THAT((*file)->note(), HasSubstr("1 lines"));
}

TEST(StatisticsCsv, HasNoStatisticsWhereOneOfThemIsNoNumber) {
  const TempFolder folder;
  for (const char* numbers : {"N/A,0,0.5,1", "1,,0.5,1", "1,0,half,1", "1,0,0.5,", ",,,",
                              "1e999,0,0.5,1", "1 ,0,0.5,1"}) {
    const auto file = open_tensor_file(folder.write(
        "s.csv", std::string(kOlderHeader) + "x,L,Output,0,torch.float32,\"(2,)\"," + numbers));
    ASSERT_TRUE(file) << numbers;
    const auto described = (*file)->describe(0);
    ASSERT_TRUE(described) << numbers;
    EXPECT_FALSE(described->has_data) << numbers;
    EXPECT_FALSE(described->statistics) << numbers;
    EXPECT_EQ(described->shape, (Shape{2})) << numbers;
  }
}

TEST(StatisticsCsv, ReadsQuotedCellsAndEitherLineEnd) {
  EXPECT_THAT(names_in(std::string(kOlderHeader) +
                       "\"a \"\"b\"\"\",\"L\n\",Output,0,torch.int8,(),1,1,1,1,\"out\"\"put,\n1\"\n"
                       "\n"
                       "a,L,Input,3,torch.int8,\"(4)\",1,1,1,1,,more,cells\n"),
              ElementsAre("out\"put,\n1", "input_3"));
}

TEST(StatisticsCsv, IsKnownByItsWholeHeader) {
  const TempFolder folder;
  const std::string header =
      "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm";
  for (const char* end : {"", "\n", "\r\n", ",File\r\n", ",More"})
    EXPECT_TRUE(open_tensor_file(folder.write("s.csv", header + end))) << end;
  for (const char* end : {"s", " ", ";", "\"\n"})
    EXPECT_FALSE(open_tensor_file(folder.write("s.csv", header + end))) << end;
  EXPECT_FALSE(open_tensor_file(folder.write("s.csv", "token_id,data_id\n")));
}

TEST(StatisticsCsv, StopsAtMoreTensorsThanARoundHas) {
  const TempFolder folder;
  std::string table = kOlderHeader;
  for (size_t i = 0; i <= statistics_csv::kMaxTensors; ++i)
    table += "a,L,Output," + std::to_string(i) + ",torch.int8,(),1,1,1,1\n";
  const auto file = open_tensor_file(folder.write("s.csv", table));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("more than 1000000 tensors"));
}

TEST(StatisticsCsv, RefusesAFileLargerThanATableMayBe) {
  const TempFolder folder;
  const std::string path = folder.write("s.csv", kTable);
  std::filesystem::resize_file(path, statistics_csv::kMaxBytes + 1);
  const auto file = open_tensor_file(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kUnsupported);
}

TEST(StatisticsCsv, StaysSmallOnALineOfManyCells) {
  const TempFolder folder;
  const std::string line =
      "a,L,Output,0,torch.int8,(),1,1,1,1,output" + std::string(size_t{8} << 20, ',');
  const auto file = open_tensor_file(folder.write("s.csv", kOlderHeader + line));
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->name(0), "output");
}

TEST(StatisticsCsv, LeavesOutLinesThatMakeNoSense) {
  const TempFolder folder;
  for (const char* line :
       {"a,b,Output,0,torch.float32,\"(2\",1,0,0.5,1,output",
        "a,b,Output,0,torch.nothing,\"(2,)\",1,0,0,1,o", "a,b",
        "a,b,Output,0,torch.float32,\"(-2,)\",1,0,0.5,1,output",
        "a,b,Output,0,torch.float32,\"(9223372036854775807, 9223372036854775807)\",1,0,0,1,o",
        "\"unended"}) {
    const auto file = open_tensor_file(folder.write("s.csv", std::string(kTable) + line));
    ASSERT_TRUE(file) << line;
    EXPECT_EQ((*file)->size(), 3U) << line;
    EXPECT_NE((*file)->note(), "") << line;
    const auto nothing_else =
        open_tensor_file(folder.write("s.csv", kOlderHeader + std::string(line)));
    ASSERT_FALSE(nothing_else) << line;
    EXPECT_THAT(nothing_else.error().message(), HasSubstr("none of its 1 lines")) << line;
  }
}

}  // namespace
}  // namespace ait::formats
