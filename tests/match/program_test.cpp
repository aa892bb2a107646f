#include "match/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;
using capture::Recording;
using ::testing::ElementsAre;

std::string names_of(const Recording& recording, const std::vector<uint32_t>& operations) {
  std::string out;
  for (const uint32_t each : operations)
    out += (out.empty() ? "" : " ") + recording.operations[each].name;
  return out;
}

std::vector<std::string> layers_of(const Recording& recording, const Program& program) {
  std::vector<std::string> out;
  for (const Segment& layer : program.layers) out.push_back(names_of(recording, layer.operations));
  return out;
}

Program only_program(const Recording& recording) {
  auto programs = find_programs(recording);
  EXPECT_EQ(programs.size(), 1u);
  return programs.at(0);
}

TEST(Layers, AreSiblingsOfTheSameStructure) {
  const TinyRun run(kTorchTraits, R"(
    root
      embed
      a
        norm
        linear
      b
        norm
        linear
      head
  )");
  const Program program = only_program(run.recording);
  EXPECT_THAT(layers_of(run.recording, program),
              ElementsAre("root.a root.a.norm root.a.linear", "root.b root.b.norm root.b.linear"));
  EXPECT_EQ(names_of(run.recording, program.outside.operations), "root root.embed root.head");
}

TEST(Layers, OfOneTypeMayDifferInStructure) {
  const auto layers = [](const std::string& type_of_second) {
    const TinyRun run(kTorchTraits, R"(
    root
      a    Layer
        mlp
      b    )" + type_of_second + R"(
        experts
          one
        gate
    )");
    return layers_of(run.recording, only_program(run.recording)).size();
  };
  EXPECT_EQ(layers("Layer"), 2u);
  EXPECT_EQ(layers("Other"), 0u);
}

TEST(Layers, DifferWhereTheirTensorsDo) {
  const auto layers = [](const std::string& second) {
    const TinyRun run(kTorchTraits, R"(
    root
      a
        linear
      b
        linear  )" + second);
    return layers_of(run.recording, only_program(run.recording)).size();
  };
  EXPECT_EQ(layers(""), 2u);
  EXPECT_EQ(layers("in"), 0u);
  EXPECT_EQ(layers("in none"), 0u);
}

TEST(Layers, OfAGraphAreTheSameWhateverTheyRead) {
  const TinyRun run(kAtbTraits, R"(
    0_A
      0_Linear
    1_B
      0_Linear  in
  )");
  EXPECT_EQ(only_program(run.recording).layers.size(), 2u);
}

TEST(Layers, HoldAtLeastHalfOfEverything) {
  const auto layers = [](const std::string& more) {
    const TinyRun run(kTorchTraits, R"(
    root
      a
        linear
      b
        linear
      c
      d
)" + more);
    return layers_of(run.recording, only_program(run.recording)).size();
  };
  EXPECT_EQ(layers("      e"), 2u);  // 4 of 8
  EXPECT_EQ(layers("      e\n      f"), 0u);
}

TEST(Layers, AreTheLargestSeries) {
  const TinyRun run(kTorchTraits, R"(
    root
      first
        0
          q
        1
          q
      blocks
        0
          q
          k
          v
        1
          q
          k
          v
  )");
  const Program program = only_program(run.recording);
  ASSERT_EQ(program.layers.size(), 2u);
  EXPECT_EQ(names_of(run.recording, program.layers[0].operations),
            "root.blocks.0 root.blocks.0.q root.blocks.0.k root.blocks.0.v");
}

TEST(Layers, StandInARow) {
  const TinyRun run(kTorchTraits, R"(
    root
      a        Block
        linear
      between  Block
      b        Block
        linear
  )");
  EXPECT_EQ(only_program(run.recording).layers.size(), 0u);
}

TEST(Layers, HaveNoKernels) {
  const TinyRun run(kAtbTraits, R"(
    0_Layer
      0_Linear
        0_MatMulKernel  kernel
    1_Layer
      0_Linear
  )");
  EXPECT_THAT(layers_of(run.recording, only_program(run.recording)),
              ElementsAre("0_Layer 0_Layer/0_Linear", "1_Layer 1_Layer/0_Linear"));
  const TinyRun flat(kAtbTraits, R"(
    0_Linear
      0_MatMulKernel  kernel
    1_Linear
      0_MatMulKernel  kernel
  )");
  EXPECT_TRUE(only_program(flat.recording).layers.empty());
}

TEST(Segments, OfEqualStructureMayHaveOtherNamesAndTypes) {
  const TinyRun run(kTorchTraits, R"(
    a  Aa
      x  Xx
      y
    b  Bb
      z
      w
    c
      z
        w
  )");
  const auto structure = [&](const char* name) {
    Segment segment;
    const uint32_t first = run.operation(name);
    for (uint32_t i = first; i < run.recording.operations[first].end; ++i)
      segment.operations.push_back(i);
    return structure_of(run.recording, segment);
  };
  EXPECT_EQ(structure("a"), structure("b"));
  EXPECT_NE(structure("a"), structure("c"));
}

