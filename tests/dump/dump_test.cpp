#include "dump/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A run of a command that no probe is placed in.
Result<Outcome> run_without_probe(Options options) {
  auto plan = plan_recording(options.command);
  if (!plan) return fail(plan.error());
  return run(options, std::move(*plan));
}

TEST(Dump, OfACommandThatComputesNothingIsNotCompleteAndHasAManifest) {
  const ScratchFolder folder;
  Options options;
  options.command = {"sh", "-c", "exit 3"};
  options.output = folder / "out";
  const auto outcome = run_without_probe(options);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->end.child.status(), 3);
  EXPECT_THAT(outcome->problems, ElementsAre(HasSubstr("no process of the command called")));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "out/ait_dump"))
    left.push_back(entry.path().filename());
  EXPECT_THAT(left, ElementsAre("manifest.json"));
}

TEST(Dump, LeavesNothingBehindAfterADryRun) {
  const ScratchFolder folder;
  Options options;
  options.command = {"true"};
  options.output = folder / "out";
  options.dry_run = true;
  const auto outcome = run_without_probe(options);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(outcome->forecast);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Dump, RefusesAnOutputThatIsAFile) {
  const ScratchFolder folder;
  Options options;
  options.command = {"touch", folder / "ran"};
  options.output = folder.file("file", "x");
  const auto outcome = run_without_probe(options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::kUnwritable);
  EXPECT_FALSE(fs::exists(folder / "ran"));
}

TEST(Dump, PlanFindsTheProgramFirst) {
  Options options;
  options.command = {"no-such-program-of-ours"};
  const auto planned = plan(options);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ait::dump
