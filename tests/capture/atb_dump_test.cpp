#include "capture/atb_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using formats::TempFolder;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Recording& recording) {
  std::vector<std::string> out;
  for (const Operation& operation : recording.operations) out.push_back(operation.name);
  return out;
}

uint32_t slot_named(const Recording& recording, const std::string& file) {
  for (uint32_t i = 0; i < recording.slots.size(); ++i)
    if (recording.slots[i].file == file) return i;
  ADD_FAILURE() << "no slot " << file;
  return 0;
}

// A layer with an operation that has a kernel, in `rounds` rounds.
void write_dump(const TempFolder& folder, const std::string& tensors, size_t rounds = 2) {
  for (size_t round = 0; round < rounds; ++round) {
    const std::string at = tensors + "/" + std::to_string(round) + "/";
    folder.write(at + "2_Layer/0_LinearOperation/after/outtensor0.bin", "x");
    folder.write(at + "2_Layer/0_LinearOperation/after/intensor1.bin", "x");
    folder.write(at + "2_Layer/0_LinearOperation/op_param.json", "{\"hasBias\":false}\n");
    folder.write(at + "2_Layer/0_LinearOperation/0_MatMulF16Kernel/after/outtensor0.bin", "x");
    folder.write(at + "2_Layer/after/outtensor0.bin", "x");
    folder.write(at + "10_RmsNorm/after/outtensor0.bin", "x");
  }
}

TEST(AtbDump, KnowsOperationsByTheirPlaceInTheOrderInWhichTheyRun) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/tensors/0_4711");
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_THAT(names(*recording),
              ElementsAre("2_Layer", "2_Layer/0_LinearOperation",
                          "2_Layer/0_LinearOperation/0_MatMulF16Kernel", "10_RmsNorm"));
  const Operation& linear = recording->operations[1];
  EXPECT_EQ(linear.type, "LinearOperation");
  EXPECT_EQ(linear.ids, (std::vector<uint64_t>{2, 0}));
  EXPECT_EQ(linear.param, "{\"hasBias\":false}");
  EXPECT_EQ(linear.parent, 0u);
  EXPECT_EQ(recording->operations[0].end, 3u);
  EXPECT_EQ(recording->operations[2].level, Level::kKernel);
  EXPECT_EQ(linear.level, Level::kOperation);
}

TEST(AtbDump, IsFoundWhateverPartOfItIsNamed) {
  const TempFolder folder;
  write_dump(folder, "run/ait_dump/tensors/0_4711");
  for (const char* part : {"run", "run/", "run/ait_dump", "run/ait_dump/tensors",
                           "run/ait_dump/tensors/0_4711/", "run/ait_dump/tensors/../tensors"}) {
    const auto recording = read_atb_dump((folder.path() / part).string());
    ASSERT_TRUE(recording) << part << ": " << recording.error().text();
    EXPECT_EQ(recording->rounds, (std::vector<std::string>{"0", "1"})) << part;
    EXPECT_EQ(recording->slots.size(), 5u) << part;
  }
  const auto round = read_atb_dump((folder.path() / "run/ait_dump/tensors/0_4711/1").string());
  ASSERT_TRUE(round);
  EXPECT_EQ(round->rounds, (std::vector<std::string>{"1"}));
  EXPECT_TRUE(fs::exists(round->record(0, 0, 0).path));
}

TEST(AtbDump, ReadsOtherSpellings) {
  const TempFolder folder;
  // An old rank name, old file names, newer suffixes, a newer root.
  folder.write("msit_dump_20250101_000000/tensors/41210_3/0/0_Op/after/inTensor0.bin", "x");
  folder.write("msit_dump_20250101_000000/tensors/41210_3/0/0_Op/after/outTensor0_output.bin", "x");
  folder.write("msit_dump_20250101_000000/tensors/41210_3/0/0_Op/before/intensor0_x.bin", "x");
  folder.write("msit_dump_20250101_000000/tensors/41210_3/0/0_Op/after/notes.bin", "x");
  const auto recording = read_atb_dump(folder.path().string());
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_EQ(recording->ranks[0].device, "3");
  EXPECT_EQ(recording->ranks[0].pid, "41210");
  ASSERT_EQ(recording->slots.size(), 3u);
  EXPECT_EQ(recording->slots[2].direction, Direction::kOutput);
  EXPECT_EQ(recording->slots[0].moment, Moment::kAfter);
  EXPECT_EQ(recording->slots[1].moment, Moment::kBefore);
}

