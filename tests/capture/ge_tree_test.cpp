#include "capture/ge_tree.h"

#include <gmock/gmock.h>

#include "capture/ge_fusion.h"
#include "capture/ge_names.h"
#include "capture/layout.h"
#include "formats/write.h"
#include "ge_builder.h"
#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
using formats::ge_builder::whole_dump;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The operations of a graph, each of which takes what the one before it gives.
std::string graph_text(const std::vector<std::string>& names) {
  std::string text = "name: \"graph\"\n";
  std::string before = "arg0";
  for (const std::string& name : names) {
    text += "op { name: \"" + name + "\" type: \"T\" input: \"" + before + ":0\" output_desc { " +
            "attr { key: \"_fx_tensor_name\" value { s: \"" + name + "-aten.t.OUTPUT.0\" } } } }\n";
    before = name;
  }
  return text;
}

const std::string kText = "dynamo_original_graph_1_rank_0_pid_7_ts_20240125031118787351.txt";
const std::string kSession = "20240125031118/0/graph_1/1/";

class GeTree : public testing::Test {
 protected:
  void dump(const std::string& folder, const std::string& file, const std::string& op_name) {
    folder_.write(folder + "/" + file, whole_dump(op_name, {{1, 2}}, {{3}}));
  }
  void convert(const std::string& file) {
    const std::vector<float> extremes = {1, 2};
    const std::vector<formats::NamedTensor> arrays = {
        {"inputs",
         Tensor::contiguous(nullptr, std::as_bytes(std::span(extremes)), DType::kFloat32, {1, 2})
             .value()},
        {"outputs",
         Tensor::contiguous(nullptr, std::as_bytes(std::span(extremes)), DType::kFloat32, {1, 2})
             .value()}};
    const std::string path = (folder_.path() / file).string();
    ASSERT_TRUE(formats::write_tensor_file(path, arrays, formats::FileFormat::kNpz));
  }
  Recording read(const std::string& below = "") {
    const std::string path = (folder_.path() / below).string();
    EXPECT_TRUE(is_ge_tree(path)) << path;
    auto recording = read_ge_tree(path);
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
                        record.member);
        }
    return out;
  }
  static std::vector<std::string> names(const Recording& recording) {
    std::vector<std::string> out;
    for (const Operation& operation : recording.operations) out.push_back(operation.name);
    return out;
  }

  TempFolder folder_;
};

TEST_F(GeTree, ReadsTheLayoutWithoutRanks) {
  folder_.write(kText, graph_text({"Add_1", "Mul_2"}));
  dump(kSession + "0", "Mul.Mul_2.5.6.1700000000000002", "Mul_2");
  dump(kSession + "0", "Add.Add_1.4.6.1700000000000001", "Add_1");
  dump(kSession + "1", "Add.Add_1.7.6.1700000000000009", "Add_1");
  const Recording recording = read();
  EXPECT_THAT(recording.problems, IsEmpty());
  EXPECT_THAT(recording.rounds, ElementsAre("0", "1"));
  EXPECT_THAT(names(recording), ElementsAre("Add_1", "Mul_2"));  // by time
  EXPECT_THAT(all(recording),
              ElementsAre("0 0 Add_1/input_0", "0 0 Add_1/output_0", "0 0 Mul_2/input_0",
                          "0 0 Mul_2/output_0", "0 1 Add_1/input_0", "0 1 Add_1/output_0"));
  ASSERT_EQ(recording.graphs.size(), 1U);
  EXPECT_EQ(recording.graphs[0].name, "graph_1");
  EXPECT_EQ(recording.graphs[0].number, 1U);
  const Operation& mul = recording.operations[1];
  EXPECT_EQ(mul.type, "Mul");
  EXPECT_EQ(mul.kind, OpKind::kMultiply);
  ASSERT_EQ(mul.parts.size(), 1U);
  EXPECT_THAT(mul.parts[0].sources, ElementsAre("Add_1:0"));
  EXPECT_THAT(mul.parts[0].results, ElementsAre("Mul_2-aten.t.OUTPUT.0"));
}

