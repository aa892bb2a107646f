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

}  // namespace
}  // namespace ait::dump
