#include "graph/atb_json.h"

#include <gmock/gmock.h>

#include <string>

#include "test_folder.h"

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLayer =
    R"({"opName":"TinyLayer_4","opType":"TinyLayer","param":"","inTensors":["a"],"outTensors":["b"],)"
    R"("internalTensors":["c"],"nodes":[{"opName":"LinearOperation_4_0","opType":"LinearOperation",)"
    R"("param":{"eps":1e-05,"big":123456789012345678901234567890,"text":"a  b"},"inTensors":["a"],"outTensors":["c"]},)"
    R"({"opName":"ElewiseOperation_4_1","opType":"ElewiseOperation","param":null,"inTensors":["c"],)"
    R"("outTensors":["b"]}]})"
    "\n";

std::string why_not(std::string_view json) {
  const auto topology = parse_topology(json);
  return topology ? "understood" : topology.error().text();
}

TEST(AtbJson, ALayerComesOutAsItWentIn) {
  const auto layer = parse_topology(kLayer);
  ASSERT_TRUE(layer) << layer.error().text();
  EXPECT_FALSE(layer->is_model);
  EXPECT_EQ(layer->root.param, R"("")");
  EXPECT_EQ(layer->root.nodes[1].param, "null");
  EXPECT_EQ(to_json(*layer), kLayer);
}

TEST(AtbJson, AModelComesOutAsItWentIn) {
  const std::string model =
      R"({"modelName":"M","inTensors":["i"],"outTensors":["o"],"internalTensors":["x"],"weightTensors":["w"],)"
      R"("nodes":[{"opName":"L_0","opType":"L","inTensors":["i","w"],"outTensors":["o"]}]})"
      "\n";
  const auto read = parse_topology(model);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->is_model);
  EXPECT_EQ(read->root.name, "M");
  EXPECT_EQ(read->root.type, "M");
  EXPECT_THAT(read->root.weights, ElementsAre("w"));
  EXPECT_EQ(to_json(*read), model);
}

TEST(AtbJson, SpaceIsLostButNoDigit) {
  const auto node = parse_topology(
      R"( {"opName" : "X_1", "param" : { "a" : 0.000009999999747378752 , "b c" : [ 1 ] } } )");
  ASSERT_TRUE(node) << node.error().text();
  EXPECT_EQ(node->root.param, R"({"a":0.000009999999747378752,"b c":[1]})");
  EXPECT_EQ(node->root.type, "X");  // no opType
}

size_t levels_below(const Node& root) {
  size_t levels = 0;
  walk(root, [&](const Node&, std::span<const Node* const> parents) {
    levels = std::max(levels, parents.size());
  });
  return levels;
}

TEST(AtbJson, ReadsWhatAnotherToolWrote) {
  const auto bloom = read_topology(AIT_TEST_DATA "/topology/Bloom7BFlashAttentionModel.json");
  ASSERT_TRUE(bloom) << bloom.error().text();
  EXPECT_TRUE(bloom->is_model);
  EXPECT_EQ(levels_below(bloom->root), 4);
  const Node& layer = bloom->root.nodes.at(0);
  EXPECT_EQ(layer.type, "BloomLayer");
  EXPECT_EQ(layer.nodes.size(), 11);
  EXPECT_EQ(layer.inputs.size(), 24);
  EXPECT_EQ(layer.internals.size(), 10);
  const Node& deep = bloom->root.nodes.at(0).nodes.at(7).nodes.at(2).nodes.at(0);
  EXPECT_EQ(deep.name, "LinearOperation_3_7_2_0");
  EXPECT_THAT(ids_of(deep), ElementsAre(3, 7, 2, 0));
  EXPECT_THAT(layer.nodes[0].param, HasSubstr("0.000009999999747378752"));
  const auto again = parse_topology(to_json(*bloom));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(*bloom));
}

TEST(AtbJson, RefusesWhatIsNoTopology) {
  EXPECT_THAT(why_not(""), HasSubstr("cut short"));
  EXPECT_THAT(why_not("[]"), HasSubstr("an object is expected"));
  EXPECT_THAT(why_not("{}"), HasSubstr("neither opName nor modelName"));
  EXPECT_THAT(why_not(R"({"opName":""})"), HasSubstr("neither opName nor modelName"));
  EXPECT_THAT(why_not(R"({"opName":"a","modelName":"b"})"), HasSubstr("both"));
  EXPECT_THAT(why_not(R"({"opName":"a","nodes":[{"opType":"x"}]})"), HasSubstr("no opName"));
  EXPECT_THAT(why_not(R"({"opName":3})"), HasSubstr("a text in quotes"));
  EXPECT_THAT(why_not(R"({"opName":"a","inTensors":"x"})"), HasSubstr("a list is expected"));
  EXPECT_THAT(why_not(R"({"opName":"a","inTensors":[1]})"), HasSubstr("a text in quotes"));
  EXPECT_THAT(why_not(R"({"opName":"a","inTensors":null})"), HasSubstr("a list is expected"));
  EXPECT_THAT(why_not(R"({"opName":"a","nodes":{}})"), HasSubstr("a list is expected"));
  EXPECT_THAT(why_not(R"({"opName":"a","nodes":[1]})"), HasSubstr("an object is expected"));
  EXPECT_THAT(why_not(R"({"opName":"a","opName":"b"})"), HasSubstr("twice"));
  EXPECT_THAT(why_not(R"({"opName":"a","param":{"x":}})"), HasSubstr("no JSON value"));
  EXPECT_THAT(why_not("{\"opName\":\"a\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(why_not(R"({"opName":"a\u0000b"})"), HasSubstr("NUL"));
  EXPECT_THAT(why_not(kLayer.substr(0, 300)), HasSubstr("cut short"));
}

TEST(AtbJson, EveryCutIsRefused) {
  const std::string whole = kLayer.substr(0, kLayer.size() - 1);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(parse_topology(std::string_view(whole).substr(0, bytes))) << bytes;
}

std::string nested(size_t levels) {
  std::string json;
  for (size_t i = 0; i < levels; ++i) json += R"({"opName":"n","nodes":[)";
  json += R"({"opName":"leaf"})";
  for (size_t i = 0; i < levels; ++i) json += "]}";
  return json;
}

TEST(AtbJson, NestsAThousandLevelsAndNoMore) {
  const auto deepest = parse_topology(nested(kMaxLevels));
  ASSERT_TRUE(deepest) << deepest.error().text();
  EXPECT_EQ(levels_below(deepest->root), kMaxLevels);
  EXPECT_TRUE(parse_topology(to_json(*deepest)));
  EXPECT_THAT(why_not(nested(kMaxLevels + 1)), HasSubstr("deeper than 1000 levels"));
  EXPECT_THAT(why_not(nested(100'000)), HasSubstr("deep"));
}

TEST(AtbJson, NamesTheFileAndThePlace) {
  const TestFolder folder;
  const std::string path = folder.write("bad.json", R"({"opName":"a","nodes":[x]})");
  const auto read = read_topology(path);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text(), HasSubstr(path));
  EXPECT_EQ(read.error().offset_bytes(), 23);
  EXPECT_EQ(read_topology(folder.path("none.json")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(read_topology(folder.path()).error().code(), ErrorCode::kUnreadable);
}

TEST(AtbJson, RefusesAFileBeyondTheLimit) {
  const std::string large = R"({"opName":"a"})" + std::string(kMaxJsonBytes, ' ');
  EXPECT_EQ(parse_topology(large).error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ait::graph
