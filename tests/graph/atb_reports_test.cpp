#include "graph/atb_reports.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "graph/atb_json.h"

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The example of the specification, section 2.3, and what section 2.4 makes of it.
const std::string kRaw =
    R"({"inTensorNum":3,"internalTensorNum":1,"nodes":[
 {"inTensorIds":[0,1],"inTensorNum":2,"opName":"LinearOperation_4_0","opType":"LinearOperation","outTensorIds":[4],"outTensorNum":1,"param":{"hasBias":false,"transposeB":true}},
 {"inTensorIds":[4,2],"inTensorNum":2,"opName":"ElewiseOperation_4_1","opType":"ElewiseOperation","outTensorIds":[3],"outTensorNum":1,"param":{"elewiseType":"ELEWISE_ADD"}}],
 "opName":"TinyLayer_4","opType":"TinyLayer","outTensorNum":1,"param":""})";
const std::string kNamed =
    R"({"opName":"TinyLayer_4","opType":"TinyLayer","param":"","inTensors":["TinyLayer_4_input_0","TinyLayer_4_input_1","TinyLayer_4_input_2"],"outTensors":["TinyLayer_4_output_0"],"internalTensors":["TinyLayer_4_internal_0"],"nodes":[{"opName":"LinearOperation_4_0","opType":"LinearOperation","param":{"hasBias":false,"transposeB":true},"inTensors":["TinyLayer_4_input_0","TinyLayer_4_input_1"],"outTensors":["TinyLayer_4_internal_0"]},{"opName":"ElewiseOperation_4_1","opType":"ElewiseOperation","param":{"elewiseType":"ELEWISE_ADD"},"inTensors":["TinyLayer_4_internal_0","TinyLayer_4_input_2"],"outTensors":["TinyLayer_4_output_0"]}]})"
    "\n";

std::string why_not(std::string_view raw, std::string_view name = "X_0") {
  const auto layer = name_tensors(raw, name);
  return layer ? "understood" : layer.error().text();
}

TEST(ReportedGraph, BecomesTheLayerOfTheSpecification) {
  const auto layer = name_tensors(kRaw, "TinyLayer_4");
  ASSERT_TRUE(layer) << layer.error().text();
  EXPECT_EQ(to_json(*layer), kNamed);
}

TEST(ReportedGraph, InnerGraphsNameTheirOwnInternals) {
  const auto layer = name_tensors(
      R"({"opName":"L_7","opType":"L","inTensorNum":1,"outTensorNum":1,"internalTensorNum":1,"param":"","nodes":[
        {"opName":"G_7_0","opType":"G","inTensorNum":1,"inTensorIds":[0],"outTensorNum":2,"outTensorIds":[1,2],
         "internalTensorNum":1,"param":"","nodes":[
          {"opName":"A_7_0_0","opType":"A","inTensorNum":1,"inTensorIds":[0],"outTensorNum":1,"outTensorIds":[3]},
          {"opName":"B_7_0_1","opType":"B","inTensorNum":1,"inTensorIds":[3],"outTensorNum":2,"outTensorIds":[2,1]}]}]})",
      "L_7");
  ASSERT_TRUE(layer) << layer.error().text();
  const Node& inner = layer->root.nodes.at(0);
  EXPECT_THAT(inner.internals, ElementsAre("G_7_0_internal_0"));
  EXPECT_THAT(inner.nodes[0].outputs, ElementsAre("G_7_0_internal_0"));
  EXPECT_THAT(inner.nodes[1].outputs, ElementsAre("L_7_internal_0", "L_7_output_0"));
}

TEST(ReportedGraph, IsRefusedWhereTheSpecificationSays) {
  EXPECT_THAT(why_not(R"({"opType":"X","inTensorNum":0,"outTensorNum":0})"), HasSubstr("lacks"));
  EXPECT_THAT(why_not(R"({"opName":"X_0","inTensorNum":0,"outTensorNum":0})"), HasSubstr("lacks"));
  EXPECT_THAT(why_not(R"({"opName":"X_0","opType":"X","outTensorNum":0})"), HasSubstr("lacks"));
  EXPECT_THAT(why_not(R"({"opName":"X_0","opType":"X","inTensorNum":0})"), HasSubstr("lacks"));
  EXPECT_THAT(why_not(kRaw, "TinyLayer_5"),
              HasSubstr("reported as TinyLayer_5 but calls itself TinyLayer_4"));
  EXPECT_THAT(why_not("not json"), HasSubstr("an object is expected"));
  EXPECT_EQ(why_not(R"({"opName":"X_0","opType":"X","inTensorNum":0,"outTensorNum":0})"),
            "understood");
}

std::string with_child(const std::string& child) {
  return R"({"opName":"X_0","opType":"X","inTensorNum":2,"outTensorNum":1,"nodes":[)" + child +
         "]}";
}

