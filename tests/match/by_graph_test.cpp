// tests/e2e/test_compare_ge.py has whole runs of both kinds.

#include "match/by_graph.h"

#include <gmock/gmock.h>

#include "capture/fx_tree.h"
#include "capture/ge_tree.h"
#include "ge_builder.h"
#include "match/graph_calls.h"
#include "match/program.h"
#include "test_files.h"

namespace ait::match {
namespace {

using capture::Recording;
using formats::TempFolder;
using formats::ge_builder::whole_dump;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ByGraph : public testing::Test {
 protected:
  // "golden", rank, graph, token, node: an output of it. Times rise from call to call.
  void fx(const std::string& run, const std::string& rank, const std::string& graph,
          const std::string& token, const std::string& node) {
    folder_.write(run + "/worldsize2_global_rank" + rank + "/graph_" + graph + "/" + token + "/" +
                      node + "-aten." + node + ".default.OUTPUT.0.2024012503111800" +
                      std::to_string(++time_ + 1000) + ".npy",
                  "x");
  }
  // An operation of GE's that computes the node, or none.
  void ge(const std::string& run, const std::string& token, const std::string& type,
          const std::string& name, size_t outputs = 1) {
    folder_.write(run + "/20240125031118/0/graph_1/1/" + token + "/" + type + "." + name +
                      ".1.2.170000000000" + std::to_string(++time_ + 1000),
                  whole_dump(name, {{1}}, std::vector<std::vector<float>>(outputs, {1})));
  }
  void text(const std::string& run, const std::string& content) {
    folder_.write(run + "/dynamo_original_graph_1_rank_0_pid_1_ts_1.txt", content);
  }
  static std::string op(const std::string& name, const std::string& source,
                        const std::string& node) {
    return "op { name: \"" + name + "\" type: \"T\" input: \"" + source + "\" output_desc { " +
           (node.empty() ? ""
                         : "attr { key: \"_fx_tensor_name\" value { s: \"" + node + "-aten." +
                               node + ".default.OUTPUT.0\" } }") +
           " } }\n";
  }
  Recording fx_run(const std::string& run) {
    return capture::read_fx_tree((folder_.path() / run).string()).value();
  }
  Recording ge_run(const std::string& run) {
    return capture::read_ge_tree((folder_.path() / run).string()).value();
  }

  // Each pair: "rank token mine = golden", or why it stands alone.
  static std::vector<std::string> pairs(const Recording& golden, const Recording& actual,
                                        const AutomaticOptions& options = {}) {
    EXPECT_TRUE(can_pair_by_graph(golden, actual));
    const auto found = pair_by_graph(std::make_shared<const Recording>(golden),
                                     std::make_shared<const Recording>(actual), options);
    if (!found) return {found.error().text()};
    std::vector<std::string> out;
    for (size_t i = 0; i < found->pairs.count; ++i) {
      const Pair pair = found->pairs.at(i);
      const auto name = [](const Side& side) {
        return side.present() ? side.records[0].operation : std::string("nothing");
      };
      out.push_back(pair.subject.rank + " " + pair.token + " " + name(pair.actual) + " = " +
                    name(pair.golden) + (pair.complete() ? "" : ": " + pair.alone));
    }
    return out;
  }

  TempFolder folder_;
  size_t time_ = 0;
};

TEST_F(ByGraph, EachRankIsComparedWithTheRankOfItsNumber) {
  for (const std::string rank : {"0", "1"}) fx("golden", rank, "1", "0", "mm");
  fx("mine", "1", "1", "0", "mm");
  fx("mine", "2", "1", "0", "mm");
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine")),
              ElementsAre("1 0 mm = mm", "0 0 nothing = mm: my-path has no rank 0.",
                          "2 0 mm = nothing: golden-path has no rank 2."));
}

TEST_F(ByGraph, OneRankIsComparedWithOneWhateverTheirNumbers) {
  fx("golden", "0", "1", "0", "mm");
  fx("mine", "5", "1", "0", "mm");
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine")), ElementsAre(" 0 mm = mm"));
}

TEST_F(ByGraph, GraphsArePairedByNumberAndElseInTheirOrder) {
  for (const std::string graph : {"1", "2"}) fx("golden", "0", graph, "0", "mm");
  for (const std::string graph : {"2", "3"}) fx("mine", "0", graph, "0", "mm");
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine")),
              ElementsAre(" 0 graph_2/mm = graph_1/mm", " 0 graph_3/mm = graph_2/mm"));
  fx("mine", "0", "1", "0", "mm");
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine")),
              ElementsAre(" 0 graph_2/mm = graph_2/mm",
                          " 0 graph_3/mm = nothing: golden-path has no graph that corresponds to "
                          "its own.",
                          " 0 graph_1/mm = graph_1/mm"));
}

