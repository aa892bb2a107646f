#include "match/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::Recording;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Pair;

using Rounds = std::vector<std::string>;

// The last slot of an operation, its output if it has one.
uint32_t slot(const TinyRun& run, const std::string& name) {
  return run.recording.first_slot[run.operation(name) + 1] - 1;
}

// Two runs and a plan for them that a test writes down.
struct Planned {
  TinyRun golden;
  TinyRun actual;
  Alignment alignment;
  PlannedProgram program;
  std::vector<PlannedProgram> others;
  CompareLevel level = CompareLevel::kAll;

  Planned(const std::string& golden_list, const std::string& actual_list,
          const Rounds& rounds = {"0"}, size_t ranks = 1)
      : golden(kAtbTraits, golden_list, ranks, rounds),
        actual(kAtbTraits, actual_list, ranks, rounds) {}

  // Empty names for a side that is not there.
  PlannedPair& pair(const std::string& golden_name, const std::string& actual_name,
                    const std::string& alone = "") {
    PlannedPair each;
    if (!golden_name.empty()) each.golden = {slot(golden, golden_name)};
    if (!actual_name.empty()) each.actual = {slot(actual, actual_name)};
    each.alone = alone;
    return program.pairs.emplace_back(std::move(each));
  }

  // A call that both sides did, in rounds by their place in the list.
  void step(const std::string& token, size_t golden_round, size_t actual_round) {
    Step each;
    each.token = token;
    each.number = std::stoll(token);
    each.golden.round = each.golden.shared_round = golden_round;
    each.actual.round = each.actual.shared_round = actual_round;
    each.is_prefill = token == "0";
    alignment.steps.push_back(each);
  }

  AutomaticPairs carry_out() {
    std::vector<PlannedProgram> planned = others;
    planned.insert(planned.begin(), program);
    return match::carry_out(std::make_shared<Recording>(golden.recording),
                            std::make_shared<Recording>(actual.recording),
                            find_programs(golden.recording), find_programs(actual.recording),
                            alignment, planned, level);
  }
};

std::string side_text(const Side& side) {
  std::string out;
  for (const capture::TensorRecord& record : side.records) {
    // {root}/{rank}/{round}/{operation}/after/outtensor0.npy
    const std::filesystem::path path(record.path);
    const auto operation = path.parent_path().parent_path();
    out += (out.empty() ? "" : "+") + operation.parent_path().parent_path().filename().string() +
           ":" + operation.parent_path().filename().string() + ":" + operation.filename().string();
  }
  return out.empty() ? "-" : out;
}

// "token golden's rank:round:operation=mine"
std::vector<std::string> texts(const AutomaticPairs& found) {
  std::vector<std::string> out;
  for (size_t i = 0; i < found.pairs.count; ++i) {
    const match::Pair pair = found.pairs.at(i);
    out.push_back(pair.token + " " + side_text(pair.golden) + "=" + side_text(pair.actual));
  }
  return out;
}

TEST(Plan, PairsComeByTokenAndThenInTheOrderOfMySide) {
  Planned plan("0_A\n1_B", "0_X\n1_Y", {"0", "1"});
  plan.pair("0_A", "1_Y");
  plan.pair("1_B", "0_X");
  plan.step("1", 1, 1);
  plan.step("0", 0, 0);
  const AutomaticPairs found = plan.carry_out();
  EXPECT_THAT(texts(found), ElementsAre("0 0:0:1_B=0:0:0_X", "0 0:0:0_A=0:0:1_Y",
                                        "1 0:1:1_B=0:1:0_X", "1 0:1:0_A=0:1:1_Y"));
  EXPECT_EQ(found.pairs.at(0).phase, Phase::kPrefill);
  EXPECT_EQ(found.pairs.at(2).phase, Phase::kDecode);
  ASSERT_EQ(found.tokens.size(), 2U);
  EXPECT_EQ(found.tokens[1].golden_round, "1");
  EXPECT_TRUE(found.tokens[0].is_prefill);
}

TEST(Plan, OperationsComeWhenTheirResultIsThere) {
  Planned plan("0_A\n  0_x", "0_A\n  0_x");
  plan.pair("0_A", "0_A");
  plan.pair("0_A/0_x", "0_A/0_x");
  plan.step("0", 0, 0);
  std::vector<std::string> names;
  const AutomaticPairs found = plan.carry_out();
  for (size_t i = 0; i < found.pairs.count; ++i) names.push_back(found.pairs.at(i).subject.name);
  EXPECT_THAT(names, ElementsAre("0_A/0_x", "0_A"));
}

