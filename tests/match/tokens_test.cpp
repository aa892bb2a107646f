#include "match/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rounds = std::vector<std::string>;

// A recording with its programs.
struct Recorded {
  TinyRun tiny;
  std::vector<Program> programs;
  RunSide side;

  // `absent` are top-level operations that were not recorded in a round.
  Recorded(const capture::Traits& traits, const std::string& list, const Rounds& rounds,
           const std::vector<std::pair<std::string, std::string>>& absent = {})
      : tiny(traits, list, 1, rounds),
        programs(find_programs(tiny.recording)),
        side{tiny.recording, programs} {
    for (const auto& [top, round] : absent) tiny.drop(top, round);
  }
};

Recorded torch(const Rounds& rounds) { return {kTorchTraits, "root\n  linear", rounds}; }

Recorded one_graph(const Rounds& rounds) { return {kAtbTraits, "0_Linear\n1_Linear", rounds}; }

// Graphs of their own for prefill (0_L to 2_Norm) and decode (3_L to 5_Norm), and in which rounds
// each of them ran.
Recorded two_graphs(const Rounds& rounds, const Rounds& prefill, const Rounds& decode) {
  std::vector<std::pair<std::string, std::string>> absent;
  const auto has = [](const Rounds& list, const std::string& round) {
    return std::find(list.begin(), list.end(), round) != list.end();
  };
  for (const std::string& round : rounds) {
    if (!has(prefill, round))
      for (const char* top : {"0_L", "1_L", "2_Norm"}) absent.emplace_back(top, round);
    if (!has(decode, round))
      for (const char* top : {"3_L", "4_L", "5_Norm"}) absent.emplace_back(top, round);
  }
  const std::string list = R"(
    0_L
      0_x
    1_L
      0_x
    2_Norm
    3_L
      0_x
    4_L
      0_x
    5_Norm
  )";
  return {kAtbTraits, list, rounds, absent};
}

// Prompts of five tokens, words of one; of one graph, round 0 is the prompt.
size_t count_tokens(const RunSide& side, const SideStep& step) {
  const bool is_prompt = side.programs.size() >= 2 ? step.program == 0 : step.round == 0;
  return is_prompt ? 5 : 1;
}

std::optional<bool> always(const Step&) { return true; }

// "token prefill golden's round, my graph and round"
std::vector<std::string> texts(const Result<Alignment>& alignment) {
  std::vector<std::string> out;
  if (!alignment) return {alignment.error().text()};
  for (const Step& step : alignment->steps)
    out.push_back(step.token + (step.is_prefill ? " prefill " : " decode ") +
                  std::to_string(step.golden.round) + ", " + std::to_string(step.actual.program) +
                  ":" + std::to_string(step.actual.round));
  return out;
}

TEST(Tokens, OfTwoGraphsAreCountedByEach) {
  const Recorded golden = torch({"0", "1", "2"});
  const Recorded actual = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 1, 1:0", "2 decode 2, 1:1"));
}

