#include "match/segment_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/votes.h"
#include "tiny_segments.h"

namespace ait::match {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Types that say nothing, so that data alone decide.
const char* const kTwoGolden = "a\nb";
const char* const kTwoActual = "0_x\n1_y";

TEST(SegmentMatch, TakesTheNearest) {
  const TinySegments both(kTwoGolden, kTwoActual);
  EXPECT_THAT(both.match({distances({{1.4, 0.01}, {0.02, 1.4}})}), ElementsAre("b=0_x", "a=1_y"));
  EXPECT_THAT(both.match({distances({{1.4, 1.3}, {1.4, 1.4}})}), IsEmpty());
}

TEST(SegmentMatch, WantsTheNearestTwiceAsNearAsTheNext) {
  const TinySegments both("a\nb", "0_x");
  EXPECT_THAT(both.match({distances({{0.1}, {0.21}})}), ElementsAre("a=0_x"));
  EXPECT_THAT(both.match({distances({{0.1}, {0.19}})}), IsEmpty());
}

TEST(SegmentMatch, WantsTheNearestToBeMutual) {
  const TinySegments both("a", "0_x\n1_y");
  EXPECT_THAT(both.match({distances({{0.1, 0.21}})}), ElementsAre("a=0_x"));
  EXPECT_THAT(both.match({distances({{0.1, 0.19}})}), IsEmpty());
}

TEST(SegmentMatch, LetsTheMajorityOfLayersOutvoteAFault) {
  const TinySegments both(kTwoGolden, kTwoActual);
  const Evidence good = distances({{0.01, 1.4}, {1.4, 0.01}});
  // Here the data of 0_x are b's, and those of 1_y nobody's.
  const Evidence faulty = distances({{1.4, 1.4}, {0.01, 1.4}});
  EXPECT_THAT(both.match({good, good, faulty}), ElementsAre("a=0_x", "b=1_y"));
  EXPECT_THAT(both.match({good, faulty, good, good, faulty, good}), ElementsAre("a=0_x", "b=1_y"));
  EXPECT_THAT(both.match({good, faulty}), ElementsAre("b=1_y"));  // one says a, one says b
  EXPECT_THAT(both.match({good, good, good, faulty, faulty}), ElementsAre("b=1_y"));
}

TEST(SegmentMatch, WantsAThirdOfAllLayersToVoteForTheWinner) {
  const TinySegments both("a", "0_x");
  const Evidence good = distances({{0.01}});
  const Evidence silent = distances({{1.4}});
  EXPECT_THAT(both.match({good, silent, silent}), ElementsAre("a=0_x"));
  EXPECT_THAT(both.match({good, silent, silent, silent}), IsEmpty());
}

TEST(SegmentMatch, SaysInHowManyPlacesDataAgree) {
  const TinySegments both("a", "0_x");
  EXPECT_EQ(both.found({distances({{0.02}})}).matches[0].why,
            "the data agree (0.02) in 1 of 1 place looked at");
  const auto match =
      both.found({distances({{0.02}}), distances({{0.01}}), distances({{1.4}})}).matches[0];
  EXPECT_EQ(match.why, "the data agree (0.01) in 2 of 3 places looked at");
  EXPECT_EQ(match.form.distance.value, 0.01);
}

// A tensor and its cast: neither keeps the other from being matched, and of the two the one that
// does the same work is shown.
TEST(SegmentMatch, TakesGoldenKinForNoRivals) {
  const TinySegments both("cast\nproj  Linear", "0_LinearOperation");
  Evidence evidence = distances({{0.010}, {0.011}});
  EXPECT_THAT(both.match({evidence}), ElementsAre("proj=0_LinearOperation?"));  // by type only
  make_golden_kin(evidence, 0, 1);
  EXPECT_THAT(both.match({evidence}), ElementsAre("proj=0_LinearOperation"));
}

TEST(SegmentMatch, PrefersOfKinWhatNeedsNoPuttingTogether) {
  const TinySegments both("a\nb\nc", "0_x");
  Evidence evidence = distances({{0.010}, {0.011}, {0.012}});
  for (const auto& [x, y] : {std::pair(0, 1), {0, 2}, {1, 2}}) make_golden_kin(evidence, x, y);
  EXPECT_THAT(both.match({evidence}), ElementsAre("a=0_x"));  // the nearest
  evidence.pairs[0].whole->golden_ranks = RankUse::kAll;
  EXPECT_THAT(both.match({evidence}), ElementsAre("b=0_x"));
  evidence.pairs[1].whole->fit = Fit::kLastRows;
  EXPECT_THAT(both.match({evidence}), ElementsAre("c=0_x"));
}

// Partial sums on each rank, and the all-reduce that adds them up: both are golden's o_proj.
TEST(SegmentMatch, MatchesKinOfMySideWithTheSame) {
  const TinySegments both("o_proj  Linear", "0_LinearOperation\n1_AllReduceOperation");
  Evidence evidence = distances({{0.010, 0.011}});
  EXPECT_THAT(both.match({evidence}), ElementsAre("o_proj=0_LinearOperation?"));
  make_actual_kin(evidence, 0, 1);
  EXPECT_THAT(both.match({evidence}),
              ElementsAre("o_proj=0_LinearOperation", "o_proj=1_AllReduceOperation"));
}

// Of two operations that compute the same one is at fault, and nothing says which.
TEST(SegmentMatch, DoesNotMatchTwoWorkersWithTheSame) {
  const TinySegments both("k  Linear", "0_LinearOperation\n1_LinearOperation");
  Evidence kin = distances({{0.010, 0.011}});
  make_actual_kin(kin, 0, 1);
  EXPECT_THAT(both.match({kin, kin}), IsEmpty());
  EXPECT_THAT(both.match({distances({{0, 0}})}), IsEmpty());
  Evidence equal = distances({{0.01, 0.01}});
  equal.actual[1].content = equal.actual[0].content;
  EXPECT_THAT(both.match({equal}), IsEmpty());
}

// A gradient to which hardly anything is added is as near to the sum as rounding would be. Names
// say what the sum is, and it is nearer.
TEST(SegmentMatch, TakesNothingForWhatIsKnownToBeAnotherAndNearerToIt) {
  const TinySegments both("block", "0_x\n1_y");
  const SettledValues by_name = {{0, 0}};
  Evidence off = distances({{0, 0.004}});
  make_actual_kin(off, 0, 1);
  EXPECT_THAT(both.match({off}, {}, by_name), IsEmpty());
  Evidence near = distances({{0.003, 0.004}});
  make_actual_kin(near, 0, 1);
  EXPECT_THAT(both.match({near}, {}, by_name), ElementsAre("block=1_y"));
  // Where it is so in one of many layers, that one is at fault.
  Evidence same = distances({{0, 0}});
  make_actual_kin(same, 0, 1);
  EXPECT_THAT(both.match({same, off, same}, {}, by_name), ElementsAre("block=1_y"));
  // What passes data on is what it was given, or wrong.
  const TinySegments moved("block", "0_x\n1_AllReduceOperation");
  EXPECT_THAT(moved.match({off}, {}, by_name), ElementsAre("block=1_AllReduceOperation"));
}

// In one layer k was loaded for v. The others know which is which.
TEST(SegmentMatch, TellsTwoWorkersWithTheSameByOtherLayers) {
  const TinySegments both("k  Linear\nv  Linear", "0_LinearOperation\n1_LinearOperation");
  Evidence mistaken = distances({{0.01, 0.01}, {1.4, 1.4}});
  make_actual_kin(mistaken, 0, 1);
  const Evidence sound = distances({{0.01, 1.4}, {1.4, 0.01}});
  EXPECT_THAT(both.match({mistaken, sound}),
              ElementsAre("k=0_LinearOperation", "v=1_LinearOperation"));
  // Where it is so in all, order does.
  mistaken.actual[1].content = mistaken.actual[0].content;
  EXPECT_THAT(both.match({mistaken}), ElementsAre("k=0_LinearOperation?", "v=1_LinearOperation?"));
}

TEST(SegmentMatch, PairsEqualsOfBothSidesInTheirOrder) {
  const TinySegments both("k  Linear\nv  Linear", "0_LinearOperation\n1_LinearOperation");
  Evidence evidence = distances({{0.01, 0.01}, {0.01, 0.01}});
  evidence.golden[1].content = evidence.golden[0].content;
  evidence.actual[1].content = evidence.actual[0].content;
  EXPECT_THAT(both.match({evidence}), ElementsAre("k=0_LinearOperation?", "v=1_LinearOperation?"));
  EXPECT_EQ(both.found({evidence}).matches[1].why,
            "the data agree (0.01) in 1 of 1 place looked at; 2 of each side hold that, in this "
            "order");
}

TEST(SegmentMatch, GivesAGoldenValueToWhomMostLayersGiveIt) {
  const TinySegments both("a", "0_x\n1_y");
  const Evidence x = distances({{0.01, 1.4}});
  const Evidence y = distances({{1.4, 0.01}});
  EXPECT_THAT(both.match({x, y, y}), ElementsAre("a=1_y"));
  EXPECT_THAT(both.match({x, x, y}), ElementsAre("a=0_x"));
}

// down_proj's output is mlp's, too.
TEST(SegmentMatch, MatchesLeavesWithLeavesAndContainersWithContainers) {
  const TinySegments both(R"(
    mlp
      down_proj  in
  )",
                          R"(
    0_Mlp
      0_LinearOperation
      1_AllReduceOperation
  )");
  // Values: mlp, input of down_proj, down_proj; 0_Mlp, 0_Linear, 1_AllReduce.
  Evidence evidence = distances({{0.01, 0.01, 0.01}, {1.4, 1.4, 1.4}, {0.01, 0.01, 0.01}});
  evidence.golden[2].content = evidence.golden[0].content;
  evidence.actual[1].content = evidence.actual[2].content = evidence.actual[0].content;
  EXPECT_THAT(both.match({evidence}),
              ElementsAre("mlp=0_Mlp", "mlp.down_proj=0_Mlp/0_LinearOperation",
                          "mlp.down_proj=0_Mlp/1_AllReduceOperation"));
}