TEST_F(ByGraph, RoundsOfOneSideStandAloneInTheirPlace) {
  for (const std::string token : {"0", "1", "2"}) fx("golden", "0", "1", token, "mm");
  for (const std::string token : {"1", "2", "3"}) fx("mine", "0", "1", token, "mm");
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine")),
              ElementsAre(" 1 mm = mm", " 0 nothing = mm: my-path has nothing of token 0.",
                          " 2 mm = mm", " 3 mm = nothing: golden-path has nothing of token 3."));
  AutomaticOptions options;
  options.token_map = {{"0", "1"}, {"1", "2"}};
  EXPECT_THAT(pairs(fx_run("golden"), fx_run("mine"), options),
              ElementsAre(" 0 mm = mm", " 1 mm = mm"));
}

TEST_F(ByGraph, RunsThatShareNothingAreNotPairedSo) {
  fx("golden", "0", "1", "0", "mm");
  fx("mine", "0", "1", "0", "add");
  EXPECT_FALSE(can_pair_by_graph(fx_run("golden"), fx_run("mine")));
  EXPECT_FALSE(can_pair_by_graph(Recording{}, fx_run("mine")));
}

TEST_F(ByGraph, AnOperationOfOneTypeIsLessSurelyTheSameOfAnother) {
  folder_.write("golden/1/a-aten.add.Tensor.OUTPUT.0.1.npy", "x");
  folder_.write("mine/1/a-aten.add.Scalar.OUTPUT.0.1.npy", "x");
  const auto found = pair_by_graph(std::make_shared<const Recording>(fx_run("golden")),
                                   std::make_shared<const Recording>(fx_run("mine")), {});
  ASSERT_EQ(found->pairs.count, 1U);
  EXPECT_EQ(found->pairs.at(0).certainty, Certainty::kLikely);
}

TEST_F(ByGraph, SeveralModelsOfOneGraphShareItsGolden) {
  for (const std::string node : {"mm", "add", "mul"}) fx("golden", "0", "1", "0", node);
  text("mine", op("MatMul_1", "x:0", "mm") + op("Add_1", "MatMul_1:0", "add"));
  for (const std::string id : {"1", "2"})
    folder_.write("mine/20240125031118/0/graph_1_" + id + "/" + id + "/0/" +
                      (id == "1" ? "MatMul.MatMul_1" : "Add.Add_1") + ".1.2.170000000000000" + id,
                  whole_dump(id == "1" ? "MatMul_1" : "Add_1", {}, {{1}}));
  EXPECT_THAT(pairs(fx_run("golden"), ge_run("mine")),
              testing::UnorderedElementsAre(
                  " 0 graph_1_1_1/MatMul_1 = mm", " 0 graph_1_2_2/Add_1 = add",
                  " 0 nothing = mul: nothing of my-path has its name: it was fused, folded or left "
                  "out."));
}

TEST_F(ByGraph, OutputsThatOnlyOneSideHasAreListed) {
  for (const std::string run : {"golden", "mine"}) {
    text(run, op("Split_1", "x:0", ""));
    ge(run, "0", "Split", "Split_1", run == "golden" ? 2 : 3);
  }
  EXPECT_THAT(pairs(ge_run("golden"), ge_run("mine")),
              ElementsAre(" 0 Split_1 = Split_1", " 0 Split_1 = Split_1", " 0 Split_1 = Split_1",
                          " 0 Split_1 = nothing: golden-path has no such output of it."));
}

TEST_F(ByGraph, AFusedOperationWhoseNameSaysTooLittleHasNoGoldenOutput) {
  for (const std::string run : {"golden", "mine"})
    text(run, op("Add_1", "x:0", "") + op("Mul_1", "Add_1:0", ""));
  ge("golden", "0", "Add", "Add_1");
  ge("golden", "0", "Mul", "Mul_1");
  ge("mine", "0", "AutomaticBufferFusionOp", "Add_1Mul_1Unknown");
  EXPECT_THAT(pairs(ge_run("golden"), ge_run("mine")),
              Contains(HasSubstr("golden data missing: its name does not tell all")));
  EXPECT_THAT(pairs(ge_run("golden"), ge_run("mine")),
              Contains(" 0 Add_1Mul_1Unknown = Add_1"));  // what goes in
}