TEST(Tokens, OfOneGraphAreRounds) {
  const Recorded golden = torch({"0", "1", "2"});
  const Recorded actual = one_graph({"0", "1", "2"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 1, 0:1", "2 decode 2, 0:2"));
}

TEST(Tokens, ThatOneSideHasNotRecordedAreLeftOut) {
  const Recorded golden = torch({"0", "1", "3", "4"});
  const Recorded actual = two_graphs({"0", "1", "2", "3"}, {"0"}, {"0", "1", "3"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 1, 1:0", "4 decode 3, 1:3"));
}

// "token: golden's graph and round" or "my graph and round", and why it has no counterpart
std::vector<std::string> lone(const Result<Alignment>& alignment) {
  std::vector<std::string> out;
  for (const Step& step : alignment->alone) {
    const bool is_golden = step.actual.round == kNoRound;
    const SideStep& side = is_golden ? step.golden : step.actual;
    out.push_back(step.token + (is_golden ? ": golden " : ": my ") + std::to_string(side.program) +
                  ":" + std::to_string(side.round) + ", " + step.alone);
  }
  return out;
}

TEST(LoneRounds, AreThoseThatOneSideHasNotRecorded) {
  const Recorded golden = torch({"0", "1", "3", "4"});
  const Recorded actual = two_graphs({"0", "1", "2", "3"}, {"0"}, {"0", "1", "3"});
  EXPECT_THAT(lone(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("3: golden 0:2, my-path has nothing of token 3.",
                          "2: my 1:1, golden-path has nothing of token 2."));
}

TEST(LoneRounds, AreWarmUpsToo) {
  const Recorded golden = torch({"0", "1"});
  const Recorded actual = two_graphs({"0", "1", "2", "3"}, {"0", "1"}, {"0", "1", "2", "3"});
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return step.actual.round == (step.is_prefill ? 1 : 2);
  };
  const std::string why = "its round is taken for a warm-up, which golden-path does not have.";
  EXPECT_THAT(lone(align_tokens(golden.side, actual.side, {}, count_tokens, agree)),
              ElementsAre("warm-up: my 0:0, " + why, "warm-up: my 1:0, " + why,
                          "0: my 1:1, golden-path has nothing of token 0.",
                          "2: my 1:3, golden-path has nothing of token 2."));
}

TEST(LoneRounds, AreNoneWherePathsOrAMapNameTheRounds) {
  const Recorded golden = torch({"3"});
  const Recorded actual = one_graph({"1"});
  EXPECT_THAT(lone(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre());
  const Recorded more = one_graph({"0", "1", "2"});
  EXPECT_THAT(lone(align_tokens(golden.side, more.side, {{"3", "1"}}, count_tokens, always)),
              ElementsAre());
}

TEST(Tokens, BeginWithAPromptThatWasNotRecorded) {
  const Recorded golden = torch({"2", "3"});
  const Recorded actual = two_graphs({"0", "1", "2"}, {"0"}, {"0", "1", "2"});
  const auto all_words = [](const RunSide&, const SideStep&) { return size_t{1}; };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, all_words, always)),
              ElementsAre("2 decode 0, 1:1", "3 decode 1, 1:2"));
}

// Two questions to one torch model: rounds with more tokens than others are prompts.
TEST(Tokens, OfOneGraphMayBeSeveralPrompts) {
  const Recorded golden = torch({"0", "1", "2", "3"});
  const Recorded actual = two_graphs({"0", "1"}, {"0", "1"}, {"0", "1"});
  const auto count = [](const RunSide& side, const SideStep& step) -> size_t {
    if (side.programs.size() >= 2) return step.program == 0 ? 0 : 1;
    return std::vector<size_t>{5, 1, 4, 1}[step.round];
  };
  EXPECT_THAT(
      texts(align_tokens(golden.side, actual.side, {}, count, always)),
      ElementsAre("0 prefill 0, 0:0", "1 decode 1, 1:0", "2 prefill 2, 0:1", "3 decode 3, 1:1"));
}

TEST(Tokens, AreKnownByNumberWhereGoldenHasTwoGraphs) {
  const Recorded golden = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  const Recorded actual = torch({"0", "1", "2"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 0, 0:1", "2 decode 1, 0:2"));
}

TEST(Tokens, OfTwoRunsThatCountAlikeAreTheSameRounds) {
  const Recorded golden = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  const Recorded actual = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  const auto never = [](const Step&) -> std::optional<bool> {
    ADD_FAILURE() << "a warm-up was looked for";
    return false;
  };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, never)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 0, 1:0", "2 decode 1, 1:1"));
}

TEST(WarmUp, EndsWhereDataAgree) {
  const Recorded golden = torch({"0", "1"});
  const Recorded actual = two_graphs({"0", "1", "2", "3"}, {"0", "1"}, {"0", "1", "2", "3"});
  // One prompt and two words to warm up.
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return step.actual.round == (step.is_prefill ? 1 : 2);
  };
  const auto found = align_tokens(golden.side, actual.side, {}, count_tokens, agree);
  EXPECT_THAT(texts(found), ElementsAre("0 prefill 0, 0:1", "1 decode 1, 1:2"));
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("the first 1 prompt(s) of my side"),
                                        HasSubstr("the first 2 decode step(s) of my side are taken "
                                                  "for a warm-up, because the data agree")));
}