// What goes into a layer is needed where the sum of it and of what the layer computes was not
// recorded.
TEST(Segments, BeginWithWhatFlowsInWhereInputsWereNotRecorded) {
  const std::string list = R"(
    root
      embed
      0
        linear
      1
        linear
)";
  const TinyRun outputs(kTorchTraits, list);
  const Program program = only_program(outputs.recording);
  ASSERT_EQ(program.layers.size(), 2u);
  EXPECT_EQ(names_of(outputs.recording, program.layers[0].before), "root.embed");
  EXPECT_EQ(names_of(outputs.recording, program.layers[1].before), "root.0");
  EXPECT_EQ(outputs.recording.operations[program.layers[1].operation_at(2)].name, "root.0");

  const TinyRun with_inputs(kTorchTraits, list + "      head  in");
  EXPECT_TRUE(only_program(with_inputs.recording).layers[1].before.empty());
  const TinyRun library(kAtbTraits, R"(
    0_A
      0_x
    1_A
      0_x
  )");
  EXPECT_TRUE(only_program(library.recording).layers[1].before.empty());
}

// Top-level operations of each program; "*" marks those that both run.
std::vector<std::string> graphs_of(const Recording& recording) {
  std::vector<std::string> out;
  for (const Program& program : find_programs(recording)) {
    std::string& names = out.emplace_back();
    for (const uint32_t top : program.tops)
      names += (names.empty() ? "" : " ") + recording.operations[top].name +
               (program.is_shared(top) ? "*" : "");
  }
  return out;
}

// Layers are "L", every other word an operation without children; ids count up.
Recording row_of(const std::string& words) {
  std::istringstream in(words);
  std::string list;
  std::string word;
  for (int id = 0; in >> word; ++id) {
    list += std::to_string(id) + "_" + word + "\n";
    if (word == "L" || word == "M") list += "  0_x\n  1_y\n";
  }
  return TinyRun(kAtbTraits, list).recording;
}

TEST(Graphs, WithoutTopologyAreTwoSeriesOfEquallyManyLayers) {
  EXPECT_THAT(graphs_of(row_of("Embed L L Norm Head Embed L L Norm Head")),
              ElementsAre("0_Embed 1_L 2_L 3_Norm 4_Head", "5_Embed 6_L 7_L 8_Norm 9_Head"));
  EXPECT_THAT(graphs_of(row_of("Embed L L Norm L")), ElementsAre("0_Embed 1_L 2_L 3_Norm 4_L"));
  EXPECT_THAT(graphs_of(row_of("L Norm L Norm L Norm")).size(), 1u);
}

// A layer of six operations and a head of four.
TEST(Graphs, OfOneLayerAreNotItAndItsHead) {
  const std::string layer = "1_L\n  0_a\n  1_b\n  2_c\n  3_d\n  4_e\n";
  const std::string norm = "2_Norm\n";
  EXPECT_EQ(
      graphs_of(TinyRun(kAtbTraits, layer + norm + "3_Head\n  0_a\n  1_b\n  2_c").recording).size(),
      1u);
  EXPECT_EQ(
      graphs_of(TinyRun(kAtbTraits, layer + norm + "3_L\n  0_a\n  1_b\n  2_c\n  3_d").recording)
          .size(),
      2u);
}

TEST(Graphs, WithoutABeginningOrEndShareTheOthers) {
  EXPECT_THAT(graphs_of(row_of("Embed L L Norm Head L L Norm Head")),
              ElementsAre("0_Embed* 1_L 2_L 3_Norm 4_Head", "0_Embed* 5_L 6_L 7_Norm 8_Head"));
  EXPECT_THAT(graphs_of(row_of("Embed L L Norm L L")),
              ElementsAre("0_Embed* 1_L 2_L 3_Norm*", "0_Embed* 3_Norm* 4_L 5_L"));
}

TEST(Graphs, AreAsTopologiesListThem) {
  Recording recording = row_of("Embed L L Norm Mask L L Norm");
  recording.model_tops = {{1, 2, 3}, {5, 6, 7}};
  // The embedding is no part of either and came before both, the mask came after the first.
  EXPECT_THAT(graphs_of(recording),
              ElementsAre("0_Embed* 1_L 2_L 3_Norm 4_Mask", "0_Embed* 5_L 6_L 7_Norm"));
  recording.model_tops = {{0, 1, 2}};  // one is not enough to go by
  EXPECT_THAT(graphs_of(recording), ElementsAre("0_Embed 1_L 2_L 3_Norm", "4_Mask 5_L 6_L 7_Norm"));
  recording.model_tops = {{0, 1, 2, 3, 4, 5, 6, 7}};  // unless it lists everything
  EXPECT_EQ(graphs_of(recording).size(), 1u);
}

TEST(Graphs, OfRunsThatCountCallsAreOne) {
  const TinyRun run(kTorchTraits, R"(
    a
      x
    b
      x
    between
    c
      x
    d
      x
  )");
  EXPECT_EQ(find_programs(run.recording).size(), 1u);
}

}  // namespace
}  // namespace ait::match