TEST(ReportedGraph, PositionsOutsideTheListAreRefused) {
  const std::string names = R"({"opName":"Y_0_0","opType":"Y","inTensorNum":1,"outTensorNum":1,)";
  EXPECT_EQ(why_not(with_child(names + R"("inTensorIds":[1],"outTensorIds":[2]})")), "understood");
  for (const char* ids : {"[3]", "[18446744073709551615]"})
    EXPECT_THAT(why_not(with_child(names + "\"inTensorIds\":" + ids + R"(,"outTensorIds":[2]})")),
                HasSubstr("its parent does not have"));
  for (const char* ids : {"[-1]", "[0.5]", "[\"0\"]", "[null]"})
    EXPECT_THAT(why_not(with_child(names + "\"inTensorIds\":" + ids + R"(,"outTensorIds":[2]})")),
                HasSubstr("whole number"));
  EXPECT_THAT(why_not(with_child(names + R"("inTensorIds":[0,1],"outTensorIds":[2]})")),
              HasSubstr("more or fewer"));
  EXPECT_THAT(why_not(with_child(names + R"("inTensorIds":[0]})")), HasSubstr("more or fewer"));
}

TEST(ReportedGraph, CannotAskForMoreNamesThanThereIsRoomFor) {
  for (const char* count : {"18446744073709551615", "100000000"})
    EXPECT_THAT(why_not(R"({"opName":"X_0","opType":"X","outTensorNum":0,"inTensorNum":)" +
                        std::string(count) + "}"),
                HasSubstr("MiB"));
  // Neither in many steps.
  std::string children;
  const std::string name(100'000, 'n');
  for (int i = 0; i < 100; ++i)
    children += (i == 0 ? "" : ",") + std::string(R"({"opName":")") + name +
                R"(","opType":"Y","inTensorNum":0,"outTensorNum":0,"internalTensorNum":1000})";
  EXPECT_THAT(why_not(with_child(children)), HasSubstr("MiB"));
}

std::string graph_json(const std::string& type, int id, int inputs = 1) {
  const std::string number = std::to_string(id);
  return R"({"opName":")" + type + "_" + number + R"(","opType":")" + type + R"(","inTensorNum":)" +
         std::to_string(inputs) +
         R"(,"outTensorNum":1,"internalTensorNum":1,"param":"","nodes":[)" + R"({"opName":"A_)" +
         number +
         R"(_0","opType":"A","inTensorNum":1,"inTensorIds":[0],"outTensorNum":1,"outTensorIds":[)" +
         std::to_string(inputs + 1) + R"(]},{"opName":"B_)" + number +
         R"(_1","opType":"B","inTensorNum":1,"inTensorIds":[)" + std::to_string(inputs + 1) +
         R"(],"outTensorNum":1,"outTensorIds":[)" + std::to_string(inputs) + "]}]}";
}

Report graph(const std::string& type, int id, int inputs = 1) {
  return {type + "_" + std::to_string(id), graph_json(type, id, inputs)};
}

// A chain of nodes of these types.
Report model(const std::string& name, const std::vector<std::string>& types) {
  std::string nodes;
  std::string last = name + "_input_0";
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string next =
        i + 1 == types.size() ? name + "_output_0" : name + "_internal_" + std::to_string(i);
    nodes += (i == 0 ? "" : ",") + std::string(R"({"opName":")") + types[i] +
             R"(","inTensors":[")" + last + R"("],"outTensors":[")" + next + "\"]}";
    last = next;
  }
  return {name, R"({"modelName":")" + name + R"(","inTensors":[")" + name +
                    R"(_input_0"],"outTensors":[")" + name + R"(_output_0"],"nodes":[)" + nodes +
                    "]}"};
}

std::vector<std::string> names_in(const Result<Topology>& model) {
  std::vector<std::string> names;
  if (!model) return {model.error().text()};
  for (const Node& node : model->root.nodes)
    names.push_back(node.name + (node.is_leaf() ? "" : "+"));
  return names;
}

TEST(ReportedModels, AreNumberedByOneCounterOfTheProcess) {
  const std::vector<Report> graphs = {graph("Embed", 0), graph("Layer", 1), graph("Layer", 2),
                                      graph("Embed", 3), graph("Layer", 4), graph("Layer", 5)};
  const std::vector<Report> models = {model("Prefill", {"Embed", "Layer", "Layer"}),
                                      model("Decode", {"Embed", "Layer", "Layer"})};
  const auto merged = merge_models(graphs, models);
  ASSERT_EQ(merged.size(), 2);
  EXPECT_THAT(names_in(merged[0]), ElementsAre("Embed_0+", "Layer_1+", "Layer_2+"));
  EXPECT_THAT(names_in(merged[1]), ElementsAre("Embed_3+", "Layer_4+", "Layer_5+"));
}