TEST(WarmUp, OfOneGraphShiftsAllCalls) {
  const Recorded golden = torch({"0", "1"});
  const Recorded actual = one_graph({"0", "1", "2"});
  const auto all_alike = [](const RunSide&, const SideStep&) { return size_t{1}; };
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return step.golden.round + 1 == step.actual.round;
  };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, all_alike, agree)),
              ElementsAre("0 prefill 0, 0:1", "1 decode 1, 0:2"));
}

TEST(WarmUp, EndsWhereNumbersOfTokensFitIfDataTellNothing) {
  const Recorded golden = torch({"0"});
  const Recorded actual = two_graphs({"0", "1", "2"}, {"0", "1", "2"}, {});
  const auto count = [](const RunSide& side, const SideStep& step) -> size_t {
    if (side.programs.size() < 2) return 5;
    return step.round == 0 ? 8 : 5;  // the warm-up had a longer prompt
  };
  const auto unknown = [](const Step&) { return std::optional<bool>(); };
  const auto found = align_tokens(golden.side, actual.side, {}, count, unknown);
  EXPECT_THAT(texts(found), ElementsAre("0 prefill 0, 0:1"));
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("because the numbers of tokens agree")));
}

TEST(WarmUp, IsNoStepThatIsWrongAfterAPromptThatIsRight) {
  const Recorded golden = torch({"0", "1", "2"});
  const Recorded actual = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  // The first new word is at fault, and the second one looks like it.
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return step.is_prefill || step.actual.round == 1;
  };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, agree)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 1, 1:0", "2 decode 2, 1:1"));
}

TEST(WarmUp, OfAGraphForWordsAloneIsRoundsThatTheOtherSideDoesNotHave) {
  const Recorded golden = torch({"0", "1"});
  const Recorded actual = two_graphs({"0", "1"}, {"0"}, {"0", "1"});
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return step.is_prefill || step.actual.round == 1;
  };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, agree)),
              ElementsAre("0 prefill 0, 0:0", "1 decode 1, 1:1"));
}

TEST(Tokens, OfAGraphWhosePromptWasNotRecordedAreCountedFromTheFirstWord) {
  const Recorded golden = torch({"0", "1", "2", "3"});
  const Recorded actual = one_graph({"1", "2"});
  const auto count = [](const RunSide& side, const SideStep& step) -> size_t {
    return &side.recording.rounds[step.round] == side.recording.rounds.data() &&
                   side.recording.rounds[0] == "0"
               ? 5
               : 1;
  };
  const auto agree = [](const Step& step) -> std::optional<bool> {
    return !step.is_prefill && step.golden.round == step.actual.round + 2;
  };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count, agree)),
              ElementsAre("2 decode 2, 0:0", "3 decode 3, 0:1"));
}

TEST(Tokens, OfTheOnlyRoundsAreTheSameUnlessTheyWorkedOnSomethingElse) {
  const Recorded golden = one_graph({"0"});
  const Recorded actual = one_graph({"1"});
  const auto other = [](const Step&) -> std::optional<bool> { return false; };
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, other)),
              ElementsAre(HasSubstr("none of them correspond")));
  EXPECT_EQ(texts(align_tokens(golden.side, actual.side, {}, count_tokens, other, true)).size(), 1);
}

TEST(WarmUp, HasAtMostEightRounds) {
  const Recorded golden = torch({"0"});
  const Rounds ten = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const Recorded actual = two_graphs(ten, ten, {});
  const auto agree_from = [&](size_t round) {
    return texts(align_tokens(
        golden.side, actual.side, {}, count_tokens,
        [=](const Step& step) -> std::optional<bool> { return step.actual.round >= round; }));
  };
  EXPECT_THAT(agree_from(8), ElementsAre("0 prefill 0, 0:8"));
  EXPECT_THAT(agree_from(9), ElementsAre("0 prefill 0, 0:0"));
}

