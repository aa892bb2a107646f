#include "capture/fx_tree.h"

#include <gmock/gmock.h>

#include "capture/layout.h"
#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kTime = "20240125031118787351";

class FxTree : public testing::Test {
 protected:
  void tensor(const std::string& folder, const std::string& name, const std::string& time = kTime) {
    folder_.write(folder + "/" + name + "." + time + ".npy", "x");
  }
  Recording read(const std::string& below = "") {
    const std::string path = (folder_.path() / below).string();
    EXPECT_TRUE(is_fx_tree(path)) << path;
    auto recording = read_fx_tree(path);
    EXPECT_TRUE(recording) << recording.error().text();
    return recording ? std::move(*recording) : Recording{};
  }
  // Every tensor that is there, by rank, round, operation and tensor.
  static std::vector<std::string> all(const Recording& recording) {
    std::vector<std::string> out;
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
      for (size_t round = 0; round < recording.rounds.size(); ++round)
        for (uint32_t slot = 0; slot < recording.slots.size(); ++slot) {
          if (!recording.has(rank, round, slot)) continue;
          const TensorRecord record = recording.record(rank, round, slot);
          EXPECT_TRUE(std::filesystem::is_regular_file(record.path)) << record.path;
          out.push_back(record.rank + " " + record.round + " " + record.operation + "/" +
                        recording.slots[slot].tensor());
        }
    return out;
  }

  TempFolder folder_;
};

TEST_F(FxTree, ReadsRanksGraphsAndTokensAsTheyAreNamed) {
  tensor("d/msit_fx_dump/worldsize2_global_rank0/graph_1/0", "add_1-aten.add.Tensor.OUTPUT.0");
  tensor("d/msit_fx_dump/worldsize2_global_rank1/graph_1/0", "add_1-aten.add.Tensor.OUTPUT.0");
  tensor("d/msit_fx_dump/worldsize2_global_rank1/graph_2/1", "mm-aten.mm.default.OUTPUT.0");
  for (const std::string path : {"d", "d/msit_fx_dump"})
    EXPECT_THAT(all(read(path)),
                ElementsAre("0 0 graph_1/add_1/output_0", "1 0 graph_1/add_1/output_0",
                            "1 1 graph_2/mm/output_0"));
  const Recording one = read("d/msit_fx_dump/worldsize2_global_rank1");
  EXPECT_THAT(all(one), ElementsAre("1 0 graph_1/add_1/output_0", "1 1 graph_2/mm/output_0"));
  EXPECT_EQ(one.graphs[1].number, 2U);
  EXPECT_THAT(all(read("d/msit_fx_dump/worldsize2_global_rank1/graph_2")),
              ElementsAre("0 1 mm/output_0"));
}

TEST_F(FxTree, TokensOfOlderVersionsAreOneLessThanTheirFolders) {
  const std::string first = "/gm_20240125031118000000_dump";
  const std::string second = "/gm_20240125031119000000_dump";
  for (const std::string root : {"a/msit_fx_dump/data_dump/", "b/data_dump/"}) {
    tensor(root + "1" + first, "mm-aten.mm.default.OUTPUT.0");
    tensor(root + "2" + second, "mm-aten.mm.default.OUTPUT.0");
    tensor(root + "10" + second, "mm-aten.mm.default.OUTPUT.0");
  }
  for (const std::string path :
       {"a", "a/msit_fx_dump", "a/msit_fx_dump/data_dump", "b", "b/data_dump"}) {
    const Recording recording = read(path);
    EXPECT_THAT(recording.rounds, ElementsAre("0", "1", "9"));
    ASSERT_EQ(recording.graphs.size(), 2U);
    EXPECT_EQ(recording.graphs[0].name, "gm_20240125031118000000_dump");
    EXPECT_FALSE(recording.graphs[0].number);
    EXPECT_THAT(all(recording), ElementsAre("0 0 gm_20240125031118000000_dump/mm/output_0",
                                            "0 1 gm_20240125031119000000_dump/mm/output_0",
                                            "0 9 gm_20240125031119000000_dump/mm/output_0"));
  }
}

TEST_F(FxTree, ReadsFoldersOfVersionOneWithTokensAndWithout) {
  tensor("a/gm_20240125031118000000_dump/1", "mm-aten.mm.default.OUTPUT.0");
  tensor("a/gm_20240125031118000000_dump/3", "mm-aten.mm.default.OUTPUT.0");
  tensor("b/gm_20240125031118000000_dump", "mm-aten.mm.default.OUTPUT.0");
  EXPECT_THAT(all(read("a/gm_20240125031118000000_dump")),
              ElementsAre("0 0 mm/output_0", "0 2 mm/output_0"));
  EXPECT_THAT(all(read("a")), ElementsAre("0 0 mm/output_0", "0 2 mm/output_0"));
  EXPECT_THAT(all(read("b/gm_20240125031118000000_dump")), ElementsAre("0 0 mm/output_0"));
}

TEST_F(FxTree, FoldersThatBeginWithZeroAreWhatTheySay) {
  tensor("data_dump/0/gm_20240125031118000000_dump", "mm-aten.mm.default.OUTPUT.0");
  tensor("data_dump/1/gm_20240125031118000000_dump", "mm-aten.mm.default.OUTPUT.0");
  EXPECT_THAT(read().rounds, ElementsAre("0", "1"));
}

