#include "watch/follow.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>

#include "../launch/scratch_folder.h"

namespace ait::watch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n";
constexpr const char* kTree = R"({"name": "root", "type": "Model", "order": 0, "children": [
  {"name": "root.a", "type": "Linear", "order": 1, "children": []},
  {"name": "root.b", "type": "Linear", "order": 2, "children": []}]})";

std::string line(const std::string& module, const std::string& maximum, double norm,
                 const std::string& file) {
  return fmt::format("{},Linear,Output,0,torch.float32,\"(4, 8)\",{},-1,0,{},{}\r\n", module,
                     maximum, norm, file);
}

// A recording in the making.
class Growing {
 public:
  explicit Growing(std::string folder = "out/torch_tensors/cpu_7/") : folder_(std::move(folder)) {
    scratch.file(folder_ + "model_tree.json", kTree);
  }

  // One table for each module, as they always were.
  void round(int number, const std::string& maximum = "1", double norm = 5) {
    for (const char* module : {"root", "root.a", "root.b"})
      scratch.file(fmt::format("{}{}/{}/statistics.csv", folder_, number, module),
                   kHeader + line(module, std::string(module) == "root.a" ? "1" : maximum,
                                  std::string(module) == "root.a" ? 5 : norm, "output"));
  }

  // Or one for the round.
  void round_in_one_table(int number, const std::string& maximum = "1", double norm = 5) {
    scratch.file(fmt::format("{}{}/statistics.csv", folder_, number),
                 kHeader + line("root.a", "1", 5, "root.a/output") +
                     line("root.b", maximum, norm, "root.b/output") +
                     line("root", maximum, norm, "root/output"));
  }

  void manifest(const std::string& state, int rounds, const std::string& more = "") {
    std::string text;
    for (int i = 0; i < rounds; ++i)
      text += fmt::format("{}\"{}\": {{\"state\": \"finished\"}}", i == 0 ? "" : ", ", i);
    scratch.file(folder_ + "manifest.json",
                 fmt::format("{{\"state\": \"{}\", \"rounds\": {{{}}}{}}}", state, text, more));
  }

  std::string path() const { return scratch / "out"; }

  ScratchFolder scratch;

 private:
  std::string folder_;
};

FollowOptions options_for(const Growing& run, const std::string& golden = "") {
  return {run.path(), golden, *parse_conditions("nan,inf,spike=10"), 0.05};
}

TEST(Follower, FindsTheFirstRoundAndModuleOfANan) {
  for (const bool one_table : {false, true}) {
    Growing run;
    for (int i = 0; i < 20; ++i) {
      const char* maximum = i >= 12 ? "nan" : "1";
      one_table ? run.round_in_one_table(i, maximum) : run.round(i, maximum);
    }
    run.manifest("complete", 20);
    Follower follower(options_for(run));
    ASSERT_TRUE(follower.pass(true));
    const auto found = follower.take_new();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found.front().round, 12U);
    EXPECT_EQ(found.front().module, "root.b");  // and not root, which returns later
    EXPECT_EQ(found.front().tensor, "output");
    EXPECT_EQ(found.front().condition, "nan");
    EXPECT_EQ(follower.tensors(), 60U);
    EXPECT_EQ(follower.folders().front().rounds, 20U);
    EXPECT_THAT(follower.problems(), SizeIs(0));
  }
}

TEST(Follower, ReadsRoundsAsTheyCome) {
  Growing run;
  Follower follower(options_for(run));
  run.manifest("recording", 0);
  ASSERT_TRUE(follower.pass(true));
  run.round(0);
  run.round(1);
  run.round(2);
  run.manifest("recording", 2);
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.folders().front().last_round, 1U);  // the third has not ended
  EXPECT_FALSE(follower.has_ended());
  run.manifest("recording", 3);
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.folders().front().last_round, 1U);  // its files may still come
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.folders().front().last_round, 2U);
  run.round(3, "inf");
  run.manifest("complete", 4);
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.folders().front().rounds, 4U);
  EXPECT_THAT(follower.take_new(), SizeIs(1));
  EXPECT_FALSE(follower.has_ended());  // somebody may go on under another name
  ASSERT_TRUE(follower.pass(true));
  EXPECT_TRUE(follower.has_ended());
  EXPECT_EQ(follower.folders().front().rounds, 4U);
}

