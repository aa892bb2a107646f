#include "capture/torch_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "capture/atb_dump.h"
#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr const char* kTree = R"({"name": "root", "type": "Model", "order": 0, "children": [
  {"name": "root.norm", "type": "Norm", "order": 5, "children": []},
  {"name": "root.layers", "type": "ModuleList", "children": [
    {"name": "root.layers.0", "type": "Block", "order": 1, "children": []}]},
  {"name": "root.tied", "type": "Norm", "alias_of": "root.norm", "children": []}]})";

constexpr const char* kHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm";

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
    folder.write(at + "root.norm/statistics.csv", kHeader + std::string("\r\n"));
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
  EXPECT_THAT(names(*recording),
              ElementsAre("root", "root.layers", "root.layers.0", "root.layers.0#1", "root.norm"));
  EXPECT_EQ(recording->rounds, (std::vector<std::string>{"0", "1", "10"}));
  EXPECT_EQ(recording->operations[2].type, "Block");
  ASSERT_EQ(recording->slots.size(), 5u);
  EXPECT_EQ(recording->slots[1].index, 1u);
  EXPECT_EQ(recording->slots[2].call, 1u);
  EXPECT_EQ(recording->slots[3].direction, Direction::kInput);
}

// A block that is called twice, in a list that nobody calls, and a dropout after each of them.
constexpr const char* kTreeOfCalls = R"({"name": "root", "type": "Model", "order": 0, "calls": [0],
 "children": [
  {"name": "root.drop", "type": "Dropout", "order": 3, "calls": [4, 8], "children": []},
  {"name": "root.group", "type": "Group", "order": 1, "calls": [1, 5], "children": [
    {"name": "root.group.list", "type": "ModuleList", "children": [
      {"name": "root.group.list.0", "type": "Block", "order": 2, "calls": [2, 6], "children": [
        {"name": "root.group.list.0.fc", "type": "Linear", "calls": [3, 7], "children": []}]}]}]},
  {"name": "root.head", "type": "Linear", "order": 5, "calls": [9], "children": []}]})";

TEST(TorchDump, SaysThatTensorsWereStoredInACoarserType) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_4711";
  write_dump(folder, rank);
  for (const char* type : {"null", "\"bf16\""}) {
    folder.write(rank + "/manifest.json", std::string(R"({"config": {"store_as": )") + type + "}}");
    const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
    ASSERT_TRUE(recording);
    const bool coarser = type[0] == '"';
    ASSERT_EQ(recording->problems.size(), coarser ? 1U : 0U);
    if (!coarser) continue;
    EXPECT_THAT(recording->problems.front().text(), HasSubstr("stored as bf16"));
  }
}

TEST(TorchDump, TakesEachCallOfAModuleForAnOperationInItsPlace) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "model_tree.json", kTreeOfCalls);
  for (const char* name :
       {"root", "root.drop", "root.group", "root.group.list.0", "root.group.list.0.fc"})
    for (const char* call : {"", "#1"})
      if (std::string(name) != "root" || *call == 0)
        folder.write(rank + "0/" + name + call + "/output.pth", "x");
  folder.write(rank + "0/root.head/output.pth", "x");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(
      names(*recording),
      ElementsAre("root", "root.group", "root.group.list", "root.group.list.0",
                  "root.group.list.0.fc", "root.drop", "root.group#1", "root.group.list#1",
                  "root.group.list.0#1", "root.group.list.0.fc#1", "root.drop#1", "root.head"));
  const Operation& second = recording->operations[9];
  EXPECT_EQ(recording->operations[second.parent].name, "root.group.list.0#1");
  EXPECT_EQ(second.type, "Linear");
  EXPECT_EQ(recording->slots[recording->first_slot[9]].call, 1u);
}

TEST(TorchDump, PutsCallsOfOlderToolsIntoTheCallsOfWhatTheyBelongTo) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "model_tree.json", R"({"name": "root", "type": "M", "order": 0, "children": [
    {"name": "root.block", "type": "Block", "order": 1, "children": [
      {"name": "root.block.act", "type": "Act", "order": 2, "children": []}]}]})");
  for (const char* name : {"root", "root.block", "root.block#1", "root.block.act",
                           "root.block.act#1", "root.block.act#2", "root.block.act#3"})
    folder.write(rank + "0/" + name + "/output.pth", "x");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(names(*recording),
              ElementsAre("root", "root.block", "root.block.act", "root.block.act#1",
                          "root.block#1", "root.block.act#2", "root.block.act#3"));
}

// A model of a process that began at some time.
void write_model(const TempFolder& folder, const std::string& name, const std::string& facts) {
  const std::string at = "ait_dump/torch_tensors/" + name;
  write_dump(folder, at);
  folder.write(at + "/manifest.json", "{" + facts + "}");
}

std::vector<std::string> folders_of(const Recording& recording) {
  std::vector<std::string> out;
  for (const Rank& rank : recording.ranks) out.push_back(rank.name);
  return out;
}

