#include "match/by_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_segments.h"

namespace ait::match {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Given {
  std::vector<std::pair<uint32_t, uint32_t>> settled = {};  // values, golden and mine
  std::vector<TypeMapping> mappings = {};
  std::vector<Evidence> evidence = {};
};

std::vector<TypedPair> pairs_of(const TinySegments& both, const Given& given) {
  std::vector<Match> matches;
  for (const auto& [golden, actual] : given.settled) {
    matches.emplace_back();
    matches.back().golden = golden;
    matches.back().actual = actual;
  }
  return pair_by_types({both.golden, both.actual, given.evidence, given.mappings}, matches);
}

// "golden=mine" in the order in which they are found.
std::vector<std::string> pairs(const TinySegments& both, const Given& given = {}) {
  std::vector<std::string> out;
  for (const TypedPair& pair : pairs_of(both, given))
    out.push_back(TinySegments::name(both.golden, pair.golden) + "=" +
                  TinySegments::name(both.actual, pair.actual));
  return out;
}

TEST(ByTypes, PairsTheSameKindOfWorkInOrder) {
  const TinySegments both("n1  LlamaRMSNorm\nproj  Linear\nn2  LlamaRMSNorm\nother",
                          "0_RmsNormOperation\n1_Mystery\n2_LinearOperation\n3_RmsNormOperation");
  EXPECT_THAT(pairs(both), ElementsAre("n1=0_RmsNormOperation", "n2=3_RmsNormOperation",
                                       "proj=2_LinearOperation"));
  EXPECT_EQ(pairs_of(both, {})[0].why, "types and order fit");
}

TEST(ByTypes, PairsNothingWhereNumbersDiffer) {
  const TinySegments both("a  Linear\nb  Linear", "0_LinearOperation");
  EXPECT_THAT(pairs(both), IsEmpty());
}

// b is settled with 2: before it golden has one and my side two, after it both have one.
TEST(ByTypes, PairsBetweenWhatIsSettled) {
  const TinySegments both(
      "a  Linear\nb  Linear\nc  Linear",
      "0_LinearOperation\n1_LinearOperation\n2_LinearOperation\n3_LinearOperation");
  EXPECT_THAT(pairs(both), IsEmpty());
  EXPECT_THAT(pairs(both, {.settled = {{1, 2}}}), ElementsAre("c=3_LinearOperation"));
  // c with 0 crosses b with 2, so it divides nothing; but 0 is taken, and before b one is left on
  // each side.
  EXPECT_THAT(pairs(both, {.settled = {{1, 2}, {2, 0}}}), ElementsAre("a=1_LinearOperation"));
}

TEST(ByTypes, DoesNotGoByWhatAPartIsSettledWith) {
  const TinySegments both("a  Linear\nb  Linear", "0_LinearOperation\n1_LinearOperation");
  Match part;
  part.golden = 0;
  part.actual = 1;
  EXPECT_THAT(pairs(both, {.settled = {{0, 1}}}), IsEmpty());  // b before, 0 behind
  part.form.actual.taken = 16;
  const std::vector<Match> matches = {part};
  const auto found = pair_by_types({both.golden, both.actual, {}, {}}, matches);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].golden, 1u);
  EXPECT_EQ(found[0].actual, 0u);
}

TEST(ByTypes, TakesContainersForNoWorkers) {
  const TinySegments both("a  Linear", R"(
    0_LinearOperation
      0_LinearOperation
    1_x
    2_x
  )");
  EXPECT_THAT(pairs(both), ElementsAre("a=0_LinearOperation/0_LinearOperation"));
}

TEST(ByTypes, WantsSizesThatFit) {
  const TinySegments both("a  Linear", "0_LinearOperation");
  const auto with_columns = [&](size_t golden, size_t actual, size_t ranks) {
    Evidence evidence = distances({{kOtherSize}});
    evidence.golden[0].columns = golden;
    evidence.actual[0].columns = actual;
    TinySegments sides("a  Linear", "0_LinearOperation");
    sides.actual_run.recording.ranks.resize(ranks);
    return pairs(sides, {.evidence = {evidence}}).size();
  };
  EXPECT_EQ(with_columns(64, 64, 1), 1u);
  EXPECT_EQ(with_columns(64, 32, 1), 0u);
  EXPECT_EQ(with_columns(64, 32, 2), 1u);  // shards
  EXPECT_EQ(with_columns(64, 0, 1), 1u);   // not known
}