TEST(Follower, TakesARunThatIsNotLiveAsItIs) {
  Growing run;
  run.round(0);
  run.manifest("recording", 0);
  Follower follower(options_for(run));
  ASSERT_TRUE(follower.pass(false));
  EXPECT_EQ(follower.folders().front().rounds, 1U);
}

TEST(Follower, SeesASpike) {
  Growing run;
  for (int i = 0; i < 20; ++i) run.round(i, "1", i == 15 ? 500 : 5);
  run.manifest("complete", 20);
  Follower follower(options_for(run));
  ASSERT_TRUE(follower.pass(true));
  ASSERT_TRUE(follower.first_of_history());
  EXPECT_EQ(follower.first_of_history()->round, 15U);
  EXPECT_EQ(follower.first_of_history()->condition, "spike=10");
  EXPECT_EQ(*follower.first_of_history()->usual, 5);
  EXPECT_FALSE(follower.first_of_golden());
}

TEST(Follower, SeesWhereGoldenIsLeft) {
  Growing golden;
  Growing run;
  for (int i = 0; i < 6; ++i) {
    golden.round(i);
    i % 2 == 0 ? run.round(i, "1", i < 4 ? 5.01 : 6)
               : run.round_in_one_table(i, i == 5 ? "nan" : "1");
  }
  run.manifest("complete", 6);
  Follower follower(options_for(run, golden.path()));
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.compared(), 18U);
  ASSERT_TRUE(follower.first_of_golden());
  EXPECT_EQ(follower.first_of_golden()->round, 4U);
  EXPECT_EQ(follower.first_of_golden()->module, "root.b");
  EXPECT_EQ(follower.first_of_golden()->statistic, "distance");
  EXPECT_NEAR(follower.first_of_golden()->value, 0.2, 1e-4);
  const auto found = follower.take_new();
  ASSERT_THAT(found, SizeIs(3));  // and in round 5 the NaN, twice
  EXPECT_EQ(found.back().condition, "nan");
  EXPECT_TRUE(found.back().from_golden);
}

TEST(Follower, SaysWhatIsNotThere) {
  const ScratchFolder empty;
  Follower nowhere({.path = empty / "none"});
  EXPECT_EQ(nowhere.pass(true).error().code(), ErrorCode::kNotFound);
  Follower nothing({.path = empty.path()});
  EXPECT_EQ(nothing.pass(true).error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(nothing.pass(true).error().text(), HasSubstr("no recording of a torch model"));
  Growing run;
  Follower golden({.path = run.path(), .golden = empty.path()});
  EXPECT_THAT(golden.pass(true).error().text(), HasSubstr("--golden"));
}

// The process was killed: nobody will write the end into the manifest.
TEST(Follower, EndsWithTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  Growing run;
  run.round(0);
  run.manifest("recording", 1, fmt::format(R"(, "host": "{}", "pid": {})", host.data(), child));
  Follower follower(options_for(run));
  ASSERT_TRUE(follower.pass(true));
  ASSERT_TRUE(follower.pass(true));
  EXPECT_TRUE(follower.has_ended());
  EXPECT_EQ(follower.folders().front().state, "gone");
  run.manifest("recording", 1, fmt::format(R"(, "host": "elsewhere", "pid": {})", child));
  Follower other(options_for(run));
  ASSERT_TRUE(other.pass(true));
  ASSERT_TRUE(other.pass(true));
  EXPECT_FALSE(other.has_ended());
}

TEST(Follower, ATableThatCannotBeReadIsAProblemAndNotTheEnd) {
  Growing run;
  run.round(0);
  run.round(1);
  run.scratch.file("out/torch_tensors/cpu_7/0/root.a/statistics.csv", "no table");
  run.manifest("complete", 2);
  Follower follower(options_for(run));
  ASSERT_TRUE(follower.pass(true));
  EXPECT_EQ(follower.tensors(), 5U);
  EXPECT_THAT(follower.problems(), SizeIs(1));
}

}  // namespace
}  // namespace ait::watch