TEST(SegmentMatch, ShowsAnOutputBeforeAnInputThatHoldsTheSame) {
  const TinySegments both("norm  in\nlinear  in", "0_x");
  // Values: input of norm, norm, input of linear, linear.
  Evidence evidence = distances({{1.4}, {0.01}, {0.01}, {1.4}});
  evidence.golden[2].content = evidence.golden[1].content;
  const SegmentMatch found = both.found({evidence});
  EXPECT_THAT(both.match({evidence}), ElementsAre("norm=0_x"));
  EXPECT_TRUE(found.golden_is_copy[2]);
  EXPECT_FALSE(found.golden_is_copy[0]);
  EXPECT_EQ(found.golden_alone[2], "the same data are compared elsewhere.");
}

TEST(SegmentMatch, FindsSeveralPartsInOne) {
  const TinySegments both("q\nk", "0_Linear");
  Evidence evidence = distances({{kOtherSize}, {kOtherSize}});
  add_part(evidence, 0, 0, 0);
  add_part(evidence, 1, 0, 16);
  const SegmentMatch found = both.found({evidence});
  ASSERT_EQ(found.matches.size(), 2u);
  EXPECT_EQ(found.matches[1].form.actual.first, 16);
  EXPECT_EQ(found.matches[1].why, "a part of it agrees (0.01) in 1 of 1 place looked at");
}