TEST(TorchDump, HasAllModelsOfAProcessInTheOrderInWhichTheyWereBegun) {
  const TempFolder folder;
  const std::string process = R"("pid": 7, "process_started": 5.5)";
  write_model(folder, "cpu_7", process + R"(, "root": "Model", "started": 9)");
  write_model(folder, "cpu_7_1", process + R"(, "root": "Encoder", "started": 8)");
  write_model(folder, "cpu_7_2", process + R"(, "root": "Model", "started": 10)");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_TRUE(recording->problems.empty());
  EXPECT_THAT(folders_of(*recording), ElementsAre("cpu_7_1"));
  ASSERT_EQ(recording->more_models.size(), 2u);
  EXPECT_THAT(folders_of(recording->more_models[0]), ElementsAre("cpu_7"));
  EXPECT_THAT(folders_of(recording->more_models[1]), ElementsAre("cpu_7_2"));
}

TEST(TorchDump, JoinsTheRanksOfEachModel) {
  const TempFolder folder;
  for (const char* rank : {"0", "1"}) {
    const std::string process = std::string(R"("pid": 7)") + rank + R"(, "rank": )" + rank;
    write_model(folder, std::string("cpu_7") + rank, process + R"(, "root": "A", "started": 1)");
    write_model(folder, std::string("cpu_7") + rank + "_1",
                process + R"(, "root": "B", "started": 2)");
  }
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(folders_of(*recording), ElementsAre("cpu_70", "cpu_71"));
  ASSERT_EQ(recording->more_models.size(), 1u);
  EXPECT_THAT(folders_of(recording->more_models[0]), ElementsAre("cpu_70_1", "cpu_71_1"));
}

TEST(TorchDump, LeavesOutAnEarlierProcessOfTheSameNumber) {
  const TempFolder folder;
  write_model(folder, "cpu_7", R"("pid": 7, "process_started": 1.5, "root": "A", "started": 2)");
  write_model(folder, "cpu_7_1", R"("pid": 7, "process_started": 3.5, "root": "A", "started": 4)");
  std::filesystem::last_write_time(
      folder.path() / "ait_dump/torch_tensors/cpu_7",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(folders_of(*recording), ElementsAre("cpu_7_1"));
  EXPECT_TRUE(recording->more_models.empty());
  ASSERT_EQ(recording->problems.size(), 1u);
  EXPECT_THAT(recording->problems[0].text(), HasSubstr("a later run on the same device"));
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

// The table of a module with these tensors.
std::string table(const std::vector<std::string>& names) {
  std::string out = std::string(kHeader) + ",File\r\n";
  for (const std::string& name : names)
    out += "m,Norm,Output,0,torch.float32,\"(2, 3)\",1.0,0.0,0.5,2.0," + name + "\r\n";
  return out;
}

struct Seen {
  std::string tensor;
  Direction direction;
  uint32_t index;
  uint32_t call;
  Kept kept;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> slots_of(const Recording& recording) {
  std::vector<Seen> out;
  for (const Slot& slot : recording.slots)
    out.push_back({slot.tensor(), slot.direction, slot.index, slot.call, slot.kept});
  return out;
}

TEST(TorchDump, HasTheTensorsOfWhichOnlyStatisticsWereKept) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "model_tree.json", kTree);
  for (const char* token : {"0", "1"}) {
    const std::string at = rank + token + "/";
    folder.write(at + "root.norm/statistics.csv", table({"input_0", "output_1_0", "output_0"}));
    folder.write(at + "root.norm#1/statistics.csv", table({"output_0"}));
  }
  ASSERT_TRUE(is_torch_dump((folder.path() / "ait_dump").string()));
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"input_0", Direction::kInput, 0, 0, Kept::kStatistics},
                          Seen{"output_0", Direction::kOutput, 0, 0, Kept::kStatistics},
                          Seen{"output_1_0", Direction::kOutput, 1, 0, Kept::kStatistics},
                          Seen{"output_0", Direction::kOutput, 0, 1, Kept::kStatistics}));
  EXPECT_EQ(recording->operations[recording->slots[0].operation].name, "root.norm");
  EXPECT_TRUE(recording->has(0, 1, 2));
  const TensorRecord record = recording->record(0, 1, 2);
  EXPECT_THAT(record.path, EndsWith("cpu_1/1/root.norm/statistics.csv"));
  EXPECT_EQ(record.member, "output_1_0");
  EXPECT_EQ(record.kept, Kept::kStatistics);
}

