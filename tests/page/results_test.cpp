#include "page/results.h"

#include <gtest/gtest.h>

#include "test_files.h"
#include "unpacked.h"

namespace ait::page {
namespace {

using formats::TempFolder;

TEST(Results, AreKnownByTheirContent) {
  const TempFolder folder;
  const auto kind = [&](const std::string& name, const std::string& content) {
    return result_kind(folder.write(name, content)).value_or("none");
  };
  EXPECT_EQ(kind("a.csv", "op_id,op_name,op_param,tensor_path,out_tensor_id\n"), "opcheck");
  EXPECT_EQ(kind("b.csv", "API name,Forward Test Success,Backward Test Success\n"), "api_check");
  EXPECT_EQ(kind("c.csv", "API name,Verdict,CPU overflow\n"), "api_overflow");
  EXPECT_EQ(kind("d.csv", "Npu Name,Bench Dtype,NPU Dtype\n"), "api_details");
  EXPECT_EQ(kind("e.txt", "Overflow detected! Operator name: Linear_1:MatMul\n"), "errcheck");
  EXPECT_EQ(kind("manifest.json", "{\"tool\": \"ait llm dump\"}"), "dump");
  EXPECT_EQ(kind("f.csv", "token_id,data_id\n"), "none");
  EXPECT_EQ(kind("g.json", "{}"), "none");
}

TEST(Results, HaveNumbersWhereACsvHasThem) {
  const TempFolder folder;
  const auto page =
      result_page(folder.write("a.csv",
                               "op_id,op_name,op_param,tensor_path,max_rel_error\n"
                               "1_2,Linear,\"{\"\"a\"\": 1}\",x/y,0.5\n3,Norm,{},x/z,NaN\n"),
                  "1.2.3");
  ASSERT_TRUE(page) << page.error().text();
  const auto about = about_of(page_text(*page));
  EXPECT_EQ(about["kind"], "opcheck");
  EXPECT_EQ(about["version"], "1.2.3");
  EXPECT_EQ(about["table"]["rows"], 2);
  EXPECT_EQ(about["table"]["columns"][2]["kind"], "text");
  EXPECT_EQ(about["table"]["columns"][4]["kind"], "f64");
}

TEST(Results, CountOverflowsByOperator) {
  const TempFolder folder;
  const auto page = result_page(folder.write("ait_overflow_res_1.txt",
                                             "Overflow detected! Operator name: A_1:K\n"
                                             "Overflow detected! Operator name: B_2:K\n"
                                             "Overflow detected! Operator name: A_1:K\n"),
                                "");
  ASSERT_TRUE(page);
  const auto parts = parts_of(page_text(*page));
  EXPECT_EQ(parts.at("c0t"), "[\"\",\n\"A_1:K\",\n\"B_2:K\"]");
}

TEST(Results, RefuseWhatIsNone) {
  const TempFolder folder;
  const auto page = result_page(folder.write("x.txt", "hello"), "");
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::kUnsupported);
  EXPECT_FALSE(result_page((folder.path() / "gone.csv").string(), ""));
}

}  // namespace
}  // namespace ait::page