TEST(AtbDump, OrdersRanksByDeviceAndSaysWhichTensorsARoundLacks) {
  const TempFolder folder;
  for (const int device : {10, 2, 0})
    write_dump(folder,
               "ait_dump/tensors/" + std::to_string(device) + "_" + std::to_string(500 + device));
  fs::remove_all(folder.path() / "ait_dump/tensors/2_502/1/2_Layer/0_LinearOperation");
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->ranks.size(), 3u);
  EXPECT_EQ(recording->ranks[1].device, "2");
  EXPECT_EQ(recording->ranks[2].device, "10");
  const uint32_t slot = slot_named(*recording, "2_Layer/0_LinearOperation/after/outtensor0.bin");
  EXPECT_TRUE(recording->has(0, 1, slot));
  EXPECT_TRUE(recording->has(1, 0, slot));
  EXPECT_FALSE(recording->has(1, 1, slot));
  // What all share is stored once.
  EXPECT_LT(recording->contents.size(), 5u);
}

TEST(AtbDump, LeavesOutAnOlderRunOnTheSameDeviceAndSaysSo) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/tensors/0_100");
  write_dump(folder, "ait_dump/tensors/0_200");
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder.path() / "ait_dump/tensors/0_200", old);
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->ranks.size(), 1u);
  EXPECT_EQ(recording->ranks[0].pid, "100");
  ASSERT_EQ(recording->problems.size(), 1u);
  EXPECT_THAT(recording->problems[0].text(), HasSubstr("0_200"));
}

TEST(AtbDump, TakesTypesAndDataFlowFromTopologies) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/tensors/0_4711");
  folder.write("ait_dump/model/4711/m.json",
               R"({"modelName":"m","nodes":[{"opName":"Layer_2","opType":"BigLayer","nodes":[
                  {"opName":"LinearOperation_2_0","opType":"LinearOperation","param":{"a":1},
                   "inTensors":["x","w"],"outTensors":["y"]}]}]})");
  folder.write("ait_dump/model/4711/broken.json", "{");
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->operations[0].type, "BigLayer");
  EXPECT_EQ(recording->operations[1].inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(recording->operations[1].param, "{\"a\":1}");
  EXPECT_EQ(recording->model_tops, (std::vector<std::vector<uint64_t>>{{2}}));
  ASSERT_EQ(recording->problems.size(), 1u);
  EXPECT_THAT(recording->problems[0].text(), HasSubstr("broken.json"));
}

// As msprobe leaves them: info/layer and info/model, by device and process.
TEST(AtbDump, TakesTopologiesOfMsprobe) {
  const TempFolder folder;
  write_dump(folder, "atb_dump_data/data/0_4711");
  const auto node = [](const std::string& type) {
    return R"({"opName":"Layer_2","opType":")" + type + R"(","nodes":[
        {"opName":"LinearOperation_2_0","opType":"LinearOperation",
         "inTensors":["x","w"],"outTensors":["y"]}]})";
  };
  folder.write("atb_dump_data/info/layer/0_4711/Layer_2.json", node("OfLayer"));
  folder.write("atb_dump_data/info/layer/1_4712/Layer_2.json", node("OfAnother"));
  const auto path = (folder.path() / "atb_dump_data").string();
  auto recording = read_atb_dump(path);
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->operations[0].type, "OfLayer");
  EXPECT_EQ(recording->operations[1].inputs, (std::vector<std::string>{"x", "w"}));
  folder.write("atb_dump_data/info/model/0_4711/m.json",
               R"({"modelName":"m","nodes":[)" + node("OfModel") + "]}");
  recording = read_atb_dump(path);
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->operations[0].type, "OfModel");
  EXPECT_EQ(recording->model_tops, (std::vector<std::vector<uint64_t>>{{2}}));
}

TEST(AtbDump, TakesTheTopologiesOfTheProcessAndNotOfOneBeforeWithItsPid) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/tensors/0_4711");
  write_dump(folder, "ait_dump/tensors/0_4711_1");
  const auto model = [](const std::string& type) {
    return R"({"modelName":"m","nodes":[{"opName":"Layer_2","opType":")" + type + R"("}]})";
  };
  folder.write("ait_dump/model/4711/m.json", model("Earlier"));
  folder.write("ait_dump/model/4711_1/m.json", model("Later"));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder.path() / "ait_dump/tensors/0_4711", old);
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->ranks.size(), 1u);
  EXPECT_EQ(recording->ranks[0].name, "0_4711_1");
  EXPECT_EQ(recording->ranks[0].device, "0");
  EXPECT_EQ(recording->operations[0].type, "Later");
}

TEST(AtbDump, StaysInsideItsFolderAndComesToAnEnd) {
  const TempFolder folder;
  write_dump(folder, "ait_dump/tensors/0_4711", 1);
  fs::create_directory_symlink(folder.path(), folder.path() / "ait_dump/tensors/0_4711/0/3_Loop");
  std::string deep = "ait_dump/tensors/0_4711/0/4_Deep";
  for (int i = 0; i < 100; ++i) deep += "/0_D";
  folder.write(deep + "/after/outtensor0.bin", "x");
  folder.write("ait_dump/tensors/0_4711/0/99999999999999999999999_Odd\n/after/outtensor0.bin", "x");
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->slots.size(), 6u);
  ASSERT_EQ(recording->problems.size(), 1u);
  EXPECT_THAT(recording->problems[0].text(), HasSubstr("deeper than any dump"));
}

