#include "graph/finish.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "graph/onnx.h"
#include "test_folder.h"

namespace ait::graph {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FinishOptions kAll{.layers = true, .models = true, .onnx = true};

std::string leaf(const std::string& name, const std::string& type) {
  return name + "\n" + R"({"inTensorNum":1,"opName":")" + name + R"(","opType":")" + type +
         R"(","outTensorNum":1,"param":{"a":1}})";
}

const std::string kModel =
    "M\n"
    R"({"modelName":"M","inTensors":["M_input_0"],"outTensors":["M_output_0"],"nodes":[
        {"opName":"A","inTensors":["M_input_0"],"outTensors":["M_internal_0"]},
        {"opName":"B","inTensors":["M_internal_0"],"outTensors":["M_output_0"]}]})";

std::vector<std::string> files_below(const std::string& root) {
  std::vector<std::string> files;
  if (!fs::exists(root)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (!entry.is_directory()) files.push_back(fs::relative(entry.path(), root).string());
  std::sort(files.begin(), files.end());
  return files;
}

struct Finished {
  FinishedTopologies topologies;
  std::vector<std::string> files;
};

Finished finish(const TestFolder& folder, const FinishOptions& options = kAll) {
  auto finished = finish_topologies(folder.path("scratch"), folder.path("out/ait_dump"), options);
  EXPECT_TRUE(finished);
  return {finished ? std::move(*finished) : FinishedTopologies{},
          files_below(folder.path("out/ait_dump"))};
}

TEST(FinishTopologies, WritesWhatEachProcessReported) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", leaf("A_0", "A"));
  folder.write("scratch/10.graph.000001.json", leaf("B_1", "B"));
  folder.write("scratch/10.model.000000.json", kModel);
  folder.write("scratch/9.graph.000000.json", leaf("A_0", "A"));
  folder.write("scratch/10.0.ledger", "not mine");
  folder.write("scratch/x.graph.000000.json", "not mine");
  folder.write("scratch/10_x.graph.000000.json", "not mine");
  folder.write("scratch/10.graph.json", "not mine");
  folder.write("scratch/10.other.000000.json", "not mine");
  const Finished done = finish(folder);
  EXPECT_THAT(done.topologies.problems, IsEmpty());
  EXPECT_EQ(done.topologies.layers, 3);
  EXPECT_EQ(done.topologies.models, 1);
  EXPECT_EQ(done.topologies.onnx, 4);
  EXPECT_THAT(done.files, ElementsAre("layer/10/A_0.json", "layer/10/A_0.onnx", "layer/10/B_1.json",
                                      "layer/10/B_1.onnx", "layer/9/A_0.json", "layer/9/A_0.onnx",
                                      "model/10/M.json", "model/10/M.onnx"));
  EXPECT_EQ(
      folder.read("out/ait_dump/layer/9/A_0.json"),
      R"({"opName":"A_0","opType":"A","param":{"a":1},"inTensors":["A_0_input_0"],"outTensors":["A_0_output_0"]})"
      "\n");
  EXPECT_THAT(folder.read("out/ait_dump/model/10/M.json"),
              HasSubstr(R"("opName":"B_1","opType":"B")"));
}

TEST(FinishTopologies, WritesOnlyWhatIsAskedFor) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", leaf("A_0", "A"));
  folder.write("scratch/10.model.000000.json", kModel);
  EXPECT_THAT(finish(folder, {.layers = true}).files, ElementsAre("layer/10/A_0.json"));
  fs::remove_all(folder.path("out"));
  EXPECT_THAT(finish(folder, {.layers = false, .models = true}).files,
              ElementsAre("model/10/M.json"));
  fs::remove_all(folder.path("out"));
  EXPECT_THAT(finish(folder, {.layers = false, .models = true, .onnx = true}).files,
              ElementsAre("model/10/M.json", "model/10/M.onnx"));
}

TEST(FinishTopologies, OneBadFileDoesNotStopTheOthers) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", "A_0\n{\"opName\":");
  folder.write("scratch/10.graph.000001.json", leaf("B_1", "B"));
  folder.write("scratch/10.graph.000002.json", "no line end");
  folder.write("scratch/10.graph.000003.json", "C_3\n" + leaf("D_3", "D").substr(4));
  folder.write("scratch/10.graph.000004.json", "");
  folder.write("scratch/10.model.000000.json", "M\n[]");
  fs::create_directory(folder.path("scratch/10.graph.000005.json"));
  const Finished done = finish(folder);
  EXPECT_THAT(done.files, ElementsAre("layer/10/B_1.json", "layer/10/B_1.onnx"));
  EXPECT_EQ(done.topologies.problems.size(), 6);
  for (const Error& problem : done.topologies.problems)
    EXPECT_THAT(problem.text(), HasSubstr("/scratch/10."));
}

