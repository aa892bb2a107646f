#include "capture/node_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/node_paths.h"
#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using formats::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Two nodes, n0 and n1, with a folder of that name each.
class NodeViewTest : public testing::Test {
 protected:
  void SetUp() override { use_node_paths({"n0", "n1"}); }
  void TearDown() override { use_node_paths({}); }

  std::string on(const std::string& node, const std::string& name) const {
    return node + ":" + (folder_.path() / node / name).native();
  }

  NodeView view() const {
    auto made = NodeView::create({{"n0", folder_.path() / "n0"}, {"n1", folder_.path() / "n1"}},
                                 std::string());
    EXPECT_TRUE(made) << made.error().text();
    return std::move(*made);
  }

  static std::vector<std::string> names_in(const fs::path& path) {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path))
      out.push_back(entry.path().filename().native());
    return out;
  }

  TempFolder folder_;
};

TEST_F(NodeViewTest, KnowsLinksAndCopiesByTheirPathsOnTheirNodes) {
  folder_.write("n0/step0/dump.json", "{}");
  folder_.write("n0/step0/x.npy", "x");
  folder_.write("n1/step1/dump.json", "{}");
  const NodeView made = view();
  EXPECT_EQ(made.node_path(made.path() + "/step0/x.npy"), on("n0", "step0/x.npy"));
  EXPECT_EQ(made.node_path(made.path() + "/step0/dump.json"), on("n0", "step0/dump.json"));
  EXPECT_EQ(made.node_path(made.path() + "/step1/dump.json"), on("n1", "step1/dump.json"));
  EXPECT_EQ(made.node_path("/elsewhere"), "/elsewhere");
  EXPECT_TRUE(made.problems().empty());
}

TEST_F(NodeViewTest, FoldersKeepTheirTimes) {
  folder_.write("n0/tensors/0_77/0/x.bin", "x");
  folder_.write("n1/tensors/0_77/0/x.bin", "x");
  const auto earlier = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(folder_.path() / "n0/tensors/0_77", earlier);
  const NodeView made = view();
  EXPECT_EQ(fs::last_write_time(made.path() + "/tensors/0_10000000"), earlier);
}

TEST_F(NodeViewTest, RunsOneAfterTheOtherOnADeviceAreOfOneRank) {
  for (const char* name : {"n0/tensors/0_77", "n0/tensors/0_99", "n0/tensors/1_78"})
    folder_.write(std::string(name) + "/0/x.bin", "x");
  folder_.write("n1/tensors/0_77/0/x.bin", "x");
  const NodeView made = view();
  EXPECT_THAT(names_in(made.path() + "/tensors"),
              UnorderedElementsAre("0_10000000", "0_10000001", "1_10000002", "2_10000003"));
}

TEST_F(NodeViewTest, SaysWhatAnEarlierNodeHasUnderTheSameName) {
  for (const char* name : {"step0/proc4711/dump.json", "step0/proc4711/x.npy"})
    for (const char* node : {"n0/", "n1/"}) folder_.write(std::string(node) + name, "{}");
  const NodeView made = view();
  ASSERT_EQ(made.problems().size(), 1);
  EXPECT_THAT(made.problems()[0].text(), HasSubstr("n1:/"));
  EXPECT_THAT(made.problems()[0].text(),
              HasSubstr("is not compared, like 1 more: a node that the map names earlier has a "
                        "file of the same name"));
}

TEST_F(NodeViewTest, JsonThatCannotBeCopiedIsALinkToIt) {
  folder_.write("n0/x.npy", "x");
  folder_.write("n1/y.npy", "y");
  fs::create_symlink("/nowhere", folder_.path() / "n1/gone.json");
  const NodeView made = view();
  EXPECT_EQ(made.node_path(made.path() + "/gone.json"), on("n1", "gone.json"));
  EXPECT_EQ(made.node_path(made.path() + "/y.npy"), on("n1", "y.npy"));
}

TEST_F(NodeViewTest, AFolderThatCannotBeListedIsSaidAndTheOthersAreThere) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may list everything";
  for (const char* name : {"n0/a/x.npy", "n0/b/x.npy", "n0/c/x.npy", "n1/y.npy"})
    folder_.write(name, "x");
  for (const char* name : {"a", "b", "c"}) {
    fs::permissions(folder_.path() / "n0" / name, fs::perms::none);
    const NodeView made = view();
    fs::permissions(folder_.path() / "n0" / name, fs::perms::owner_all);
    ASSERT_EQ(made.problems().size(), 1);
    EXPECT_THAT(made.problems()[0].text(), HasSubstr(on("n0", name) + ": cannot be listed: "));
    EXPECT_THAT(names_in(made.path()), UnorderedElementsAre("a", "b", "c", "y.npy"));
    for (const char* other : {"a", "b", "c"})
      EXPECT_EQ(names_in(made.path() + "/" + other).size(),
                std::string_view(other) == name ? 0 : 1);
  }
}

}  // namespace
}  // namespace ait::capture