TEST_F(GeTree, ReadsRanksAndAnyPartOfTheDumpThatAPersonNames) {
  for (const std::string rank : {"0", "1", "11"}) {
    folder_.write("d/msit_ge_dump/dynamo_original_graph_1_rank_" + rank + "_pid_7_ts_1.txt",
                  graph_text({"Add_1"}));
    dump("d/msit_ge_dump/worldsize12_global_rank" + rank + "/" + kSession + "3",
         "Add.Add_1.4.6.1700000000000001", "Add_1");
  }
  for (const std::string path : {"d", "d/msit_ge_dump"}) {
    const Recording recording = read(path);
    EXPECT_THAT(recording.problems, IsEmpty());
    EXPECT_THAT(all(recording),
                ElementsAre("0 3 Add_1/input_0", "0 3 Add_1/output_0", "1 3 Add_1/input_0",
                            "1 3 Add_1/output_0", "11 3 Add_1/input_0", "11 3 Add_1/output_0"));
    EXPECT_EQ(recording.graphs.size(), 1U);  // all ranks have the same
  }
  const Recording one = read("d/msit_ge_dump/worldsize12_global_rank1");
  EXPECT_THAT(all(one), ElementsAre("1 3 Add_1/input_0", "1 3 Add_1/output_0"));
  EXPECT_THAT(one.operations[0].parts, testing::SizeIs(1));
}

TEST_F(GeTree, ReadsTheFolderOfVersionOneAndAsksWhichOfSeveral) {
  folder_.write("dump_20241114_113410/" + kText, graph_text({"Add_1"}));
  dump("dump_20241114_113410/" + kSession + "0", "Add.Add_1.4.6.1700000000000001", "Add_1");
  EXPECT_EQ(all(read("dump_20241114_113410")).size(), 2U);
  EXPECT_EQ(all(read()).size(), 2U);
  folder_.write("dump_20241114_120000/" + kText, graph_text({"Add_1"}));
  EXPECT_THAT(read_ge_tree(folder_.path().string()).error().text(),
              HasSubstr("holds several GE dumps (dump_20241114_113410, dump_20241114_120000)"));
}

TEST_F(GeTree, GraphsThatRanksDoNotShareAreGraphsOfTheirOwn) {
  for (const std::string rank : {"0", "1"}) {
    folder_.write("dynamo_original_graph_1_rank_" + rank + "_pid_7_ts_1.txt",
                  graph_text({rank == "0" ? "Add_1" : "Add_2", "Mul_1"}));
    dump("worldsize2_global_rank" + rank + "/" + kSession + "0", "Mul.Mul_1.4.6.1700000000000001",
         "Mul_1");
  }
  const Recording recording = read();
  ASSERT_EQ(recording.graphs.size(), 2U);
  EXPECT_EQ(recording.graphs[0].name, "graph_1");
  EXPECT_EQ(recording.graphs[1].name, "graph_1");
  EXPECT_THAT(recording.operations[0].parts[0].sources, ElementsAre("Add_1:0"));
  EXPECT_THAT(recording.operations[1].parts[0].sources, ElementsAre("Add_2:0"));
}

TEST_F(GeTree, SeveralGraphsGiveOperationsTheirNamesAndRunInTheOrderOfTime) {
  for (const std::string graph : {"1", "2"}) {
    folder_.write("dynamo_original_graph_" + graph + "_rank_0_pid_7_ts_1.txt",
                  graph_text({"Add_1"}));
    const std::string folder = "20240125031118/0/graph_" + graph + "_0/" + graph + "/";
    dump(folder + "0", "Add.Add_1.4.6.170000000000000" + graph, "Add_1");
    dump(folder + "1", std::string("Add.Add_1.4.6.170000000000000") + (graph == "1" ? "9" : "3"),
         "Add_1");
  }
  const Recording recording = read();
  EXPECT_THAT(names(recording), ElementsAre("graph_1/Add_1", "graph_2/Add_1"));
  using Execution = Recording::Execution;
  EXPECT_THAT(recording.executions,
              ElementsAre(Execution{0, 0}, Execution{1, 0}, Execution{1, 1}, Execution{0, 1}));
}