TEST(SegmentMatch, WantsMoreThanHalfOfTheLayersToSeeAPartAtTheSameColumns) {
  const TinySegments both("q", "0_Linear");
  const Evidence none = distances({{kOtherSize}});
  Evidence here = none;
  Evidence there = none;
  add_part(here, 0, 0, 0);
  add_part(there, 0, 0, 48);
  EXPECT_THAT(both.match({here, here, none}), ElementsAre("q=0_Linear"));
  EXPECT_THAT(both.match({here, none}), IsEmpty());
  EXPECT_THAT(both.match({here, here, there}), ElementsAre("q=0_Linear"));
  EXPECT_THAT(both.match({here, here, here, there, there}), IsEmpty());  // no two thirds
  EXPECT_EQ(both.found({there, here, here}).matches[0].form.actual.first, 0);
}

// Two rows of 64 columns, which two experts made of one token, can be taken for one row of 128.
TEST(SegmentMatch, TakesAPeriodAndAWidthForTheSame) {
  const TinySegments both("a", "0_x");
  Evidence prompt = distances({{kOtherSize}});
  Evidence word = distances({{kOtherSize}});
  add_part(prompt, 0, 0, 16);
  add_part(word, 0, 0, 16);
  word.pairs[0].part->actual.columns = 128;
  word.pairs[0].part->actual.period = 64;
  const auto found = both.found({word, prompt}).matches;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].form.actual.columns, 64);
  word.pairs[0].part->actual.period = 32;
  EXPECT_THAT(both.match({word, prompt}), IsEmpty());
}

