#include "graph/topology.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Node named(std::string name, std::string type, std::vector<Node> nodes = {}) {
  Node node;
  node.name = std::move(name);
  node.type = std::move(type);
  node.nodes = std::move(nodes);
  return node;
}

TEST(Topology, IdsAreTheNumbersAtTheEndOfTheName) {
  EXPECT_THAT(ids_of(named("LinearOperation_3_1_0", "LinearOperation")), ElementsAre(3, 1, 0));
  EXPECT_THAT(ids_of(named("Bloom7bCommonLayer_3", "BloomLayer")), ElementsAre(3));
  EXPECT_THAT(ids_of(named("LlamaModel", "LlamaModel")), IsEmpty());
  EXPECT_THAT(ids_of(named("Layer_70_2_5", "Layer_70")), ElementsAre(2, 5));
  EXPECT_THAT(ids_of(named("Layer_70", "Layer_70")), ElementsAre(70));
  EXPECT_THAT(ids_of(named("X_99999999999999999999_1", "X")), ElementsAre(1));
  EXPECT_THAT(ids_of(named("X__1_", "X")), IsEmpty());
}

TEST(Topology, IsWalkedInTheOrderOfExecutionWithParents) {
  const Node root = named(
      "M", "M", {named("A_0", "A", {named("B_0_0", "B"), named("C_0_1", "C")}), named("D_1", "D")});
  std::vector<std::string> seen;
  walk(root, [&](const Node& node, std::span<const Node* const> parents) {
    std::string path;
    for (const Node* parent : parents) path += parent->name + "/";
    seen.push_back(path + node.name);
  });
  EXPECT_THAT(seen, ElementsAre("M", "M/A_0", "M/A_0/B_0_0", "M/A_0/C_0_1", "M/D_1"));
}

}  // namespace
}  // namespace ait::graph
