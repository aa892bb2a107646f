// What onnx itself thinks of the files is tests/python/test_json_fitter.py.

#include "graph/onnx.h"

#include <gmock/gmock.h>

#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "graph/atb_json.h"
#include "graph/onnx_attributes.h"
#include "test_folder.h"

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kBloom = AIT_TEST_DATA "/topology/Bloom7BFlashAttentionModel.json";

// "name: inputs -> outputs" of each node, then "in: …" and "out: …".
std::vector<std::string> shown(const std::string& bytes) {
  std::vector<std::string> lines;
  std::string inputs = "in:";
  std::string outputs = "out:";
  const auto name_of = [](protozero::pbf_reader value) {
    return value.next(1) ? value.get_string() : std::string("?");
  };
  protozero::pbf_reader model(bytes);
  if (!model.next(7)) return {"no graph"};
  protozero::pbf_reader graph = model.get_message();
  while (graph.next()) {
    if (graph.tag() == 1) {
      std::string name;
      std::string reads;
      std::string writes;
      for (protozero::pbf_reader node = graph.get_message(); node.next();) {
        if (node.tag() == 1)
          reads += node.get_string() + " ";
        else if (node.tag() == 2)
          writes += " " + node.get_string();
        else if (node.tag() == 3)
          name = node.get_string();
        else
          node.skip();
      }
      lines.push_back(name + ": " + reads + "->" + writes);
    } else if (graph.tag() == 11) {
      inputs += " " + name_of(graph.get_message());
    } else if (graph.tag() == 12) {
      outputs += " " + name_of(graph.get_message());
    } else {
      graph.skip();
    }
  }
  lines.push_back(inputs);
  lines.push_back(outputs);
  return lines;
}

std::vector<std::string> shown(std::string_view json, int64_t level) {
  const auto topology = parse_topology(json);
  if (!topology) return {topology.error().text()};
  const auto bytes = to_onnx(*topology, level, nullptr);
  return bytes ? shown(*bytes) : std::vector<std::string>{bytes.error().text()};
}

const std::string kTwoLevels =
    R"({"opName":"L_0","inTensors":["i"],"outTensors":["o"],"internalTensors":["x"],"nodes":[
        {"opName":"G_0_0","inTensors":["i"],"outTensors":["x"],"internalTensors":["y"],"nodes":[
          {"opName":"A_0_0_0","inTensors":["i"],"outTensors":["y"]},
          {"opName":"B_0_0_1","inTensors":["y"],"outTensors":["x"]}]},
        {"opName":"C_0_1","inTensors":["x"],"outTensors":["o"]}]})";

TEST(Onnx, LevelsOpenNodesOneAfterTheOther) {
  EXPECT_THAT(shown(kTwoLevels, 0), ElementsAre("L_0: i -> o", "in: i", "out: o"));
  EXPECT_THAT(shown(kTwoLevels, 1),
              ElementsAre("G_0_0: i -> x", "C_0_1: x -> o", "in: i", "out: o"));
  const auto all = shown(kTwoLevels, 2);
  EXPECT_THAT(
      all, ElementsAre("A_0_0_0: i -> y", "B_0_0_1: y -> x", "C_0_1: x -> o", "in: i", "out: o"));
  EXPECT_EQ(shown(kTwoLevels, kAllLevels), all);
  EXPECT_EQ(shown(kTwoLevels, 1'000'000), all);
  for (const int64_t level : {int64_t{-2}, std::numeric_limits<int64_t>::min()})
    EXPECT_THAT(shown(kTwoLevels, level), ElementsAre(HasSubstr("makes no sense")));
}

TEST(Onnx, ATensorWrittenAgainGoesOnUnderANewName) {
  EXPECT_THAT(shown(R"({"opName":"L_0","inTensors":["i"],"outTensors":["i","x"],"nodes":[
                        {"opName":"A","inTensors":["i"],"outTensors":["x"]},
                        {"opName":"B","inTensors":["x","i"],"outTensors":["x","x"]},
                        {"opName":"C","inTensors":["x"],"outTensors":["i"]},
                        {"opName":"D","inTensors":["i"],"outTensors":["z"]}]})",
                    kAllLevels),
              ElementsAre("A: i -> x", "B: x i -> x#1 x#2", "C: x#2 -> i#1", "D: i#1 -> z", "in: i",
                          "out: i#1 x#2"));
}

TEST(Onnx, ANewNameIsNeverAnotherTensorsName) {
  EXPECT_THAT(shown(R"({"opName":"L_0","inTensors":["i"],"outTensors":["x"],"nodes":[
                        {"opName":"A","inTensors":["i"],"outTensors":["x","x#1"]},
                        {"opName":"B","inTensors":["x","x#1"],"outTensors":["x","x#1"]}]})",
                    kAllLevels),
              ElementsAre("A: i -> x x#1", "B: x x#1 -> x#2 x#1#1", "in: i", "out: x#2"));
}

TEST(Onnx, WhatNobodyWritesComesFromOutside) {
  EXPECT_THAT(
      shown(
          R"({"modelName":"M","inTensors":["i","i"],"weightTensors":["w"],"outTensors":["o","never"],"nodes":[
                        {"opName":"A","inTensors":["i","cache","w"],"outTensors":["o"]},
                        {"opName":"B","inTensors":["late"],"outTensors":["cache"]},
                        {"opName":"C","inTensors":["cache"],"outTensors":["late"]}]})",
          kAllLevels),
      ElementsAre("A: i cache w -> o", "B: late -> cache#1", "C: cache#1 -> late#1",
                  "in: i w cache late never", "out: o never"));
}