// Where what comes before it is wrong, a part cannot be seen.
TEST(SegmentMatch, AsksOnlyLayersThatCouldSeeAPart) {
  const TinySegments both("norm\nq", "0_Norm\n1_Linear");
  Evidence sound = distances({{0.01, kOtherSize}, {kOtherSize, kOtherSize}});
  add_part(sound, 1, 1, 16);
  const Evidence unseen = distances({{0.01, kOtherSize}, {kOtherSize, kOtherSize}});
  const Evidence wrong = distances({{1.4, kOtherSize}, {kOtherSize, kOtherSize}});
  EXPECT_THAT(both.match({sound, wrong, wrong}), ElementsAre("norm=0_Norm", "q=1_Linear"));
  EXPECT_THAT(both.match({sound, unseen, wrong}), ElementsAre("norm=0_Norm"));
}

TEST(SegmentMatch, SeeksNoPartsWhereThereIsAWhole) {
  const TinySegments both("q\nfused", "0_Linear");
  Evidence evidence = distances({{kOtherSize}, {0.01}});
  add_part(evidence, 0, 0, 0);
  EXPECT_THAT(both.match({evidence}), ElementsAre("fused=0_Linear"));
}

TEST(SegmentMatch, SeeksNoPartsInACache) {
  Evidence evidence = distances({{kOtherSize}});
  add_part(evidence, 0, 0, 0);
  EXPECT_THAT(TinySegments("k", "0_ReshapeAndCacheOperation").match({evidence}), IsEmpty());
  EXPECT_THAT(TinySegments("k", "0_x").match({evidence}), ElementsAre("k=0_x"));
}

// k_proj is columns of the fused projection, and only nearly what the rotary embedding makes of it.
TEST(SegmentMatch, TakesAPartThatIsMuchNearerThanAWhole) {
  const TinySegments both("k", "0_Fused\n1_Rope");
  Evidence evidence = distances({{kOtherSize, 0.1}});
  EXPECT_THAT(both.match({evidence}), ElementsAre("k=1_Rope"));
  add_part(evidence, 0, 0, 16, 0.06);
  EXPECT_THAT(both.match({evidence}), ElementsAre("k=0_Fused", "k=1_Rope"));
  add_part(evidence, 0, 0, 16, 0.04);
  EXPECT_THAT(both.match({evidence}), ElementsAre("k=0_Fused"));
}