TEST_F(FxTree, NodesRunInTheOrderOfTheirTimesAndInputsInTheOrderOfTheirNumbers) {
  const std::string folder = "worldsize1_global_rank0/graph_1/0";
  tensor(folder, "second-aten.cat.default.OUTPUT.0", "20240125031118000002");
  for (const std::string input : {"0", "1.0", "1.1", "1.10", "3", "12"})
    tensor(folder, "second-aten.cat.default.INPUT." + input, "20240125031118000002");
  tensor(folder, "zuerst-aten.mm.default.OUTPUT.0", "20240125031118000001");
  tensor(folder, "zuerst-aten.mm.default.OUTPUT.1", "20240125031118000001");
  const Recording recording = read();
  EXPECT_THAT(all(recording),
              ElementsAre("0 0 zuerst/output_0", "0 0 zuerst/output_1", "0 0 second/input_0",
                          "0 0 second/input_1_0", "0 0 second/input_1_1", "0 0 second/input_1_10",
                          "0 0 second/input_3", "0 0 second/input_12", "0 0 second/output_0"));
  std::vector<uint32_t> positions;
  for (const Slot& slot : recording.slots)
    if (slot.direction == Direction::kInput) positions.push_back(slot.index);
  // Eleven places for the list, and one for the input that was not recorded.
  EXPECT_THAT(positions, ElementsAre(0, 1, 2, 11, 13, 22));
  const Operation& zuerst = recording.operations[0];
  EXPECT_EQ(zuerst.type, "aten.mm.default");
  EXPECT_EQ(zuerst.kind, OpKind::kLinear);
  EXPECT_EQ(zuerst.parts[0].name, "zuerst-aten.mm.default");
  EXPECT_THAT(zuerst.parts[0].results,
              ElementsAre("zuerst-aten.mm.default.OUTPUT.0", "zuerst-aten.mm.default.OUTPUT.1"));
}

TEST_F(FxTree, OfANodeThatRanTwiceTheLaterIsTaken) {
  const std::string folder = "worldsize1_global_rank0/graph_1/0";
  tensor(folder, "mm-aten.mm.default.OUTPUT.0", "20240125031118000002");
  tensor(folder, "mm-aten.mm.default.OUTPUT.0", "20240125031118000001");
  const Recording recording = read();
  ASSERT_EQ(all(recording).size(), 1U);
  EXPECT_THAT(recording.record(0, 0, 0).path, HasSubstr("000002.npy"));
  ASSERT_EQ(recording.problems.size(), 1U);
  EXPECT_THAT(recording.problems[0].text(), HasSubstr("000001.npy: is not used"));
}

TEST_F(FxTree, OtherFoldersAreNotTakenForIt) {
  folder_.write("a/0/x/output_0.npy", "x");
  folder_.write("b/torch_tensors/cpu_7/0/root/output.pth", "x");
  folder_.write("c/1/a-b.npy", "x");
  folder_.write("d/a-b.OUTPUT.x.npy", "x");
  for (const std::string path : {"", "a", "b", "c", "d", "nowhere"})
    EXPECT_FALSE(is_fx_tree((folder_.path() / path).string())) << path;
  EXPECT_THAT(read_fx_tree(folder_.path().string()).error().text(), HasSubstr("is no FX dump"));
}

TEST_F(FxTree, OneFolderMayHoldBothKindsAndTheUsualOneIsTaken) {
  tensor("msit_fx_dump/worldsize1_global_rank0/graph_1/0", "mm-aten.mm.default.OUTPUT.0");
  folder_.write("msit_ge_dump/dynamo_original_graph_1_rank_0_pid_1_ts_1.txt", "");
  const std::string path = folder_.path().string();
  EXPECT_EQ(find_layout(path, RunKind::kOperations, Role::kGolden)->name, "FX dump");
  EXPECT_EQ(find_layout(path, RunKind::kOperations, Role::kActual)->name, "GE dump");
}

TEST(FxFileNames, AreTakenApart) {
  const auto name = parse_fx_file_name("add_1-npu.x-y.INPUT.1.0.20240125031118787351.npy").value();
  EXPECT_EQ(name.node, "add_1");
  EXPECT_EQ(name.target, "npu.x-y");
  EXPECT_EQ(name.index, 1U);
  EXPECT_EQ(name.element, 0U);
  EXPECT_EQ(name.time, 240125031118787351U);
  EXPECT_TRUE(parse_fx_file_name("a-b.OUTPUT.0.2024_min_max.npy"));
  for (const std::string other :
       {"a-b.OUTPUT.0.npy", "a.OUTPUT.0.1.npy", "a-b.OUTPUT.0.1.pth", "-b.OUTPUT.0.1.npy",
        "a-b.OUTPUT.99999999999.1.npy", "a-b.OUTPUT.0.0.0.1.npy", "a-b.OUTPUT.-1.1.npy"})
    EXPECT_FALSE(parse_fx_file_name(other)) << other;
}

}  // namespace
}  // namespace ait::capture