TEST(Plan, WhatNeitherSideRecordedInARoundIsNoRowOfIt) {
  Planned plan("0_A\n1_B", "0_A\n1_B", {"0", "1"});
  plan.pair("0_A", "0_A");
  plan.pair("1_B", "1_B");
  plan.step("0", 0, 0);
  plan.step("1", 1, 1);
  plan.golden.drop("1_B", "1");
  plan.actual.drop("1_B", "1");
  EXPECT_THAT(texts(plan.carry_out()),
              ElementsAre("0 0:0:0_A=0:0:0_A", "0 0:0:1_B=0:0:1_B", "1 0:1:0_A=0:1:0_A"));
}

TEST(Plan, ARowComesFromBeyondWhatItsRoundLacks) {
  const std::string list = R"(
    0_A y=a
    1_B x=a y=b
    2_C x=b y=c
  )";
  Planned plan(list, list, {"0", "1"});
  for (const char* name : {"0_A", "1_B", "2_C"}) plan.pair(name, name);
  plan.step("0", 0, 0);
  plan.step("1", 1, 1);
  plan.golden.drop("1_B", "1");
  plan.actual.drop("1_B", "1");
  const AutomaticPairs found = plan.carry_out();
  ASSERT_EQ(found.pairs.count, 5u);
  const Origin whole = found.pairs.at(2).origin;
  EXPECT_THAT(whole.sources, ElementsAre(1));
  EXPECT_THAT(whole.passed, IsEmpty());
  const Origin lacking = found.pairs.at(4).origin;
  EXPECT_EQ(lacking.operation, "2_C");
  EXPECT_THAT(lacking.sources, ElementsAre(1));  // 0_A
  EXPECT_THAT(lacking.passed, ElementsAre("1_B"));
}

TEST(Plan, CountsEachOperationOnceHoweverManyRoundsThereAre) {
  Planned plan("0_A\n1_B\n2_C\n3_D", "0_X\n1_Y\n2_Z", {"0", "1"});
  plan.pair("0_A", "0_X");
  plan.pair("1_B", "1_Y").certainty = Certainty::kLikely;
  plan.pair("2_C", "");  // holds what 1_B holds
  plan.pair("3_D", "", "nothing of my side has its shape.");
  plan.pair("", "2_Z", "its data agree with nothing.");
  plan.step("0", 0, 0);
  plan.step("1", 1, 1);
  const AutomaticPairs found = plan.carry_out();
  EXPECT_EQ(found.golden.operations, 4U);
  EXPECT_EQ(found.golden.paired, 2U);
  EXPECT_EQ(found.golden.copies, 1U);
  EXPECT_THAT(found.golden.alone, ElementsAre(Pair("nothing of my side has its shape.", 1)));
  EXPECT_EQ(found.actual.operations, 3U);
  EXPECT_EQ(found.actual.paired, 2U);
  EXPECT_THAT(found.actual.alone, ElementsAre(Pair("its data agree with nothing.", 1)));
  EXPECT_EQ(found.certain, 1U);
  EXPECT_EQ(found.likely, 1U);
  // A copy has no row; what only golden has comes last.
  EXPECT_THAT(texts(found),
              ElementsAre("0 0:0:0_A=0:0:0_X", "0 0:0:1_B=0:0:1_Y", "0 -=0:0:2_Z", "0 0:0:3_D=-",
                          "1 0:1:0_A=0:1:0_X", "1 0:1:1_B=0:1:1_Y", "1 -=0:1:2_Z", "1 0:1:3_D=-"));
  EXPECT_EQ(found.pairs.at(2).alone, "its data agree with nothing.");
}

TEST(Plan, AnOperationThatNoPlanNamesHasNoRound) {
  Planned plan("0_A\n1_B", "0_X");
  plan.pair("0_A", "0_X");
  plan.step("0", 0, 0);
  EXPECT_THAT(plan.carry_out().golden.alone,
              ElementsAre(Pair("no round of the other run corresponds to its round.", 1)));
}