TEST(SegmentMatch, TakesASumThatHalfOfTheLayersSee) {
  const TinySegments both("a\nb\nc", "0_x");
  const Evidence none = distances({{1.4}, {1.4}, {1.4}});
  Evidence seen = none;
  seen.sums.push_back({0, 1, 0, form_at(0.01)});
  Evidence other = none;
  other.sums.push_back({0, 2, 0, form_at(0.01)});
  EXPECT_THAT(both.match({seen, none}), ElementsAre("a+b=0_x"));
  EXPECT_THAT(both.match({seen, none, none}), IsEmpty());
  EXPECT_THAT(both.match({other, seen, seen}), ElementsAre("a+b=0_x"));
  EXPECT_EQ(both.found({seen}).matches[0].why, "the sum of two golden tensors agrees (0.01)");
}

TEST(SegmentMatch, FillsGapsByTypes) {
  const TinySegments both("norm  LlamaRMSNorm\nlinear  Linear",
                          "0_RmsNormOperation\n1_LinearOperation");
  Evidence evidence = distances({{0.9, 1.4}, {1.4, 0.01}});
  evidence.pairs[0].whole->actual_ranks = RankUse::kAll;
  EXPECT_THAT(both.match({evidence}),
              ElementsAre("norm=0_RmsNormOperation?", "linear=1_LinearOperation"));
  // Its form is the best that data know of, however bad.
  EXPECT_EQ(both.found({evidence}).matches[0].form.actual_ranks, RankUse::kAll);
  EXPECT_THAT(both.match({}), ElementsAre("norm=0_RmsNormOperation?", "linear=1_LinearOperation?"));
  EXPECT_EQ(both.found({}).matches[0].form.fit, Fit::kLastRows);
}

TEST(SegmentMatch, GivesWhatHoldsTheSameAsATypedPairToItsPartner) {
  const TinySegments both("linear  Linear", R"(
    0_Layer
      0_LinearOperation
      1_AllReduceOperation
  )");
  Evidence evidence = distances({{1.4, 1.4, 1.4}});
  evidence.actual[2].content = evidence.actual[1].content;
  EXPECT_THAT(both.match({evidence}), ElementsAre("linear=0_Layer/0_LinearOperation?",
                                                  "linear=0_Layer/1_AllReduceOperation?"));
}

TEST(SegmentMatch, SaysWhyAValueIsAlone) {
  const TinySegments both("a\nb", "0_w\n1_x\n2_y\n3_z");
  Evidence evidence = distances(
      {{1.2, kOtherSize, kOtherSize, kOtherSize}, {1.4, kOtherSize, kOtherSize, kOtherSize}});
  evidence.golden[1].content = 0;
  evidence.actual[2].content = 0;
  evidence.actual[3].is_float = false;
  const SegmentMatch found = both.found({evidence});
  EXPECT_THAT(found.golden_alone,
              ElementsAre("no tensor of my-path agrees with it.",
                          "it cannot be recognised by its values: they are all the same, too few, "
                          "or could not be read as rows of tokens."));
  EXPECT_THAT(
      found.actual_alone,
      ElementsAre(
          "no tensor of golden-path agrees with it (the relative distance to the nearest is 1).",
          "golden-path has no tensor of its size.",
          "it cannot be recognised by its values: they are all the same, too few, or could not be "
          "read as rows of tokens.",
          "it holds quantised values or integers, and golden-path has none to compare with."));
}

TEST(SegmentMatch, ObeysAMappingFileWhateverDataSay) {
  const TinySegments both("a  Aa\nb  Bb", "0_Foo\n1_Bar");
  const Evidence evidence = distances({{0.01, 1.4}, {1.4, 0.01}});
  EXPECT_THAT(both.match({evidence}), ElementsAre("a=0_Foo", "b=1_Bar"));
  EXPECT_THAT(both.match({evidence}, {{"Foo", "Cc", "", ""}}), ElementsAre("b=1_Bar"));
  EXPECT_THAT(both.match({evidence}, {{"Foo", "Cc", "", ""}, {"Foo", "Aa", "", ""}}),
              ElementsAre("a=0_Foo", "b=1_Bar"));
  // Parts, too.
  Evidence part = distances({{kOtherSize, 1.4}, {kOtherSize, 1.4}});
  add_part(part, 0, 0, 16);
  EXPECT_THAT(both.match({part}), ElementsAre("a=0_Foo"));
  EXPECT_THAT(both.match({part}, {{"Foo", "Cc", "", ""}}), IsEmpty());
}