TEST_F(GeTree, ModelsWithoutANumberAreTheGraphsInTheirOrder) {
  for (const std::string graph : {"3", "5"}) {
    folder_.write("dynamo_original_graph_" + graph + "_rank_0_pid_7_ts_1.txt",
                  graph_text({"Add_" + graph}));
    dump("20240125031118/0/ge_default_x/" + graph + "0/0",
         "Add.Add_" + graph + ".4.6.170000000000000" + graph, "Add_" + graph);
  }
  const Recording recording = read();
  ASSERT_EQ(recording.graphs.size(), 2U);
  EXPECT_EQ(recording.graphs[0].number, 3U);
  EXPECT_EQ(recording.graphs[1].number, 5U);
  for (const Operation& operation : recording.operations) EXPECT_EQ(operation.parts.size(), 1U);
}

TEST_F(GeTree, OfTwoSessionsTheLaterHoldsAndOfTwoDevicesEachIsARank) {
  folder_.write(kText, graph_text({"Add_1"}));
  dump("20240125031118/0/graph_1/1/0", "Add.Add_1.4.6.1700000000000001", "Add_1");
  dump("20240125041118/0/graph_1/1/0", "Add.Add_1.4.6.1700000000000002", "Add_1");
  dump("20240125041118/3/graph_1/1/0", "Add.Add_1.4.6.1700000000000002", "Add_1");
  const Recording recording = read();
  EXPECT_EQ(all(recording).size(), 4U);
  EXPECT_EQ(recording.ranks[1].device, "3");
  EXPECT_THAT(recording.record(0, 0, 0).path, HasSubstr("20240125041118"));
  ASSERT_EQ(recording.problems.size(), 1U);
  EXPECT_THAT(recording.problems[0].text(),
              HasSubstr("not used for tokens that a later session has, too"));
}

TEST_F(GeTree, FusedOperationsAreMadeOfWhatTheirNamesSay) {
  folder_.write(kText, graph_text({"Add_1", "Add_10", "Cast_9", "model/layer.0/Mul"}));
  const std::string folder = kSession + "0";
  dump(folder, "AutomaticBufferFusionOp.Add_10Cast_9.4.6.1700000000000001", "Add_10Cast_9");
  dump(folder, "Mul.model_layer_0_Mul.4.6.1700000000000002", "model/layer.0/Mul");
  dump(folder, "Cast.Add_1_trans_Cast_3.4.6.1700000000000003", "Add_1_trans_Cast_3");
  dump(folder, "Add.Add_1_more.4.6.1700000000000004", "Add_1_more");
  dump(folder, "TransData.trans_TransData_1.4.6.1700000000000005", "trans_TransData_1");
  const Recording recording = read();
  const auto parts = [&](size_t operation) {
    std::vector<std::string> out;
    for (const SourceOperation& part : recording.operations[operation].parts)
      out.push_back(part.name);
    return out;
  };
  EXPECT_THAT(parts(0), ElementsAre("Add_10", "Cast_9"));
  EXPECT_FALSE(recording.operations[0].has_more_parts);
  EXPECT_THAT(parts(1), ElementsAre("model/layer.0/Mul"));
  EXPECT_THAT(parts(2), IsEmpty());  // put in behind Add_1
  EXPECT_TRUE(recording.operations[2].is_copy);
  EXPECT_THAT(parts(3), ElementsAre("Add_1"));
  EXPECT_TRUE(recording.operations[3].has_more_parts);
  EXPECT_THAT(parts(4), IsEmpty());
}

TEST_F(GeTree, AnOperationThatTheFirstRoundLacksStandsWhereALaterOneHasIt) {
  folder_.write(kText, graph_text({"A_1", "B_1", "C_1"}));
  dump(kSession + "0", "A.A_1.4.6.1700000000000001", "A_1");
  dump(kSession + "0", "C.C_1.4.6.1700000000000003", "C_1");
  dump(kSession + "1", "A.A_1.4.6.1700000000000004", "A_1");
  dump(kSession + "1", "B.B_1.4.6.1700000000000005", "B_1");
  dump(kSession + "1", "C.C_1.4.6.1700000000000006", "C_1");
  EXPECT_THAT(names(read()), ElementsAre("A_1", "B_1", "C_1"));
}