TEST_F(ByGraph, ATensorThatTwoPartsReadGoesInOnce) {
  for (const std::string run : {"golden", "mine"})
    text(run, op("Add_1", "x:0", "") +
                  "op { name: \"Mul_1\" type: \"T\" input: \"Add_1:0\" input: \"x:0\" }");
  const std::string folder = "/20240125031118/0/graph_1/1/0/";
  folder_.write("golden" + folder + "Add.Add_1.1.2.1", whole_dump("Add_1", {{1}}, {{1}}));
  folder_.write("golden" + folder + "Mul.Mul_1.1.2.2", whole_dump("Mul_1", {{2}, {1}}, {{1}}));
  folder_.write("mine" + folder + "AutomaticBufferFusionOp.Add_1Mul_1.1.2.3",
                whole_dump("Add_1Mul_1", {{1}}, {{1}}));
  EXPECT_THAT(pairs(ge_run("golden"), ge_run("mine")),
              ElementsAre(" 0 Add_1Mul_1 = Add_1", " 0 Add_1Mul_1 = Mul_1",
                          " 0 nothing = Add_1: it is computed inside a fused operation of "
                          "my-path. It is Add_1Mul_1."));
}

// Rounds and the graphs that ran in each.
std::vector<std::string> calls_of(const Recording& recording) {
  std::vector<std::string> out;
  for (size_t round = 0; round < recording.rounds.size(); ++round) {
    std::string line = recording.rounds[round] + ":";
    for (uint32_t slot = 0; slot < recording.slots.size(); ++slot)
      if (recording.has(0, round, slot)) {
        const std::string path = recording.record(0, round, slot).path;
        EXPECT_TRUE(std::filesystem::exists(path)) << path;
        const std::string graph = path.substr(path.find("graph_") + 6);
        line += " " + graph.substr(0, graph.find('/', 2));
      }
    out.push_back(line);
  }
  return out;
}

TEST_F(ByGraph, ExecutionsAreCalls) {
  fx("run", "0", "1", "0", "mm");
  fx("run", "0", "2", "0", "mm");
  fx("run", "0", "3", "0", "mm");
  fx("run", "0", "3", "1", "mm");
  Recording recording = fx_run("run");
  EXPECT_EQ(find_programs(recording).size(), 3U);
  count_calls(recording, 4);
  EXPECT_EQ(recording.traits.rounds, capture::Traits::Rounds::kCalls);
  EXPECT_THAT(calls_of(recording), ElementsAre("0: 1/0", "1: 2/0", "2: 3/0", "3: 3/1"));
  const auto programs = find_programs(recording);
  ASSERT_EQ(programs.size(), 3U);
  EXPECT_EQ(program_in(recording, programs, 0), 0U);
  EXPECT_EQ(program_in(recording, programs, 3), 2U);
}

TEST_F(ByGraph, SeveralExecutionsAreOneCallWhereTheOtherRunHasFewer) {
  for (const std::string token : {"0", "1"})
    for (const std::string graph : {"1", "2"}) fx("run", "0", graph, token, "mm");
  Recording recording = fx_run("run");
  count_calls(recording, 2);
  EXPECT_THAT(calls_of(recording), ElementsAre("0: 1/0 2/0", "1: 1/1 2/1"));
  EXPECT_EQ(find_programs(recording).size(), 1U);

  // A graph that runs twice in a call cannot be told apart there.
  Recording again = fx_run("run");
  count_calls(again, 1);
  EXPECT_EQ(again.rounds.size(), 4U);
  Recording odd = fx_run("run");
  count_calls(odd, 3);
  EXPECT_EQ(odd.rounds.size(), 4U);
}

TEST_F(ByGraph, ARunOfNothingButTextsHasNoCalls) {
  text("run", op("Add_1", "x:0", ""));
  Recording recording = ge_run("run");
  count_calls(recording, 3);
  EXPECT_EQ(recording.rounds.size(), 0U);
}

}  // namespace
}  // namespace ait::match