TEST(FinishTopologies, NoNameLeadsOutOfTheFolder) {
  const TestFolder folder;
  const std::vector<std::string> names = {"../x_0",    "/abs_0",
                                          "a/b_0",     "..",
                                          ".",         "",
                                          ".hidden_0", std::string(251, 'n'),
                                          "tab\t_0",   std::string(100'000, 'n')};
  for (size_t i = 0; i < names.size(); ++i) {
    std::string quoted = names[i] == "tab\t_0" ? "tab\\t_0" : names[i];
    folder.write("scratch/10.graph." + std::to_string(i) + ".json",
                 names[i] + "\n" + R"({"opType":"X","inTensorNum":0,"outTensorNum":0,"opName":")" +
                     quoted + "\"}");
    folder.write("scratch/10.model." + std::to_string(i) + ".json",
                 names[i] + "\n" + R"({"nodes":[],"modelName":")" + quoted + "\"}");
  }
  const Finished done = finish(folder);
  EXPECT_THAT(done.files, IsEmpty());
  EXPECT_EQ(done.topologies.problems.size(), 2 * names.size());
  EXPECT_THAT(files_below(folder.path("out")), IsEmpty());
  EXPECT_FALSE(folder.has("x_0.json"));
}

TEST(FinishTopologies, TheLongestNameAFolderTakesIsWritten) {
  const TestFolder folder;
  const std::string name = std::string(248, 'n') + "_0";
  folder.write("scratch/10.graph.0.json", leaf(name, "X"));
  EXPECT_THAT(finish(folder).files,
              ElementsAre("layer/10/" + name + ".json", "layer/10/" + name + ".onnx"));
}

TEST(FinishTopologies, TheFirstOfTwoReportsCounts) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", leaf("A_0", "A"));
  folder.write("scratch/10.graph.000001.json", leaf("A_0", "A"));
  folder.write("scratch/10.graph.000002.json", leaf("A_0", "Z"));
  folder.write("scratch/10.model.000009.json", kModel);
  folder.write("scratch/10.model.000010.json", kModel);
  const Finished done = finish(folder);
  EXPECT_EQ(done.topologies.layers, 1);
  EXPECT_EQ(done.topologies.models, 1);
  ASSERT_EQ(done.topologies.problems.size(), 1);
  EXPECT_THAT(done.topologies.problems[0].text(), HasSubstr("reported before"));
  EXPECT_THAT(folder.read("out/ait_dump/layer/10/A_0.json"), HasSubstr(R"("opType":"A")"));
}

TEST(FinishTopologies, ConvertsWithShapesAsALaterConversionWould) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", leaf("A_0", "A"));
  const std::string table = "out/ait_dump/operation_io_tensors/10/operation_tensors_0.csv";
  folder.write(table,
               "OpName|OpParam|InNum|InDType|InShape|OutNum|OutDType|OutShape\n"
               "A_0|{}|1|float|2,3|1|float16|4\n");
  EXPECT_THAT(finish(folder).topologies.problems, IsEmpty());
  const std::string with_shapes = folder.read("out/ait_dump/layer/10/A_0.onnx");
  ASSERT_TRUE(convert_to_onnx(folder.path("out/ait_dump/layer/10/A_0.json"), kAllLevels));
  EXPECT_EQ(folder.read("out/ait_dump/layer/10/A_0.onnx"), with_shapes);
  folder.write(table, "nonsense");
  const Finished done = finish(folder);
  EXPECT_EQ(done.topologies.onnx, 1);
  ASSERT_EQ(done.topologies.problems.size(), 1);
  EXPECT_THAT(done.topologies.problems[0].text(), HasSubstr("operation_tensors_0.csv"));
  EXPECT_NE(folder.read("out/ait_dump/layer/10/A_0.onnx"), with_shapes);
}

TEST(FinishTopologies, AFolderThatCannotBeWrittenIsAProblem) {
  const TestFolder folder;
  folder.write("scratch/10.graph.000000.json", leaf("A_0", "A"));
  folder.write("out/ait_dump/layer", "a file where a folder should be");
  const Finished done = finish(folder);
  ASSERT_EQ(done.topologies.problems.size(), 1);
  EXPECT_EQ(done.topologies.problems[0].code(), ErrorCode::kUnwritable);
}

TEST(FinishTopologies, NeedsTheScratchFolder) {
  const TestFolder folder;
  EXPECT_FALSE(finish_topologies(folder.path("none"), folder.path("out"), kAll));
}

}  // namespace
}  // namespace ait::graph
