#include "dump/torch_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TorchRun run_with(const std::string& manifest) {
  const ScratchFolder folder;
  folder.file("torch_tensors/cpu_7/manifest.json", manifest);
  return read_torch_run(folder.path(), {7}, std::filesystem::file_time_type::min());
}

TEST(ReadTorchRun, IsContentWhereEveryModuleRan) {
  const TorchRun run = run_with(R"({"rounds": {"0": {"expected": 128, "seen": 128}}})");
  EXPECT_EQ(run.modules_seen, 128U);
  EXPECT_THAT(run.problems, IsEmpty());
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(ReadTorchRun, TakesModulesThatRanOutOfSightForAProblem) {
  const TorchRun run = run_with(R"({"rounds": {"0": {"expected": 128, "seen": 4}},
                                    "never_ran_because": ["torch.compile has compiled it"]})");
  EXPECT_THAT(run.problems,
              ElementsAre(AllOf(HasSubstr("124 modules"), HasSubstr("torch.compile"))));
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(ReadTorchRun, NotesModulesThatTheModelDidNotUse) {
  const TorchRun run =
      run_with(R"({"rounds": {"0": {"expected": 128, "seen": 4}}, "never_ran_because": []})");
  EXPECT_THAT(run.problems, IsEmpty());
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("124 modules"), HasSubstr("did not run"))));
}

TEST(ReadTorchRun, AddsRoundsThatWereSummedUp) {
  const TorchRun run = run_with(R"({"rounds": {"0": {"expected": 4, "seen": 4}},
                                    "rounds_summed_up": {"count": 9, "expected": 36, "seen": 36}})");
  EXPECT_EQ(run.modules_expected, 40U);
  EXPECT_EQ(run.modules_seen, 40U);
}

TEST(ReadTorchRun, SaysWhichConditionHeldAndThatOtherRoundsHaveNoTensorsByChoice) {
  const TorchRun run = run_with(R"({"rounds": {}, "when": {
      "conditions": "nan,spike=10", "rounds_watched": 2000,
      "held": [{"round": 1700, "condition": "spike=10", "module": "root.b", "tensor": "output",
                "statistic": "norm", "value": "700", "median": "3"}, {"round": 1801}],
      "rounds_with_tensors": [[1698, 1702], [1801, 1801]]}})");
  EXPECT_TRUE(run.is_watched);
  EXPECT_THAT(run.problems, IsEmpty());
  EXPECT_THAT(run.notes,
              ElementsAre("torch_tensors/cpu_7: spike=10 held in round 1700 first: output of "
                          "root.b, norm is 700 where 3 is usual (and 1 event later); tensors are "
                          "kept of rounds 1698 to 1702, 1801, and statistics of all 2000 rounds, "
                          "as --when asks"));
}

TEST(ReadTorchRun, SaysThatNoConditionHeld) {
  const TorchRun run = run_with(R"({"when": {"conditions": "nan", "rounds_watched": 1, "held": [],
                                             "rounds_with_tensors": []}})");
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("none of nan held in 1 round;"),
                                           HasSubstr("no tensors are kept"))));
}

}  // namespace
}  // namespace ait::dump