TEST(TorchDump, ReadsOneTableOfARound) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "model_tree.json", kTree);
  folder.write(rank + "0/statistics.csv",
               table({"root.norm/input_0", "root.norm/output_1_0", "root.norm/output_0",
                      "root.norm#1/output_0", "root.layers.0/output", "../../etc/output", "output",
                      "root.norm/weight"}));
  folder.write(rank + "1/statistics.csv", table({"root.norm/output_0"}));
  folder.write(rank + "2/statistics.csv", "not a table");
  ASSERT_TRUE(is_torch_dump((folder.path() / "ait_dump").string()));
  ASSERT_TRUE(is_torch_dump((folder.path() / rank / "1").string()));
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"output", Direction::kOutput, 0, 0, Kept::kStatistics},
                          Seen{"input_0", Direction::kInput, 0, 0, Kept::kStatistics},
                          Seen{"output_0", Direction::kOutput, 0, 0, Kept::kStatistics},
                          Seen{"output_1_0", Direction::kOutput, 1, 0, Kept::kStatistics},
                          Seen{"output_0", Direction::kOutput, 0, 1, Kept::kStatistics}));
  EXPECT_THAT(names(*recording),
              ElementsAre("root", "root.layers", "root.layers.0", "root.norm", "root.norm#1"));
  EXPECT_TRUE(recording->has(0, 0, 1));
  EXPECT_FALSE(recording->has(0, 1, 1)) << "the table of this round has no such line";
  EXPECT_TRUE(recording->has(0, 1, 2));
  const TensorRecord record = recording->record(0, 1, 2);
  EXPECT_THAT(record.path, EndsWith("cpu_1/1/statistics.csv"));
  EXPECT_EQ(record.member, "root.norm/output_0");
  EXPECT_EQ(record.operation, "root.norm");
  ASSERT_FALSE(recording->problems.empty());
  EXPECT_THAT(recording->problems.back().path(), EndsWith("2/statistics.csv"));
}

TEST(TorchDump, PrefersTensorsToTheTableOfTheirRound) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "0/statistics.csv", table({"root.norm/input_0", "root.norm/output"}));
  folder.write(rank + "0/root.norm/output.pth", "x");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"input_0", Direction::kInput, 0, 0, Kept::kStatistics},
                          Seen{"output", Direction::kOutput, 0, 0, Kept::kBytes}));
}

TEST(TorchDump, PrefersTensorsToTheirStatistics) {
  const TempFolder folder;
  const std::string rank = "ait_dump/torch_tensors/cpu_1/";
  folder.write(rank + "0/root.norm/statistics.csv", table({"input_0", "output"}));
  folder.write(rank + "0/root.norm/output.pth", "x");
  folder.write(rank + "0/root.norm/input_0.pth", "x");
  // A process that was killed had written this table, but not the tensor.
  folder.write(rank + "1/root.norm/statistics.csv", table({"input_0", "output"}));
  folder.write(rank + "1/root.norm/input_0.pth", "x");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"input_0", Direction::kInput, 0, 0, Kept::kBytes},
                          Seen{"output", Direction::kOutput, 0, 0, Kept::kBytes}));
  EXPECT_TRUE(recording->has(0, 0, 1));
  EXPECT_FALSE(recording->has(0, 1, 1));
}

TEST(TorchDump, TakesWhatHasNoFileFromTheTableBesideTheFiles) {
  const TempFolder folder;
  const std::string at = "ait_dump/torch_tensors/cpu_1/0/root.norm/";
  folder.write(at + "statistics.csv", table({"input_0", "output"}));
  folder.write(at + "output.pth", "x");
  const auto recording = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"input_0", Direction::kInput, 0, 0, Kept::kStatistics},
                          Seen{"output", Direction::kOutput, 0, 0, Kept::kBytes}));
}

TEST(TorchDump, ReadsTablesOfOlderTools) {
  const TempFolder folder;
  const std::string at = "msit_dump_20250101_000000/torch_tensors/npu0_1/0/";
  const std::string line = "m,Norm,Output,0,torch.float16,\"(2, 3)\",1,0,0.5,2\r\n";
  folder.write(at + "root.norm/statistics.csv", std::string(kHeader) + "\r\n" + line + line);
  folder.write(at + "root.bad/statistics.csv", "x");
  folder.write(at + "root.odd/statistics.csv", table({"../../../etc/passwd", "weight"}));
  const auto recording = read_torch_dump(folder.path().string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(slots_of(*recording),
              ElementsAre(Seen{"output", Direction::kOutput, 0, 0, Kept::kStatistics}));
  ASSERT_FALSE(recording->problems.empty());
  EXPECT_THAT(recording->problems.back().path(), EndsWith("root.bad/statistics.csv"));
}

TEST(TorchDump, WorksWithoutATreeAndRefusesABrokenOne) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/torch_tensors/cpu_1");
  folder.write("ait_dump/torch_tensors/cpu_1/model_tree.json", "{\"name\": ");
  const auto broken = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().text(), HasSubstr("is not a tree of modules"));
  std::filesystem::remove(folder.path() / "ait_dump/torch_tensors/cpu_1/model_tree.json");
  const auto without = read_torch_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(without);
  EXPECT_EQ(without->slots.size(), 5u);
  ASSERT_EQ(without->problems.size(), 1u);
  EXPECT_THAT(without->problems[0].text(), HasSubstr("model_tree.json: is missing"));
}

}  // namespace
}  // namespace ait::capture