TEST(MatchProblem, BindsTypesToThoseThatAreListed) {
  const std::vector<TypeMapping> mappings = {{"Foo", "Cc", "", ""}};
  const TinySegments both("a  Aa in\nc  Cc in", "0_Foo\n1_Bar");
  const MatchProblem problem(both.golden, both.actual, {}, mappings);
  EXPECT_FALSE(problem.is_allowed(0, 0));  // what goes into a
  EXPECT_FALSE(problem.is_allowed(1, 0));  // what a puts out
  EXPECT_TRUE(problem.is_allowed(2, 0));   // what goes into c
  EXPECT_TRUE(problem.is_allowed(3, 0));
  EXPECT_TRUE(problem.is_allowed(3, 1));  // a type of modules may have others, too
  EXPECT_EQ(problem.listed_for_actual(0), "Cc");
  EXPECT_EQ(problem.listed_for_golden(3), "");
}

TEST(MatchProblem, BindsTensorsThatAreNamedOnBothSides) {
  const std::vector<TypeMapping> mappings = {{"Foo", "Cc", "outtensor0", "output_0"}};
  const TinySegments both("a  Aa in\nc  Cc in", "0_Foo\n1_Bar");
  const MatchProblem problem(both.golden, both.actual, {}, mappings);
  EXPECT_TRUE(problem.is_allowed(3, 0));
  EXPECT_TRUE(problem.is_mapped(3, 0));
  EXPECT_FALSE(problem.is_allowed(1, 0));
  EXPECT_FALSE(problem.is_allowed(2, 0));  // what goes into c is not what it puts out
  EXPECT_FALSE(problem.is_allowed(3, 1));
  EXPECT_TRUE(problem.is_allowed(1, 1));
  EXPECT_EQ(problem.listed_for_actual(0), "Cc_output_0");
  EXPECT_EQ(problem.listed_for_golden(3), "Foo_outtensor0");
}

TEST(MatchProblem, LeavesTypesOfOneToolFree) {
  const std::vector<TypeMapping> mappings = {{"Foo", "Cc", "", ""}};
  const TinySegments libraries("0_Foo", "0_Foo", capture::kAtbTraits);
  EXPECT_TRUE(MatchProblem(libraries.golden, libraries.actual, {}, mappings).is_allowed(0, 0));
  const TinySegments turned("0_Foo", "a  Aa", capture::kAtbTraits, capture::kTorchTraits);
  EXPECT_FALSE(MatchProblem(turned.golden, turned.actual, {}, mappings).is_allowed(0, 0));
}

TEST(ValueClasses, HoldTheSameInAllEvidence) {
  const TinySegments both("a\nb\nc", "0_x");
  Evidence first = distances({{1.4}, {1.4}, {1.4}});
  first.golden[1].content = first.golden[2].content = first.golden[0].content;
  Evidence second = first;
  second.golden[2].content = 77;
  const std::vector<Evidence> all = {first, second};
  const ValueClasses classes = classes_of(both.golden, all, &Evidence::golden);
  EXPECT_THAT(classes.of, ElementsAre(0, 0, 1));
  EXPECT_TRUE(classes.has_data[0]);
}

TEST(ValueClasses, WithoutDataAreWhatATopologyNamesTheSame) {
  const TinySegments both("a\nb", "0_x  y=h\n1_y  y=h\n2_z  y=other\n3_v\n4_w");
  const ValueClasses named = classes_of(both.actual, {}, &Evidence::actual);
  EXPECT_THAT(named.of, ElementsAre(0, 0, 1, 2, 3));
  EXPECT_FALSE(named.has_data[0]);
}