TEST(WarmUp, MayBeGoldens) {
  const Recorded golden = two_graphs({"0", "1"}, {"0", "1"}, {"0", "1"});
  const Recorded actual = torch({"0", "1"});
  const auto agree = [](const Step& step) -> std::optional<bool> { return step.golden.round == 1; };
  const auto found = align_tokens(golden.side, actual.side, {}, count_tokens, agree);
  EXPECT_THAT(texts(found), ElementsAre("0 prefill 1, 0:0", "1 decode 1, 0:1"));
  EXPECT_THAT(found->notes,
              ElementsAre(HasSubstr("of the golden side"), HasSubstr("of the golden side")));
}

// An embedding that both graphs use is set up for every call: round 1 is the first word's.
TEST(RoundOf, OperationsThatGraphsShareCountsAllCalls) {
  const Recorded golden = torch({"0", "1", "2"});
  const Recorded actual(kAtbTraits, R"(
    0_Embed
    1_L
      0_x
    2_L
      0_x
    3_Norm
    4_L
      0_x
    5_L
      0_x
    6_Norm
  )",
                        {"0", "1", "2"});
  const auto found = align_tokens(golden.side, actual.side, {}, count_tokens, always);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->steps.size(), 3u);
  const SideStep& second_word = found->steps[2].actual;
  EXPECT_EQ(round_of(actual.side, second_word, actual.tiny.operation("0_Embed")), 2u);
  EXPECT_EQ(round_of(actual.side, second_word, actual.tiny.operation("4_L/0_x")), 1u);
}

TEST(RoundOf, OperationsThatDidNotRunIsNothing) {
  const Recorded run = torch({"0"});
  EXPECT_EQ(round_of(run.side, {0, kNoRound, kNoRound}, 0), std::nullopt);
}

TEST(TokenMap, OfTwoTokensWithOneFolderTakesTheFirstForItsPrompt) {
  const Recorded golden = torch({"0", "1", "2"});
  const Recorded actual = two_graphs({"0", "1"}, {"0", "1"}, {"0", "1"});
  const TokenMap map = {{"0", "1"}, {"1", "1"}, {"2", "0"}};
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, map, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:1", "1 decode 1, 1:1", "2 decode 2, 1:0"));
}

TEST(TokenMap, TakesAFolderWithoutPromptForAWord) {
  const Recorded golden = torch({"0"});
  const Recorded actual = two_graphs({"0", "1"}, {"0"}, {"1"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {{"0", "0"}}, count_tokens, always)),
              ElementsAre("0 prefill 0, 0:0"));
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {{"0", "1"}}, count_tokens, always)),
              ElementsAre("0 decode 0, 1:1"));
}

TEST(TokenMap, SaysWhichRoundIsMissing) {
  const Recorded golden = torch({"0"});
  const Recorded actual = one_graph({"0", "1"});
  const auto error = [&](const TokenMap& map) {
    return texts(align_tokens(golden.side, actual.side, map, count_tokens, always))[0];
  };
  EXPECT_THAT(error({{"7", "0"}}), HasSubstr("has no round 7"));
  EXPECT_THAT(error({{"7", "0"}}), HasSubstr("only [0]"));
  EXPECT_THAT(error({{"0", "9"}}), HasSubstr("only [0, 1]"));
}

TEST(Tokens, OfTwoRoundsNamedOneByOneBelongTogether) {
  const Recorded golden = torch({"3"});
  const Recorded actual = one_graph({"1"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always)),
              ElementsAre("3 prefill 0, 0:0"));
  const Recorded words = two_graphs({"4"}, {}, {"4"});
  EXPECT_THAT(texts(align_tokens(golden.side, words.side, {}, count_tokens, always)),
              ElementsAre("3 decode 0, 1:0"));
}

TEST(Tokens, WithoutCounterpartsAreAnError) {
  const Recorded golden = torch({"0", "1"});
  const Recorded actual = one_graph({"17", "18"});
  EXPECT_THAT(texts(align_tokens(golden.side, actual.side, {}, count_tokens, always))[0],
              HasSubstr("golden has the rounds [0, 1] and my side [17, 18], but none"));
}

}  // namespace
}  // namespace ait::match
