#include "match/by_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;
using capture::Recording;
using ::testing::ElementsAre;

std::string method_of(const TinyRun& golden, const TinyRun& actual) {
  const auto places = find_places(golden.recording, actual.recording);
  return places ? places->method : "none";
}

TEST(Places, OfModulesAreNamesThatHalfOfThemShare) {
  const TinyRun golden(kTorchTraits, "root\n  a\n  b\n  c");
  EXPECT_EQ(method_of(golden, TinyRun(kTorchTraits, "root\n  a\n  x\n  y")),
            "by the names of modules");
  EXPECT_EQ(method_of(golden, TinyRun(kTorchTraits, "root\n  x\n  y")), "none");
}

TEST(Places, OfModulesHoldWhereTheOtherRunHasManyMore) {
  const TinyRun golden(kTorchTraits, "root\n  a\n  b");
  const std::string more = "root\n  a\n    base\n    lora\n  b\n    base\n    lora\n  c\n  d";
  EXPECT_EQ(method_of(golden, TinyRun(kTorchTraits, more)), "by the names of modules");
  EXPECT_EQ(method_of(TinyRun(kTorchTraits, more), golden), "by the names of modules");
}

// Golden's name of each of my operations, "-" for none.
std::vector<std::string> golden_names(const TinyRun& golden, const TinyRun& actual) {
  const auto places = find_places(golden.recording, actual.recording);
  std::vector<std::string> out;
  if (!places) return out;
  for (const uint32_t g : places->golden_of)
    out.push_back(g == capture::kNoOperation ? "-" : golden.recording.operations[g].name);
  return out;
}

TEST(Places, OfModulesAreThoseOfAWrappedModel) {
  const TinyRun plain(kTorchTraits, "root\n  model\n    a\n    b\n  head");
  const TinyRun wrapped(kTorchTraits,
                        "root\n  model\n    net\n      model\n        a\n        b\n      head");
  // A wrapper may be called like something else of golden's: its name tells nothing.
  EXPECT_THAT(
      golden_names(plain, wrapped),
      ElementsAre("-", "-", "root", "root.model", "root.model.a", "root.model.b", "root.head"));
  EXPECT_THAT(golden_names(wrapped, plain),
              ElementsAre("root.model.net", "root.model.net.model", "root.model.net.model.a",
                          "root.model.net.model.b", "root.model.net.head"));
}

TEST(Places, OfAGraphAreIdsWhateverItsTypes) {
  const TinyRun golden(kAtbTraits, "0_A\n  0_x\n1_B");
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "0_P\n  0_q\n1_R")), "by the place in the graph");
  // Other types at other places are another graph; the same types may be a part of it.
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "0_P\n  0_q\n  1_r\n1_S")), "none");
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "0_P\n  0_q  in\n1_R")), "none");
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "0_A\n  0_x\n  1_y\n1_B")),
            "by the place in the graph");
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "7_A")), "none");
}

TEST(Places, AreNoneWhereRunsAreOfDifferentKindsOrRanks) {
  const TinyRun golden(kAtbTraits, "0_A\n1_B");
  EXPECT_EQ(method_of(golden, TinyRun(kTorchTraits, "0_A\n1_B")), "none");
  EXPECT_EQ(method_of(golden, TinyRun(kAtbTraits, "0_A\n1_B", 2)), "none");
}

PlannedProgram plan(const TinyRun& golden, const TinyRun& actual) {
  const auto places = find_places(golden.recording, actual.recording);
  EXPECT_TRUE(places);
  return plan_by_place(golden.recording, find_programs(golden.recording).at(0), actual.recording,
                       find_programs(actual.recording).at(0), *places, {0, 0});
}

// "file of golden=file of mine", with "?" where that is only likely.
std::vector<std::string> texts(const TinyRun& golden, const TinyRun& actual) {
  const auto file = [](const Recording& recording, const std::vector<uint32_t>& slots) {
    return slots.empty() ? "-" : recording.slots[slots[0]].file;
  };
  std::vector<std::string> out;
  for (const PlannedPair& pair : plan(golden, actual).pairs)
    out.push_back(file(golden.recording, pair.golden) + "=" + file(actual.recording, pair.actual) +
                  (pair.certainty == Certainty::kLikely ? "?" : ""));
  return out;
}

TEST(PlanByPlace, PairsOutputsOfTheSamePlace) {
  EXPECT_THAT(texts(TinyRun(kTorchTraits, "root\n  a  in\n  b"),
                    TinyRun(kTorchTraits, "root\n  a  in\n  b")),
              ElementsAre("root/output.npy=root/output.npy", "root.a/output.npy=root.a/output.npy",
                          "root.b/output.npy=root.b/output.npy"));
}

TEST(PlanByPlace, PairsInputsWhereASideHasNothingElse) {
  EXPECT_THAT(texts(TinyRun(kTorchTraits, "a  in"), TinyRun(kTorchTraits, "a  in none")),
              ElementsAre("a/input_0.npy=a/input_0.npy", "a/output.npy=-"));
}

TEST(PlanByPlace, IsOnlyLikelyWhereTypesDiffer) {
  const TinyRun golden(kAtbTraits, "0_A\n1_B");
  const TinyRun actual(kAtbTraits, "0_A\n1_X");
  EXPECT_THAT(texts(golden, actual),
              ElementsAre("0_A/after/outtensor0.npy=0_A/after/outtensor0.npy",
                          "1_B/after/outtensor0.npy=1_X/after/outtensor0.npy?"));
  const PlannedProgram planned = plan(golden, actual);
  EXPECT_EQ(planned.pairs[0].why, "by the place in the graph");
  EXPECT_EQ(planned.pairs[1].why, "both have the same place in the graph, but their types differ");
  EXPECT_EQ(planned.pairs[0].form.fit, Fit::kRepeat);
  EXPECT_EQ(planned.pairs[0].form.actual_ranks, RankUse::kOne);
}

TEST(PlanByPlace, NamesOfKernelsMayDiffer) {
  const std::string golden = "0_A\n  0_OldKernel  kernel";
  EXPECT_THAT(texts(TinyRun(kAtbTraits, golden), TinyRun(kAtbTraits, "0_A\n  0_NewKernel  kernel")),
              ElementsAre("0_A/after/outtensor0.npy=0_A/after/outtensor0.npy",
                          "0_A/0_OldKernel/after/outtensor0.npy="
                          "0_A/0_NewKernel/after/outtensor0.npy"));
}

TEST(PlanByPlace, KeepsWhatOnlyOneSideHas) {
  const TinyRun golden(kTorchTraits, "root\n  a\n  b\n  c");
  const TinyRun actual(kTorchTraits, "root\n  a\n  b\n  d");
  EXPECT_THAT(texts(golden, actual),
              ElementsAre("root/output.npy=root/output.npy", "root.a/output.npy=root.a/output.npy",
                          "root.b/output.npy=root.b/output.npy", "-=root.d/output.npy",
                          "root.c/output.npy=-"));
  EXPECT_EQ(plan(golden, actual).pairs[3].alone, "the other run has no such tensor.");
}

TEST(PlanByPlace, ComparesRankWithRank) {
  const TinyRun golden(kAtbTraits, "0_A", 2);
  const PlannedProgram planned = plan(golden, TinyRun(kAtbTraits, "0_A", 2));
  EXPECT_EQ(planned.pairs[0].form.golden_ranks, RankUse::kEach);
  EXPECT_EQ(planned.pairs[0].form.actual_ranks, RankUse::kEach);
}

}  // namespace
}  // namespace ait::match
