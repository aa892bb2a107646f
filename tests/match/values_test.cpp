#include "match/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;
using ::testing::ElementsAre;

// "file of its slot", with "+" where the operation is a container.
std::vector<std::string> values_in(const TinyRun& run) {
  const Segment segment = run.whole();
  std::vector<std::string> out;
  for (const Value& value : values_of(run.recording, segment))
    out.push_back(run.recording.slots[slot_of(run.recording, segment, value)].file +
                  (value.is_leaf ? "" : "+"));
  return out;
}

TEST(Values, OfModulesAreInputsAndOutputs) {
  EXPECT_THAT(values_in(TinyRun(kTorchTraits, R"(
    root
      norm    in
      linear
  )")),
              ElementsAre("root/output.npy+", "root.norm/input_0.npy", "root.norm/output.npy",
                          "root.linear/output.npy"));
}

TEST(Values, OfAGraphAreOutputs) {
  EXPECT_THAT(values_in(TinyRun(kAtbTraits, R"(
    0_Layer
      0_Norm    in
      1_Linear  in
        0_MatMulKernel  none kernel
  )")),
              ElementsAre("0_Layer/after/outtensor0.npy+", "0_Layer/0_Norm/after/outtensor0.npy",
                          "0_Layer/1_Linear/after/outtensor0.npy"));
}

TEST(Values, OfAGraphAreInputsWhereThereIsNothingElse) {
  EXPECT_THAT(values_in(TinyRun(kAtbTraits, R"(
    0_Norm    none in
    1_Linear  none in
  )")),
              ElementsAre("0_Norm/after/intensor0.npy", "1_Linear/after/intensor0.npy"));
}

TEST(Values, AreNoMemoryThatIsYetToBeWritten) {
  TinyRun run(kAtbTraits, R"(
    0_Norm
    1_Linear
  )");
  run.recording.slots[0].moment = capture::Moment::kBefore;
  EXPECT_THAT(values_in(run), ElementsAre("1_Linear/after/outtensor0.npy"));
}

TEST(Values, StandForSlotsOfEveryLayer) {
  const TinyRun run(kTorchTraits, R"(
    root
      0
        linear  in
      1
        linear  in
  )");
  const Program program = find_programs(run.recording).at(0);
  ASSERT_EQ(program.layers.size(), 2u);
  const auto values = values_of(run.recording, program.layers[0]);
  const auto file = [&](const Segment& layer, const Value& value) {
    return run.recording.slots[slot_of(run.recording, layer, value)].file;
  };
  EXPECT_EQ(file(program.layers[0], values[1]), "root.0.linear/input_0.npy");
  EXPECT_EQ(file(program.layers[1], values[1]), "root.1.linear/input_0.npy");
  EXPECT_EQ(file(program.layers[1], values[2]), "root.1.linear/output.npy");
}

TEST(Values, HaveNames) {
  const TinyRun run(kAtbTraits, "0_Linear  x=hidden y=logits");
  const Segment segment = run.whole();
  const auto values = values_of(run.recording, segment);
  const SegmentSide side{run.recording, segment, values};
  EXPECT_EQ(side.operation_of(values[0]).name, "0_Linear");
  EXPECT_EQ(side.file_name_of(values[0]), "outtensor0");
  EXPECT_EQ(side.topology_name_of(values[0]), "logits");
  const TinyRun without(kAtbTraits, "0_Linear");
  EXPECT_EQ((SegmentSide{without.recording, segment, values}).topology_name_of(values[0]), "");
}

}  // namespace
}  // namespace ait::match
