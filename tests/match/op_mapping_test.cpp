#include "match/op_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_files.h"

namespace ait::match {
namespace {

using formats::TempFolder;
using ::testing::HasSubstr;

TEST(OpMapping, TakesTextsListsTensorsAndRecords) {
  const TempFolder folder;
  const auto path = folder.write("op_mapping_file.json", R"({"RmsNormOperation": "LlamaRMSNorm",
      "Demo_Layer_outtensor0": ["Demo_Block_output_0", "Other"]})");
  for (const std::string& given : {path, folder.path().string()}) {
    const auto mappings = read_op_mapping(given);
    ASSERT_TRUE(mappings) << mappings.error().text();
    ASSERT_EQ(mappings->size(), 3u);
    EXPECT_EQ((*mappings)[0].module, "LlamaRMSNorm");
    EXPECT_EQ((*mappings)[1].library, "Demo_Layer");
    EXPECT_EQ((*mappings)[1].library_tensor, "outtensor0");
    EXPECT_EQ((*mappings)[1].module, "Demo_Block");
    EXPECT_EQ((*mappings)[1].module_tensor, "output_0");
  }
  const auto list = read_op_mapping(
      folder.write("l.json", R"([{"atb": "A", "torch": "B", "torch_tensor": "output_1"}])"));
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)[0].module_tensor, "output_1");
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
  EXPECT_THAT(read_op_mapping(folder.path().string()).error().text(),
              HasSubstr("holds no op_mapping_file.json"));
  EXPECT_THAT(read_op_mapping(folder.write("m.json", "{}")).error().text(),
              HasSubstr("it names no types"));
}

}  // namespace
}  // namespace ait::match