// norm and proj are paired by order. What feeds proj is an addition that golden has only as proj's
// input.
TEST(ByTypes, FollowsDataFlow) {
  const std::string golden = "proj  Linear in";
  EXPECT_THAT(pairs(TinySegments(golden, "0_Mystery  y=h\n1_LinearOperation  x=h")),
              ElementsAre("proj=1_LinearOperation", "<proj=0_Mystery"));
  EXPECT_EQ(pairs_of(TinySegments(golden, "0_Mystery  y=h\n1_LinearOperation  x=h"), {})[1].why,
            "it is the input of what corresponds to proj");
  // Another tensor, nobody says, a quantised one, integers.
  EXPECT_THAT(pairs(TinySegments(golden, "0_Mystery  y=g\n1_LinearOperation  x=h")).size(), 1u);
  EXPECT_THAT(pairs(TinySegments(golden, "0_Mystery\n1_LinearOperation")).size(), 1u);
  EXPECT_THAT(pairs(TinySegments(golden, "0_QuantOperation  y=h\n1_LinearOperation  x=h")).size(),
              1u);
  Evidence integers = distances({{kOtherSize, kOtherSize}, {kOtherSize, kOtherSize}});
  integers.actual[0].is_float = false;
  EXPECT_THAT(pairs(TinySegments(golden, "0_Mystery  y=h\n1_LinearOperation  x=h"),
                    {.evidence = {integers}})
                  .size(),
              1u);
}

TEST(ByTypes, FollowsDataFlowToTheLastLeafThatWrote) {
  const TinySegments both("proj  Linear in", R"(
    0_Early  y=h
    1_Block  y=h
      0_Late  y=h
    2_LinearOperation  x=h
  )");
  EXPECT_THAT(pairs(both), ElementsAre("proj=2_LinearOperation", "<proj=1_Block/0_Late"));
}

// The attention holds more than half of everything, and is not what the layer puts out.
TEST(ByTypes, PairsLayersAndNotWhatHoldsMostOfThem) {
  const std::string golden = R"(
    model
      layer
        attention
          q
          k
          v
          o
        norm  RMSNorm none
        act   SiLU none
  )";
  const std::string actual = R"(
    0_Layer
      0_Attend
        0_q
        1_k
        2_v
        3_o
      1_RmsNormOperation  none
      2_ActivationOperation  none
    1_end
  )";
  const TinySegments both(golden, actual);
  EXPECT_THAT(pairs(both), ElementsAre("model.layer=0_Layer"));
  EXPECT_EQ(pairs_of(both, {})[0].why, "both are what the layer puts out");
  EXPECT_THAT(pairs(both, {.settled = {{1, 1}}}), IsEmpty());
  // Without types nothing tells a layer from its attention.
  EXPECT_THAT(pairs(TinySegments("layer\n  block\n    x\n    y", "0_l\n  0_b\n    0_x\n    1_y")),
              IsEmpty());
}

// Widths 64, 32, 32 and 64, of which my side has the first three as one.
TEST(ByTypes, TellsFusedProjectionsBySizes) {
  const TinySegments both("q  Linear\nk  Linear\nv  Linear\no  Linear",
                          "0_LinearOperation\n1_LinearOperation");
  Evidence sizes(4, 2);
  const size_t golden[] = {64, 32, 32, 64};
  for (size_t i = 0; i < 4; ++i) sizes.golden[i].columns = golden[i];
  sizes.actual[0].columns = 128;
  sizes.actual[1].columns = 64;
  EXPECT_THAT(pairs(both, {.evidence = {sizes}}), ElementsAre("o=1_LinearOperation"));
  sizes.actual[0].columns = 96;  // nothing fits
  EXPECT_THAT(pairs(both, {.evidence = {sizes}}), IsEmpty());
}