TEST_F(GeTree, OddFilesAreLeftOutAndDamagedOnesStayToBeReported) {
  folder_.write(kText, graph_text({"Add_1"}));
  const std::string folder = kSession + "0/";
  folder_.write(folder + "Add.Add_1.4.6.1700000000000001", "too short");
  folder_.write(folder + "Opdebug.Node_OpDebug.1.2.3", "overflow");
  folder_.write(folder + "note.txt", "text");
  folder_.write(folder + "Add_1", "no name of a dump");
  folder_.write(folder + "Add.Add_3.4.6.1700000000000001.csv", "statistics");
  folder_.write(folder + "Empty.Empty_1.4.6.1700000000000002", std::string(8, '\0'));
  dump(folder, "12345", "Add_7");
  dump(folder, "67890", "");
  folder_.write(folder + "mapping.csv", "67890,Long.Long_name.1.2.1700000000000003\n");
  const Recording recording = read();
  EXPECT_THAT(names(recording), ElementsAre("Add_7", "Add_1", "Long_name"));
  std::vector<std::string> problems;
  for (const Error& problem : recording.problems) problems.push_back(problem.text());
  EXPECT_THAT(problems, ElementsAre(HasSubstr("Add_1: is not used: expected a name such as"),
                                    HasSubstr("holds 1 files of statistics")));
}

TEST_F(GeTree, StatisticsStandForTheDumpsTheyWereMadeOf) {
  folder_.write(kText, graph_text({"Add_1", "Add_2"}));
  const std::string folder = kSession + "0/";
  const std::string statistics = "Add.Add_1.4.6.1700000000000001_min_max.npz";
  convert(folder + statistics);
  dump(folder, "Add.Add_2.4.6.1700000000000002", "Add_2");
  convert(folder + "Add.Add_2.4.6.1700000000000002_min_max.npz");  // its dump is still there
  const Recording recording = read();
  EXPECT_THAT(all(recording), ElementsAre("0 0 Add_1/input_0", "0 0 Add_1/output_0",
                                          "0 0 Add_2/input_0", "0 0 Add_2/output_0"));
  ASSERT_EQ(recording.problems.size(), 1U);
  EXPECT_THAT(recording.problems[0].text(), HasSubstr("was converted to statistics"));
  EXPECT_EQ(recording.record(0, 0, 0).kept, Kept::kStatistics);
  EXPECT_THAT(recording.record(0, 0, 0).path, testing::EndsWith(statistics));
  EXPECT_EQ(recording.record(0, 0, 2).kept, Kept::kBytes);
}

TEST_F(GeTree, TablesOfStatisticsAreBetterThanExtremesAndRoundsMayDiffer) {
  folder_.write(kText, graph_text({"Add_1"}));
  const std::string name = "Add.Add_1.4.6.1700000000000001";
  convert(kSession + "0/" + name + "_min_max.npz");
  folder_.write(kSession + "0/" + name + "_stat.csv",
                "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n"
                "Add_1,Add,Input,0,float32,\"(2,)\",2.0,1.0,1.5,2.236068,input_0\r\n"
                "Add_1,Add,Output,0,float32,\"(1,)\",3.0,3.0,3.0,3.0,output_0\r\n");
  dump(kSession + "1/", name, "Add_1");
  const Recording recording = read();
  EXPECT_THAT(all(recording), ElementsAre("0 0 Add_1/input_0", "0 0 Add_1/output_0",
                                          "0 1 Add_1/input_0", "0 1 Add_1/output_0"));
  EXPECT_THAT(recording.record(0, 0, 0).path, testing::EndsWith("_stat.csv"));
  EXPECT_EQ(recording.record(0, 0, 0).kept, Kept::kStatistics);
  EXPECT_EQ(recording.record(0, 1, 0).kept, Kept::kBytes);
  EXPECT_EQ(recording.slots[0].kept, Kept::kBytes);
}