TEST(ValueClasses, ShowAnOutputOfALeaf) {
  const TinySegments both(R"(
    outer
      inner
        leaf  in
  )",
                          "0_x");
  // Values: outer, inner, input of leaf, leaf.
  EXPECT_EQ(shown_member_of(both.golden, {0, 1, 2, 3}), 3u);
  EXPECT_EQ(shown_member_of(both.golden, {0, 1, 2}), 1u);  // the innermost
  EXPECT_EQ(shown_member_of(both.golden, {2}), 2u);
  EXPECT_EQ(representative_of(both.golden, {0, 1, 2, 3}), 3u);
  EXPECT_EQ(representative_of(both.golden, {0, 1, 2}), 0u);
}

TEST(Tally, WantsTwoThirds) {
  Tally tally;
  EXPECT_EQ(tally.winner(), nullptr);
  tally.vote(7, form_at(0.02));
  tally.vote(3, form_at(0.5));
  EXPECT_EQ(tally.winner(), nullptr);
  tally.vote(7, form_at(0.01));
  ASSERT_NE(tally.winner(), nullptr);
  EXPECT_EQ(tally.winner()->number, 7u);
  EXPECT_EQ(tally.winner()->votes, 2u);
  EXPECT_EQ(tally.winner()->form.distance.value, 0.01);
}

// In the first round 0_x is like a, in the second it is not, though all that follows is as it
// should be: what turns queries does nothing for the first token.
TEST(SegmentMatch, DropsWhatAgreesByCoincidence) {
  const TinySegments both("a\nb\nc\nd", "0_w\n1_x\n2_y\n3_z");
  const auto table = [](double first) {
    return distances({{first, 1.4, 1.4, 1.4},
                      {1.4, 0.01, 1.4, 1.4},
                      {1.4, 1.4, 0.01, 1.4},
                      {1.4, 1.4, 1.4, 0.01}});
  };
  Evidence agrees = table(0.01);
  Evidence differs = table(0.4);
  EXPECT_THAT(both.match({agrees, differs}), ElementsAre("a=0_w", "b=1_x", "c=2_y", "d=3_z"));
  agrees.layer = differs.layer = 0;
  EXPECT_THAT(both.match({agrees, differs}), ElementsAre("b=1_x", "c=2_y", "d=3_z"));
  differs.layer = 1;  // where a fault may be
  EXPECT_THAT(both.match({agrees, differs}), ElementsAre("a=0_w", "b=1_x", "c=2_y", "d=3_z"));
}

// An added bias of zeros.
TEST(SegmentMatch, PairsBothOfTwoThatComputeTheSame) {
  TinySegments both("q  Linear", "0_LinearOperation\n1_ElewiseOperation");
  both.actual_values[1].kind = capture::OpKind::kAdd;
  Evidence evidence = distances({{0.01, 0.01}});
  evidence.actual[1].content = evidence.actual[0].content;
  EXPECT_THAT(both.match({evidence}), ElementsAre("q=0_LinearOperation", "q=1_ElewiseOperation?"));
}

// A skipped activation has the results of what it should have worked on; golden's own is left.
TEST(SegmentMatch, PairsNoEqualResultWhereGoldenDoesThatWork) {
  TinySegments both("gate  Linear\nact  SiLU\nother  SiLU",
                    "0_LinearOperation\n1_ActivationOperation");
  Evidence evidence = distances({{0.01, 0.01}, {1.4, 1.4}, {1.4, 1.4}});
  evidence.actual[1].content = evidence.actual[0].content;
  EXPECT_THAT(both.match({evidence}), ElementsAre("gate=0_LinearOperation"));
}

TEST(SegmentMatch, IsCertainOnlyOfWhatIsNear) {
  const TinySegments both("a", "0_x");
  EXPECT_THAT(both.match({distances({{0.09}})}), ElementsAre("a=0_x"));
  EXPECT_THAT(both.match({distances({{0.15}})}), ElementsAre("a=0_x?"));
  EXPECT_THAT(both.match({distances({{0.4}})}), IsEmpty());  // turned keys and k_proj
}

}  // namespace
}  // namespace ait::match