TEST(Plan, EachRankIsARowOfItsOwnOrAllMakeOne) {
  Planned plan("0_A\n1_B", "0_X\n1_Y", {"0"}, 2);
  PlannedPair& each = plan.pair("0_A", "0_X");
  each.form.golden_ranks = each.form.actual_ranks = RankUse::kEach;
  PlannedPair& joined = plan.pair("1_B", "1_Y");
  joined.form.golden_ranks = RankUse::kOne;
  joined.form.actual_ranks = RankUse::kAll;
  plan.step("0", 0, 0);
  const AutomaticPairs found = plan.carry_out();
  EXPECT_THAT(texts(found),
              ElementsAre("0 0:0:0_A=0:0:0_X", "0 1:0:0_A=1:0:0_X", "0 0:0:1_B=0:0:1_Y+1:0:1_Y"));
  EXPECT_EQ(found.pairs.at(1).subject.rank, "1");
}

TEST(Plan, ATensorThatOneRoundLacksLeavesTheOtherSideAlone) {
  Planned plan("0_A\n1_B", "0_X\n1_Y", {"0", "1"});
  plan.pair("0_A", "0_X");
  plan.pair("1_B", "1_Y");
  plan.actual.drop("1_Y", "1");
  plan.step("0", 0, 0);
  plan.step("1", 1, 1);
  const AutomaticPairs found = plan.carry_out();
  EXPECT_THAT(texts(found), ElementsAre("0 0:0:0_A=0:0:0_X", "0 0:0:1_B=0:0:1_Y",
                                        "1 0:1:0_A=0:1:0_X", "1 0:1:1_B=-"));
  EXPECT_THAT(found.pairs.at(3).alone,
              EndsWith("1_Y/after/outtensor0.npy was not recorded in this round."));
}

TEST(Plan, ATensorWithoutAPartnerIsARowOnlyWhereItWasRecorded) {
  Planned plan("0_A\n1_B", "0_X", {"0", "1"});
  plan.pair("0_A", "0_X");
  plan.pair("1_B", "", "nothing has its shape.");
  plan.golden.drop("1_B", "1");
  plan.step("0", 0, 0);
  plan.step("1", 1, 1);
  EXPECT_THAT(texts(plan.carry_out()),
              ElementsAre("0 0:0:0_A=0:0:0_X", "0 0:0:1_B=-", "1 0:1:0_A=0:1:0_X"));
}

TEST(Plan, RoundsWithoutACounterpartComeAfterThePairsOfTheirCall) {
  Planned plan("0_A", "0_X", {"0", "1"});
  plan.pair("0_A", "0_X");
  plan.step("0", 0, 0);
  Step alone;
  alone.token = "1";
  alone.number = 1;
  alone.golden.round = alone.golden.shared_round = 1;
  alone.alone = "my side has no such token.";
  plan.alignment.alone = {alone};
  plan.alignment.notes = {"tokens were counted"};
  PlannedProgram of_golden;
  of_golden.actual = kNoProgram;
  PlannedPair& kept = of_golden.pairs.emplace_back();
  kept.golden = {slot(plan.golden, "0_A")};
  kept.alone = "a reason of its own";
  plan.others = {of_golden};
  const AutomaticPairs found = plan.carry_out();
  EXPECT_THAT(texts(found), ElementsAre("0 0:0:0_A=0:0:0_X", "1 0:1:0_A=-"));
  EXPECT_EQ(found.pairs.at(1).alone, "my side has no such token.");
  EXPECT_TRUE(found.pairs.at(1).unread);
  EXPECT_THAT(found.notes,
              ElementsAre("tokens were counted",
                          "golden alone has token 1: the tensors recorded there are rows "
                          "without a partner"));
  EXPECT_EQ(found.tokens.size(), 1U);
  // What ran alone says nothing of the operation, which is paired elsewhere.
  EXPECT_EQ(found.golden.paired, 1U);
  EXPECT_THAT(found.golden.alone, IsEmpty());
}

TEST(Plan, OtherLevelsAreCountedAndLeftOut) {
  Planned plan("0_A\n  0_x", "0_A\n  0_x");
  plan.pair("0_A", "0_A");
  plan.pair("0_A/0_x", "0_A/0_x");
  plan.step("0", 0, 0);
  plan.level = CompareLevel::kApi;
  const AutomaticPairs found = plan.carry_out();
  ASSERT_EQ(found.pairs.count, 1U);
  EXPECT_EQ(found.pairs.at(0).subject.name, "0_A/0_x");
  EXPECT_EQ(found.actual.paired, 2U);
}

}  // namespace
}  // namespace ait::match
