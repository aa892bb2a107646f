// The example at the head of graph/topology.h.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/atb_json.h"
#include "graph/topology.h"
#include "test_folder.h"

namespace ait::graph {
namespace {

struct Leaf {
  std::string type;
  std::vector<uint64_t> ids;
  size_t depth;

  bool operator==(const Leaf&) const = default;
};

Result<std::vector<Leaf>> leaves_of(const std::string& path) {
  std::vector<Leaf> leaves;
  auto topology = read_topology(path);
  if (!topology) return fail(topology.error());
  walk(topology->root, [&](const Node& node, std::span<const Node* const> parents) {
    if (node.is_leaf()) leaves.push_back({node.type, ids_of(node), parents.size()});
  });
  return leaves;
}

TEST(GraphExample, FindsTheOperationsOfAModel) {
  const TestFolder folder;
  const auto leaves = leaves_of(folder.write("LlamaModel.json", R"({"modelName":"LlamaModel",
      "nodes":[{"opName":"Layer_3","opType":"Layer",
                "nodes":[{"opName":"RmsNormOperation_3_0","opType":"RmsNormOperation"},
                         {"opName":"LinearOperation_3_1","opType":"LinearOperation"}]}]})"));
  ASSERT_TRUE(leaves) << leaves.error().text();
  EXPECT_EQ(leaves->at(1), (Leaf{"LinearOperation", {3, 1}, 2}));
  EXPECT_EQ(leaves_of(folder.path("none.json")).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ait::graph