TEST(ByTypes, TakesAProjectionWithAnAdapterForOne) {
  const TinySegments both(R"(
    q  Linear
      base  Linear
      down  Linear
      up    Linear
    k  Linear
  )",
                          "0_LinearOperation\n1_LinearOperation");
  EXPECT_THAT(pairs(both), ElementsAre("q=0_LinearOperation", "k=1_LinearOperation"));
}

// The base of q is found by data, and my side has no adapter: k and v are still in order.
TEST(ByTypes, TakesTheBaseOfAProjectionWithAnAdapterForTheWhole) {
  const TinySegments both(R"(
    q  Linear
      base  Linear
      down  Linear
    k  Linear
  )",
                          "0_LinearOperation\n1_LinearOperation");
  EXPECT_THAT(pairs(both, {.settled = {{1, 0}}}), ElementsAre("k=1_LinearOperation"));
}

Evidence with_columns(const std::vector<size_t>& golden, const std::vector<size_t>& actual) {
  Evidence out(golden.size(), actual.size());
  for (size_t i = 0; i < golden.size(); ++i) out.golden[i].columns = golden[i];
  for (size_t i = 0; i < actual.size(); ++i) out.actual[i].columns = actual[i];
  return out;
}

TEST(ByTypes, GivesWhatPassesOnAResultToItsPartner) {
  const std::string golden = "o  Linear";
  const Evidence sizes = with_columns({64}, {64, 64});
  for (const std::string actual : {"0_LinearOperation  y=p\n1_AllReduceOperation  x=p",
                                   "0_LinearOperation\n1_AllReduceOperation"}) {
    const TinySegments both(golden, actual);
    EXPECT_THAT(pairs(both, {.evidence = {sizes}}),
                ElementsAre("o=0_LinearOperation", "o=1_AllReduceOperation"));
    EXPECT_EQ(pairs_of(both, {.evidence = {sizes}})[1].why, "it passes on what corresponds to o");
    // Of another width it is something else.
    EXPECT_THAT(pairs(both, {.evidence = {with_columns({64}, {64, 32})}}).size(), 1u);
  }
  // It reads something else; something else stands before it.
  EXPECT_THAT(pairs(TinySegments(golden, "0_LinearOperation  y=p\n1_AllReduceOperation  x=q"),
                    {.evidence = {sizes}})
                  .size(),
              1u);
  EXPECT_THAT(pairs(TinySegments(golden, "0_LinearOperation\n1_Mystery\n2_AllReduceOperation"),
                    {.evidence = {with_columns({64}, {64, 64, 64})}})
                  .size(),
              1u);
  // What is split off is not all of it.
  EXPECT_THAT(pairs(TinySegments(golden, "0_LinearOperation  y=p\n1_SplitOperation  x=p"),
                    {.evidence = {sizes}})
                  .size(),
              1u);
}

TEST(ByTypes, FollowsWhatStandsBeforeWhereNobodyNamesTensors) {
  const std::string golden = "proj  Linear in";
  EXPECT_THAT(pairs(TinySegments(golden, "0_SelfAttentionOperation\n1_LinearOperation")),
              ElementsAre("proj=1_LinearOperation", "<proj=0_SelfAttentionOperation"));
  EXPECT_THAT(pairs(TinySegments(golden, "0_RopeOperation\n1_LinearOperation")),
              ElementsAre("proj=1_LinearOperation"));
  // Integers are nothing that golden has: what was made of them is looked for.
  Evidence integers = with_columns({64, 64}, {64, 64, 64});
  integers.actual[1].is_float = false;
  EXPECT_THAT(
      pairs(TinySegments(golden, "0_SelfAttentionOperation\n1_ElewiseOperation\n2_LinearOperation"),
            {.evidence = {integers}}),
      ElementsAre("proj=2_LinearOperation", "<proj=0_SelfAttentionOperation"));
}