TEST_F(GeTree, OfTwoFilesOfOneOperationTheLargerIsTaken) {
  folder_.write(kText, graph_text({"Add_1"}));
  folder_.write(kSession + "0/Add.Add_1.4.6.1700000000000001", whole_dump("Add_1", {}, {{1}}));
  folder_.write(kSession + "0/Add.Add_1.4.6.1700000000000002", whole_dump("Add_1", {}, {{1, 2}}));
  const Recording recording = read();
  ASSERT_EQ(all(recording).size(), 1U);
  EXPECT_THAT(recording.record(0, 0, 0).path, HasSubstr("1700000000000002"));
  ASSERT_EQ(recording.problems.size(), 1U);
  EXPECT_THAT(recording.problems[0].text(), HasSubstr("1700000000000001: is not used"));
}

TEST_F(GeTree, WithoutTextsOperationsAreKnownByNameAlone) {
  dump(kSession + "0", "Add.Add_1.4.6.1700000000000001", "Add_1");
  const Recording recording = read();
  EXPECT_THAT(recording.operations[0].parts, IsEmpty());
  ASSERT_EQ(recording.problems.size(), 1U);
  EXPECT_THAT(recording.problems[0].text(), HasSubstr("holds no dynamo_original_graph_"));
}

TEST_F(GeTree, OtherFoldersAreNotTakenForIt) {
  for (const std::string path :
       {"a/0_7/0/1_Linear/after/outtensor0.bin", "b/20240125031118/x/y", "c/0/1/2/3/x.npy"})
    folder_.write(path, "x");
  for (const std::string path : {"", "a", "b", "c", "nowhere"})
    EXPECT_FALSE(is_ge_tree((folder_.path() / path).string())) << path;
}

TEST(GeFileNames, AreTakenApart) {
  const auto whole = parse_ge_file_name("Add.Add_2.44.6.1706596912161941").value();
  EXPECT_EQ(whole.type + " " + whole.operation, "Add Add_2");
  EXPECT_EQ(whole.time, 1706596912161941U);
  EXPECT_EQ(parse_ge_file_name("TransData.TransData_1.1.42.6.17005969121581")->operation,
            "TransData_1.1");
  EXPECT_EQ(parse_ge_file_name("Add.Add_2.44.6.1706596912161941.4.1.2.0")->operation, "Add_2");
  EXPECT_FALSE(parse_ge_file_name("Add.Add_2.44.1706596912161941"));
  EXPECT_FALSE(parse_ge_file_name("Add.Add_2.44.6.x"));
  EXPECT_FALSE(parse_ge_text_name("dynamo_optimized_graph_1_rank_0_pid_1_ts_2.txt"));
  EXPECT_EQ(parse_ge_text_name("dynamo_original_graph_12_x.txt")->graph, 12U);
  EXPECT_EQ(parse_ge_text_name("dynamo_original_graph_1_rank_10_pid_1_ts_2.txt")->rank, "10");
}

TEST(GeFusion, GivesUpWhereADumpedOperationIsUnknownToTheGraph) {
  graph::GeGraph graph;
  for (const std::string name : {"Add_2", "Cast_9", "ConcatV2"})
    graph.operations.push_back({name, {}, {}, {}});
  const GraphNames names(graph);
  EXPECT_THAT(names.decompose("Add_2Cast_9ConcatV2", {}).parts, ElementsAre(0, 1, 2));
  EXPECT_TRUE(names.decompose("Add_2Cast_9ConcatV2", {}).is_whole);
  EXPECT_THAT(names.decompose("Add_2Cast_9ConcatV2", {"Add_2Cast"}).parts, IsEmpty());
  EXPECT_THAT(names.decompose("Add_2Unknown", {}).parts, ElementsAre(0));
  EXPECT_THAT(names.decompose("Add_21", {}).parts, IsEmpty());
  EXPECT_THAT(names.decompose("", {}).parts, IsEmpty());
}

}  // namespace
}  // namespace ait::capture