TEST(Onnx, AModelThatListsNoTensorsIsDerivedFromItsNodes) {
  const std::string model = R"({"modelName":"M","nodes":[
      {"opName":"A","inTensors":["i"],"outTensors":["x","unused"]},{"opName":"B","inTensors":["x"],"outTensors":["o"]}]})";
  EXPECT_THAT(shown(model, 0), ElementsAre("M: i -> unused o", "in: i", "out: unused o"));
  EXPECT_THAT(shown(model, 1),
              ElementsAre("A: i -> x unused", "B: x -> o", "in: i", "out: unused o"));
}

TEST(Onnx, AModelAsOneNodeReadsItsWeights) {
  EXPECT_THAT(
      shown(R"({"modelName":"M","inTensors":["i"],"weightTensors":["w"],"outTensors":["o"]})", 0),
      ElementsAre("M: i w -> o", "in: i w", "out: o"));
}

TEST(Onnx, ANodeWithoutTensorsHasANamelessOne) {
  EXPECT_THAT(shown(R"({"opName":"X_0"})", kAllLevels), ElementsAre("X_0: -> ", "in:", "out:"));
}

TEST(Onnx, TheSameTopologyGivesTheSameBytes) {
  const auto bloom = read_topology(kBloom);
  ASSERT_TRUE(bloom);
  EXPECT_EQ(*to_onnx(*bloom, kAllLevels, nullptr), *to_onnx(*bloom, kAllLevels, nullptr));
}

TEST(Onnx, IsWrittenBesideTheTopology) {
  const TestFolder folder;
  const std::string json = folder.write("layer/7/L_0.json", kTwoLevels);
  const auto file = convert_to_onnx(json, 1);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->path, folder.path("layer/7/L_0.onnx"));
  EXPECT_FALSE(file->table_problem);
  EXPECT_THAT(shown(folder.read("layer/7/L_0.onnx")),
              ElementsAre("G_0_0: i -> x", "C_0_1: x -> o", "in: i", "out: o"));
}

TEST(Onnx, ABadTableCostsOnlyTheShapes) {
  const TestFolder folder;
  const std::string json = folder.write("layer/7/L_0.json", kTwoLevels);
  folder.write("operation_io_tensors/7/operation_tensors_0.csv", "nonsense\n");
  const auto file = convert_to_onnx(json, kAllLevels);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(file->table_problem);
  EXPECT_THAT(file->table_problem->text(), HasSubstr("operation_tensors_0.csv"));
}

TEST(Onnx, NothingIsWrittenWhereNothingCanBe) {
  const TestFolder folder;
  EXPECT_EQ(convert_to_onnx(folder.write("x.txt", kTwoLevels), 0).error().code(),
            ErrorCode::kUsage);
  EXPECT_EQ(convert_to_onnx(folder.path("none.json"), 0).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(convert_to_onnx(folder.write("bad.json", "{"), 0).error().code(), ErrorCode::kCorrupt);
  EXPECT_FALSE(folder.has("bad.onnx"));
  std::filesystem::create_directory(folder.path("y.onnx"));
  EXPECT_EQ(convert_to_onnx(folder.write("y.json", kTwoLevels), 0).error().code(),
            ErrorCode::kUnwritable);
}

std::vector<std::string> attributes_of(std::string_view param) {
  std::vector<std::string> lines;
  for (const OnnxAttribute& attribute : onnx_attributes(param)) {
    std::string line = attribute.name + (attribute.is_text ? " S" : " F");
    for (const float value : attribute.floats) line += " " + std::to_string(value);
    for (const std::string& text : attribute.strings) line += " " + text;
    lines.push_back(line);
  }
  return lines;
}

TEST(OnnxAttributes, FollowTheKindOfTheParameter) {
  EXPECT_THAT(
      attributes_of(
          R"({"t":"ADD","n":1.5,"zero":0,"yes":true,"no":false,"none":null,"list":[1,2.5,true],
                                "empty":[],"texts":["a","b"],"mixed":["a", 1],"deep":[[1]],"holes":[1,null]})"),
      ElementsAre("t S ADD", "n F 1.500000", "zero F 0.000000", "yes F 1.000000", "no F 0.000000",
                  "list F 1.000000 2.500000 1.000000", "empty F", "texts S a b",
                  "mixed S [\"a\",1]", "deep S [[1]]", "holes S [1,null]"));
}

TEST(OnnxAttributes, SpreadAnObjectByOneLevel) {
  EXPECT_THAT(attributes_of(R"({"a":{"x":1,"y":{"z": 2},"n":null},"b":{}})"),
              ElementsAre("a.x F 1.000000", R"(a.y S {"z":2})"));
}

TEST(OnnxAttributes, AreNeverTwoOfOneNameNorWithout) {
  EXPECT_THAT(attributes_of(R"({"a.b":1,"a":{"b":2},"c":3,"c":4,"":5})"),
              ElementsAre("a.b F 2.000000", "c F 4.000000", "_ F 5.000000"));
}

TEST(OnnxAttributes, NumbersBeyondFloatAreInfiniteAndBeyondDoubleTexts) {
  EXPECT_THAT(attributes_of(R"({"a":1e300,"b":-1e300,"c":1e999})"),
              ElementsAre("a F inf", "b F -inf", "c S 1e999"));
}

TEST(OnnxAttributes, NeedAnObject) {
  for (const char* param : {"", "\"\"", "null", "[1]", "{}", "\"text\"", "3"})
    EXPECT_THAT(attributes_of(param), IsEmpty()) << param;
}

}  // namespace
}  // namespace ait::graph
