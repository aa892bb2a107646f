#include "graph/operation_table.h"

#include <gmock/gmock.h>

#include <string>

#include "test_folder.h"

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

const std::string kHeader =
    "CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|"
    "OutShape|DataGenType|"
    "DataGenRange|InTensorFile|OutTensorFile|TestType|TestLevel|FromModel|SocVersion|"
    "ExpectedError\n";

std::string row(const std::string& name, const std::string& param, const std::string& inputs,
                const std::string& outputs) {
  return "1|" + name + "1|" + name + "|" + param + "|" + inputs + "|" + outputs +
         "|customize| |/d/in.bin|/d/out.bin| | | | |NO_ERROR\n";
}

Node node(const std::string& name, size_t inputs, size_t outputs, const std::string& type = "T") {
  Node made;
  made.name = name;
  made.type = type;
  made.inputs.resize(inputs);
  made.outputs.resize(outputs);
  return made;
}

TEST(OperationTable, GivesTypesAndShapesByPosition) {
  const auto table =
      ShapeTable::parse(kHeader + row("Add_4_1", R"({"elewiseType":"ELEWISE_ADD"})",
                                      "2|float16;ACL_BF16|nd;nd|2,3;4", "1|float|nd|2,3"));
  ASSERT_TRUE(table) << table.error().text();
  const auto* found = table->find(node("Add_4_1", 2, 1));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->inputs[0].element_type, 10);
  EXPECT_THAT(found->inputs[0].dims, ElementsAre(2, 3));
  EXPECT_EQ(found->inputs[1].element_type, 16);
  EXPECT_THAT(found->inputs[1].dims, ElementsAre(4));
  EXPECT_EQ(found->outputs[0].element_type, 1);
  EXPECT_EQ(table->find(node("Add_4_1", 1, 1)), nullptr);
  EXPECT_EQ(table->find(node("Add_4_2", 2, 1)), nullptr);
}

TEST(OperationTable, KnowsTheTypeNamesOfOldAndNewVersions) {
  EXPECT_EQ(onnx_element_type("ACL_FLOAT16"), 10);
  EXPECT_EQ(onnx_element_type("float"), 1);
  EXPECT_EQ(onnx_element_type("ACL_FLOAT"), 1);
  EXPECT_EQ(onnx_element_type("bf16"), 16);
  EXPECT_EQ(onnx_element_type("double"), 11);
  EXPECT_EQ(onnx_element_type("ACL_BOOL"), 9);
  EXPECT_EQ(onnx_element_type("int64"), 7);
  EXPECT_EQ(onnx_element_type("hifloat8"), 0);
  EXPECT_EQ(onnx_element_type(""), 0);
}

TEST(OperationTable, ASeparatorInTheParametersIsNoColumn) {
  const auto table =
      ShapeTable::parse(kHeader + row("X_1", R"({"a":"p|q|r"})", "1|int8|nd|7", "1|int8|nd|8"));
  ASSERT_NE(table->find(node("X_1", 1, 1)), nullptr);
  EXPECT_THAT(table->find(node("X_1", 1, 1))->outputs[0].dims, ElementsAre(8));
}

TEST(OperationTable, ScalarsAndNoTensorsAreTwoThings) {
  const auto table = ShapeTable::parse(kHeader + row("X_1", "{}", "0|||", "1|float|nd|"));
  const auto* found = table->find(node("X_1", 0, 1));
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->outputs.at(0).dims, IsEmpty());
}

TEST(OperationTable, ADamagedRowIsPassedOver) {
  const std::string good = row("Good_1", "{}", "1|float|nd|2", "1|float|nd|2");
  const auto table =
      ShapeTable::parse(kHeader + row("A_1", "{}", "2|float|nd|2", "1|float|nd|2") +
                        row("B_1", "{}", "1|float|nd|-2", "1|float|nd|2") +
                        row("C_1", "{}", "1|float|nd|2,,3", "1|float|nd|2") +
                        row("D_1", "{}", "99999999999|float|nd|2", "1|float|nd|2") +
                        row("E_1", "{}", "1|float|nd|99999999999999999999", "1|float|nd|2") +
                        "\n|||\n" + good + good.substr(0, good.size() / 2));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 1);
  EXPECT_NE(table->find(node("Good_1", 1, 1)), nullptr);
}

TEST(OperationTable, TheFirstRowOfAnOperationCounts) {
  const auto table = ShapeTable::parse(kHeader + row("X_1", "{}", "1|float|nd|2", "0|||") +
                                       row("X_1", "{}", "1|float|nd|3", "0|||"));
  EXPECT_THAT(table->find(node("X_1", 1, 0))->inputs[0].dims, ElementsAre(2));
}

TEST(OperationTable, APluginIsFoundByItsIds) {
  const auto table = ShapeTable::parse(kHeader + row("MyRope_3_1", "{}", "1|float|nd|2", "0|||"));
  EXPECT_NE(table->find(node("PluginOperation_3_1", 1, 0, "PluginOperation")), nullptr);
  EXPECT_EQ(table->find(node("PluginOperation_3_2", 1, 0, "PluginOperation")), nullptr);
  EXPECT_EQ(table->find(node("OtherOperation_3_1", 1, 0, "OtherOperation")), nullptr);
}

TEST(OperationTable, AnotherKindOfFileIsRefused) {
  EXPECT_FALSE(ShapeTable::parse(""));
  EXPECT_FALSE(ShapeTable::parse("a,b,c\n1,2,3\n"));
}

TEST(OperationTable, IsFoundBesideTheTopologyByTheLowestRound) {
  const TestFolder folder;
  const std::string json = folder.write("layer/77/x.json", "{}");
  EXPECT_FALSE(find_operation_table(json));
  folder.write("operation_io_tensors/78/operation_tensors_0.csv", "");
  folder.write("operation_io_tensors/77/operation_tensors_10.csv", "");
  folder.write("operation_io_tensors/77/operation_tensors_.csv", "");
  folder.write("operation_io_tensors/77/operation_tensors_x.csv", "");
  folder.write("operation_io_tensors/77/operation_tensors_9.csv", "");
  ASSERT_TRUE(find_operation_table(json));
  EXPECT_THAT(*find_operation_table(json),
              EndsWith("operation_io_tensors/77/operation_tensors_9.csv"));
}

}  // namespace
}  // namespace ait::graph
