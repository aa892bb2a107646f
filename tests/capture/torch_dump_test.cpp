#include "capture/torch_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/atb_dump.h"
#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTree = R"({"name": "root", "type": "Model", "order": 0, "children": [
  {"name": "root.norm", "type": "Norm", "order": 5, "children": []},
  {"name": "root.layers", "type": "ModuleList", "children": [
    {"name": "root.layers.0", "type": "Block", "order": 1, "children": []}]},
  {"name": "root.tied", "type": "Norm", "alias_of": "root.norm", "children": []}]})";

std::vector<std::string> names(const Recording& recording) {
  std::vector<std::string> out;
  for (const Operation& operation : recording.operations) out.push_back(operation.name);
  return out;
}

void write_dump(const TempFolder& folder, const std::string& rank) {
  folder.write(rank + "/model_tree.json", kTree);
  for (const char* token : {"0", "1", "10"}) {
    const std::string at = rank + "/" + token + "/";
    folder.write(at + "root.norm/output.pth", "x");
    folder.write(at + "root.norm/input_0.pth", "x");
    folder.write(at + "root.norm/statistics.csv", "x");
    folder.write(at + "root.layers.0/output_0.pth", "x");
    folder.write(at + "root.layers.0/output_1_0.pth", "x");
    folder.write(at + "root.layers.0#1/output_0.pth", "x");
  }
  folder.write(rank + "/weights/root.norm.weight.pth", "x");
}

TEST(TorchDump, HasModulesInTheOrderOfTheirCalls) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/torch_tensors/cpu_4711");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(names(*recording), ElementsAre("root", "root.layers", "root.layers.0", "root.norm"));
  EXPECT_EQ(recording->rounds, (std::vector<std::string>{"0", "1", "10"}));
  EXPECT_EQ(recording->operations[2].type, "Block");
  ASSERT_EQ(recording->slots.size(), 5u);
  EXPECT_EQ(recording->slots[1].index, 1u);
  EXPECT_EQ(recording->slots[2].call, 1u);
  EXPECT_EQ(recording->slots[3].direction, Direction::kInput);
}

TEST(TorchDump, IsFoundWhateverPartOfItIsNamed) {
  const TempFolder folder;
  write_dump(folder, "run/ait_dump/torch_tensors/4711_npu0");
  for (const char* part : {"run", "run/ait_dump", "run/ait_dump/torch_tensors",
                           "run/ait_dump/torch_tensors/4711_npu0"}) {
    const auto recording = read_torch_dump((folder.path() / part).string());
    ASSERT_TRUE(recording) << part;
    EXPECT_EQ(recording->ranks[0].device, "npu0") << part;
  }
  const auto token =
      read_torch_dump((folder.path() / "run/ait_dump/torch_tensors/4711_npu0/10").string());
  ASSERT_TRUE(token);
  EXPECT_EQ(token->rounds, (std::vector<std::string>{"10"}));
}

TEST(TorchDump, IsNotTakenForTheLibrarysBesideIt) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/torch_tensors/0_4711");
  folder.write("ait_dump/tensors/0_4712/0/0_Op/after/outtensor0.bin", "x");
  const std::string root = (folder.path() / "ait_dump").string();
  EXPECT_TRUE(is_torch_dump(root));
  EXPECT_TRUE(is_atb_dump(root));
  EXPECT_EQ(read_torch_dump(root)->traits.words, "a torch dump");
  EXPECT_EQ(read_atb_dump(root)->operations.size(), 1u);
}

TEST(TorchDump, TellsRanksOnOneDeviceApartByTheirManifests) {
  const TempFolder folder;
  for (const char* rank : {"0", "1"}) {
    const std::string at = std::string("ait_dump/torch_tensors/cpu_47") + rank;
    write_dump(folder, at);
    folder.write(at + "/manifest.json", std::string("{\"rank\": ") + rank + "}");
  }
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->ranks.size(), 2u);
  EXPECT_TRUE(recording->problems.empty());
}

TEST(TorchDump, WorksWithoutATreeAndRefusesABrokenOne) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/torch_tensors/cpu_1");
  folder.write("ait_dump/torch_tensors/cpu_1/model_tree.json", "{\"name\": ");
  const auto broken = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().text(), HasSubstr("is no tree of modules"));
  std::filesystem::remove(folder.path() / "ait_dump/torch_tensors/cpu_1/model_tree.json");
  const auto without = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(without);
  EXPECT_EQ(without->slots.size(), 5u);
  ASSERT_EQ(without->problems.size(), 1u);
  EXPECT_THAT(without->problems[0].text(), HasSubstr("model_tree.json: is missing"));
}

}  // namespace
}  // namespace ait::capture