TEST(ReportedModels, TakeInTheirLayersWithTheModelsOwnTensors) {
  const std::vector<Report> graphs = {graph("Layer", 0)};
  const std::vector<Report> models = {model("M", {"Layer"})};
  const auto merged = merge_models(graphs, models);
  ASSERT_TRUE(merged.at(0)) << merged[0].error().text();
  EXPECT_EQ(
      to_json(*merged[0]),
      R"({"modelName":"M","inTensors":["M_input_0"],"outTensors":["M_output_0"],"nodes":[{"opName":"Layer_0",)"
      R"("opType":"Layer","inTensors":["M_input_0"],"outTensors":["M_output_0"],"internalTensors":)"
      R"(["Layer_0_internal_0"],"nodes":[{"opName":"A_0_0","opType":"A","inTensors":["M_input_0"],"outTensors":)"
      R"(["Layer_0_internal_0"]},{"opName":"B_0_1","opType":"B","inTensors":["Layer_0_internal_0"],"outTensors":)"
      R"(["M_output_0"]}]}]})"
      "\n");
}

TEST(ReportedModels, ANodeWithoutAGraphStaysAsItIs) {
  const auto merged = merge_models({}, std::vector<Report>{model("M", {"Embed", "Layer"})});
  EXPECT_THAT(names_in(merged.at(0)), ElementsAre("Embed_0", "Layer_1"));
}

TEST(ReportedModels, AreMatchedByTypeWhereSomethingElseRanFirst) {
  // Counting from 0 would find Layer_2 for the second layer, which is really the first.
  const std::vector<Report> graphs = {graph("Warmup", 0), graph("Embed", 1), graph("Layer", 2),
                                      graph("Layer", 3)};
  const std::vector<Report> models = {model("M", {"Embed", "Layer", "Layer"})};
  EXPECT_THAT(names_in(merge_models(graphs, models).at(0)),
              ElementsAre("Embed_1+", "Layer_2+", "Layer_3+"));
}

TEST(ReportedModels, AreMatchedByAscendingNumberNotByDelivery) {
  const std::vector<Report> graphs = {graph("Layer", 10), graph("Layer", 9), graph("Warmup", 0)};
  const std::vector<Report> models = {model("M", {"Layer", "Layer", "Layer"})};
  EXPECT_THAT(names_in(merge_models(graphs, models).at(0)),
              ElementsAre("Layer_9+", "Layer_10+", "Layer"));
}

TEST(ReportedModels, ASharedOperationServesAllItsNodes) {
  const std::vector<Report> graphs = {graph("Layer", 0)};
  const std::vector<Report> models = {model("M", {"Layer", "Layer"})};
  const auto merged = merge_models(graphs, models);
  EXPECT_THAT(names_in(merged.at(0)), ElementsAre("Layer_0+", "Layer_0+"));
}

TEST(ReportedModels, AGraphOfAnotherSizeIsNotTaken) {
  const std::vector<Report> graphs = {graph("Layer", 0, 5), graph("Layer", 1)};
  const std::vector<Report> models = {model("M", {"Layer"})};
  EXPECT_THAT(names_in(merge_models(graphs, models).at(0)), ElementsAre("Layer_1+"));
}

TEST(ReportedModels, OneBadReportDoesNotSpoilTheOthers) {
  std::vector<Report> graphs = {graph("Layer", 0), {"Layer_1", "{"}, graph("Layer", 2)};
  const std::vector<Report> models = {
      {"Bad", "[]"}, model("M", {"Layer"}), {"Other", model("M", {}).json}};
  const auto merged = merge_models(graphs, models);
  ASSERT_EQ(merged.size(), 3);
  EXPECT_FALSE(merged[0]);
  EXPECT_THAT(names_in(merged[1]), ElementsAre("Layer_0+"));
  EXPECT_THAT(merged[2].error().text(), HasSubstr("reported as Other but calls itself M"));
}

TEST(ReportedModels, ALostOrDamagedGraphDoesNotShiftTheOthers) {
  const std::vector<Report> models = {model("M", {"Layer", "Layer", "Layer"})};
  const std::vector<Report> lost = {graph("Layer", 0), graph("Layer", 2)};
  EXPECT_THAT(names_in(merge_models(lost, models).at(0)),
              ElementsAre("Layer_0+", "Layer_1", "Layer_2+"));
  const std::vector<Report> damaged = {graph("Layer", 0), {"Layer_1", "{"}, graph("Layer", 2)};
  EXPECT_THAT(names_in(merge_models(damaged, models).at(0)),
              ElementsAre("Layer_0+", "Layer_1", "Layer_2+"));
  const std::vector<Report> shifted = {
      graph("Warmup", 0), graph("Layer", 1), {"Layer_2", "{"}, graph("Layer", 3)};
  EXPECT_THAT(names_in(merge_models(shifted, models).at(0)),
              ElementsAre("Layer_1+", "Layer_2", "Layer_3+"));
}

TEST(ReportedModels, CannotGrowWithoutBound) {
  std::string wide =
      R"({"opName":"Layer_0","opType":"Layer","inTensorNum":1,"outTensorNum":1,"internalTensorNum":100000})";
  const std::vector<Report> graphs = {{"Layer_0", wide}};
  const std::vector<Report> models = {model("M", std::vector<std::string>(1000, "Layer"))};
  EXPECT_THAT(merge_models(graphs, models).at(0).error().text(), HasSubstr("MiB"));
}

}  // namespace
}  // namespace ait::graph
