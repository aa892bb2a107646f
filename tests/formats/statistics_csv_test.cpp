#include "formats/statistics_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test_files.h"

namespace ait::formats {
namespace {

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
  EXPECT_THAT((*file)->load(0).error().message(), HasSubstr("tensor has no data."));
}

TEST(StatisticsCsv, NamesTensorsOfOlderToolsByDirectionAndNumber) {
  const TempFolder folder;
  const auto file = open_tensor_file(
      folder.write("s.csv",
                   "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm\r\n"
                   "root.x,Linear,Input,0,torch.float32,\"(2, 2)\",1,0,0.5,1\r\n"
                   "root.x,Linear,Output,0,torch.float32,\"(2, 2)\",1,0,0.5,1\r\n"
                   "root.x,Linear,Output,0,torch.float32,\"(2, 2)\",9,9,9,9\r\n"));
  ASSERT_TRUE(file);
  ASSERT_EQ((*file)->size(), 2U) << "a second call appended, the first one counts";
  EXPECT_EQ((*file)->name(0), "input_0");
  EXPECT_EQ((*file)->name(1), "output_0");
  EXPECT_EQ((*file)->describe(1)->statistics->maximum, 1);
  EXPECT_THAT((*file)->note(), HasSubstr("1 lines"));
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
  }
}

}  // namespace
}  // namespace ait::formats