// Files that describe a tensor, and what they say of it besides.
void write_descriptions(const TempFolder& folder, const std::string& at, const std::string& more) {
  const std::string header = "$Version=1.0\n$Object.Count=0\n$Object.Length=0\ndtype=1\n";
  for (const char* file : {"0_Op/after/outtensor0.bin", "1_Op/after/outtensor0.bin"})
    folder.write(at + file, header + "dims=2,3\n" + more + "$End=1\n");
}

std::vector<Kept> kept_in(const TempFolder& folder) {
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  std::vector<Kept> out;
  EXPECT_TRUE(recording);
  for (uint32_t slot = 0; recording && slot < recording->slots.size(); ++slot)
    out.push_back(recording->record(0, 0, slot).kept);
  return out;
}

TEST(AtbDump, KnowsWhatWasKeptOfItsTensors) {
  {
    const TempFolder folder;
    write_descriptions(folder, "ait_dump/tensors/0_1/0/", "");
    EXPECT_THAT(kept_in(folder), ElementsAre(Kept::kDescription, Kept::kDescription));
  }
  {
    const TempFolder folder;
    write_descriptions(folder, "ait_dump/tensors/0_1/0/", "max=1\nmin=0\nmean=0.5\nl2norm=1\n");
    EXPECT_THAT(kept_in(folder), ElementsAre(Kept::kStatistics, Kept::kStatistics));
  }
  {
    const TempFolder folder;
    write_dump(folder, "ait_dump/tensors/0_1", 1);
    EXPECT_THAT(kept_in(folder), Each(Kept::kBytes)) << "what cannot be read tells nothing";
  }
}

TEST(AtbDump, LooksForWhatWasKeptWhereverTheFirstTensorsAre) {
  // Rank 0 recorded nothing in round 0, the first tensor is broken and the second one empty.
  const TempFolder folder;
  write_descriptions(folder, "ait_dump/tensors/0_1/1/", "");
  write_descriptions(folder, "ait_dump/tensors/1_2/0/", "");
  folder.write("ait_dump/tensors/0_1/1/0_Op/after/outtensor0.bin", "");
  folder.write("ait_dump/tensors/0_1/1/0_Op/after/outtensor1.bin",
               "$Object.Count=0\ndtype=1\ndims=0\n$End=1\n");
  const auto recording = read_atb_dump((folder.path() / "ait_dump").string());
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->slots.size(), 3U);
  for (const Slot& slot : recording->slots) EXPECT_EQ(slot.kept, Kept::kDescription) << slot.file;
}

TEST(AtbDump, RefusesWhatIsNone) {
  const TempFolder folder;
  folder.write("a/b/x.bin", "x");
  EXPECT_FALSE(is_atb_dump(folder.path().string()));
  const auto recording = read_atb_dump(folder.path().string());
  ASSERT_FALSE(recording);
  EXPECT_THAT(recording.error().text(), HasSubstr("is not a dump of the acceleration library"));
  write_dump(folder, "ait_dump_1/tensors/0_4711");
  write_dump(folder, "ait_dump_2/tensors/0_4711");
  const auto two = read_atb_dump(folder.path().string());
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().text(), HasSubstr("several dumps (ait_dump_1, ait_dump_2)"));
}

TEST(AtbDump, IsReadWhereOlderVersionsLeftIt) {
  for (const char* place :
       {"out/4711_4711", "out/ait_dump/4711_4712", "out/ait_dump/tensors/4711_0",
        "out/ait_dump/tensors/4711", "out/tensors/thread_4711"}) {
    const TempFolder folder;
    for (const char* round : {"0", "1"})
      folder.write(std::string(place) + "/" + round + "/0_Linear/after/outTensor0.bin", "x");
    const std::string rank = (folder.path() / place).string();
    for (const std::string& path :
         {(folder.path() / "out").string(), std::filesystem::path(rank).parent_path().string(),
          rank, rank + "/1"}) {
      EXPECT_TRUE(is_atb_dump(path)) << path;
      const auto recording = read_atb_dump(path);
      ASSERT_TRUE(recording) << recording.error().text();
      ASSERT_EQ(recording->ranks.size(), 1U) << path;
      EXPECT_EQ(recording->ranks[0].path, rank);
      EXPECT_EQ(recording->rounds.size(), path.ends_with("/1") ? 1U : 2U) << path;
      EXPECT_EQ(recording->slots.size(), 1U);
    }
  }
  const TempFolder folder;
  for (const char* rank : {"thread_12", "thread_7"})
    folder.write(std::string("tensors/") + rank + "/0/0_Linear/after/outTensor0.bin", "x");
  const auto both = read_atb_dump(folder.path().string());
  ASSERT_TRUE(both);
  ASSERT_EQ(both->ranks.size(), 2U);
  EXPECT_EQ(both->ranks[0].name, "thread_7");
}

}  // namespace
}  // namespace ait::capture