// Two ranks: 48 columns of a fused projection are 96, those of a partial sum stay 48. Otherwise q
// could be the first, and k, v and o, 96 in all, the second.
TEST(ByTypes, CountsColumnsOfPartialSumsOnce) {
  TinySegments both("q  Linear\nk  Linear\nv  Linear\no  Linear",
                    "0_LinearOperation\n1_LinearOperation\n2_AllReduceOperation");
  both.actual_run.recording.ranks.resize(2);
  const Evidence sizes = with_columns({48, 24, 24, 48}, {48, 48, 48});
  EXPECT_THAT(pairs(both, {.evidence = {sizes}}),
              ElementsAre("o=1_LinearOperation", "o=2_AllReduceOperation"));
  TinySegments nobody_adds("q  Linear\nk  Linear\nv  Linear\no  Linear",
                           "0_LinearOperation\n1_LinearOperation");
  nobody_adds.actual_run.recording.ranks.resize(2);
  EXPECT_THAT(pairs(nobody_adds, {.evidence = {with_columns({48, 24, 24, 48}, {48, 48})}}),
              IsEmpty());
}

TEST(ByTypes, PairsModulesOfTheSameClassAndWhatElseTheyPutOut) {
  const TinySegments both("a  Router\nb  Block", "x  Router\ny  Block", capture::kTorchTraits,
                          capture::kTorchTraits);
  EXPECT_THAT(pairs(both), ElementsAre("b=y", "a=x"));
  EXPECT_EQ(pairs_of(both, {})[0].why, "classes of modules and order fit");
  const TinySegments several("a  Router\nb  Router", "x  Router", capture::kTorchTraits,
                             capture::kTorchTraits);
  EXPECT_THAT(pairs(several), IsEmpty());
}

// The cosines of the first position are ones, its sines zeros.
TEST(ByTypes, PairsTablesOfOneNumberThatNoOtherTableHolds) {
  const TinySegments both("cos  Rotary\nsin  Rotary\nzeros  Linear",
                          "0_GatherOperation\n1_GatherOperation\n2_GatherOperation");
  Evidence tables = with_columns({16, 16, 16}, {16, 16, 16});
  tables.golden[0].constant = tables.actual[0].constant = 1;
  tables.golden[1].constant = tables.golden[2].constant = tables.actual[1].constant = 0;
  EXPECT_THAT(pairs(both, {.evidence = {tables}}),
              ElementsAre("cos=0_GatherOperation", "sin=1_GatherOperation"));
  tables.actual[2].constant = 0;  // which of the two?
  EXPECT_THAT(pairs(both, {.evidence = {tables}}), ElementsAre("cos=0_GatherOperation"));
}

// The library gathers rows of a table for words and last rows for the head.
TEST(ByTypes, TakesGatheringForAnEmbeddingOnlyInOne) {
  const TinySegments both("words  Embedding",
                          "0_WordEmbedding  none\n  0_GatherOperation\n1_Head  "
                          "none\n  0_GatherOperation");
  EXPECT_THAT(pairs(both), ElementsAre("words=0_WordEmbedding/0_GatherOperation"));
}

TEST(ByTypes, FollowsAMappingFileInOrder) {
  const TinySegments both("a  Block\nb  Other\nc  Block", "0_DemoLayer\n1_x\n2_DemoLayer");
  const std::vector<TypeMapping> mappings = {{"Demo", "Block", "", ""}};
  EXPECT_THAT(pairs(both), IsEmpty());
  EXPECT_THAT(pairs(both, {.mappings = mappings}), ElementsAre("a=0_DemoLayer", "c=2_DemoLayer"));
  EXPECT_EQ(pairs_of(both, {.mappings = mappings})[0].why,
            "the mapping file says so, and the order fits");
}

TEST(ByTypes, TakesTheTensorThatAMappingFileNames) {
  const TinySegments both("a  Block in", "0_DemoLayer");
  EXPECT_THAT(pairs(both, {.mappings = {{"Demo", "Block", "", "input_0"}}}),
              ElementsAre("<a=0_DemoLayer"));
  EXPECT_THAT(pairs(both, {.mappings = {{"Demo", "Block", "outtensor0", "output"}}}),
              ElementsAre("a=0_DemoLayer"));
  EXPECT_THAT(pairs(both, {.mappings = {{"Demo", "Block", "outtensor1", ""}}}), IsEmpty());
}

TEST(ByTypes, PairsNoTypesThatAMappingFileExcludes) {
  const TinySegments both("a  Linear", "0_LinearOperation");
  EXPECT_THAT(pairs(both, {.mappings = {{"LinearOperation", "Other", "", ""}}}), IsEmpty());
}

}  // namespace
}  // namespace ait::match
