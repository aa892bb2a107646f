#include "match/op_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_files.h"

namespace ait::match {
namespace {

using formats::TempFolder;
using ::testing::HasSubstr;

TEST(OpKinds, KnowsTheTypesOfBothSides) {
  EXPECT_EQ(atb_kind("RmsNormOperation", ""), OpKind::kNorm);
  EXPECT_EQ(atb_kind("LinearOperation", "{}"), OpKind::kLinear);
  EXPECT_EQ(atb_kind("GatherOperation", ""), OpKind::kEmbedding);
  EXPECT_EQ(atb_kind("RopeOperation", ""), OpKind::kRotary);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":8,"x":1})"), OpKind::kAdd);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":"ELEWISE_MUL"})"), OpKind::kMultiply);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":2})"), OpKind::kOther);
  EXPECT_EQ(atb_kind("Zyxw", "{}"), OpKind::kUnknown);
  EXPECT_EQ(torch_kind("LlamaRMSNorm"), OpKind::kNorm);
  EXPECT_EQ(torch_kind("LlamaRotaryEmbedding"), OpKind::kRotary);
  EXPECT_EQ(torch_kind("LlamaDecoderLayer"), OpKind::kUnknown);
}

TEST(OpMapping, TakesTextsListsTensorsAndRecords) {
  const TempFolder folder;
  const auto path = folder.write("op_mapping_file.json", R"({"RmsNormOperation": "LlamaRMSNorm",
      "Demo_Layer_outtensor0": ["Demo_Block_output_0", "Other"]})");
  for (const std::string& given : {path, folder.path().string()}) {
    const auto mappings = read_op_mapping(given);
    ASSERT_TRUE(mappings) << mappings.error().text();
    ASSERT_EQ(mappings->size(), 3u);
    EXPECT_EQ((*mappings)[0].torch, "LlamaRMSNorm");
    EXPECT_EQ((*mappings)[1].atb, "Demo_Layer");
    EXPECT_EQ((*mappings)[1].atb_tensor, "outtensor0");
    EXPECT_EQ((*mappings)[1].torch, "Demo_Block");
    EXPECT_EQ((*mappings)[1].torch_tensor, "output_0");
  }
  const auto list = read_op_mapping(
      folder.write("l.json", R"([{"atb": "A", "torch": "B", "torch_tensor": "output_1"}])"));
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)[0].torch_tensor, "output_1");
}

TEST(OpMapping, SaysWhatIsWrong) {
  const TempFolder folder;
  for (const char* text : {"", "{", "3", "[1]", R"({"A": 3})", R"({"A": [3]})", R"({"A b": "C"})",
                           R"({"A": "C.d"})", R"([{"atb": "A"}])"}) {
    const auto mappings = read_op_mapping(folder.write("m.json", text));
    ASSERT_FALSE(mappings) << text;
    EXPECT_THAT(mappings.error().text(), HasSubstr("Invalid op_mapping file")) << text;
  }
  EXPECT_THAT(read_op_mapping((folder.path() / "none.json").string()).error().text(),
              HasSubstr("no such mapping file"));
}

}  // namespace
}  // namespace ait::match
