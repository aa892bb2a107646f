#include "match/by_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kTorchTraits;
using capture::Recording;
using ::testing::ElementsAre;
using ::testing::Pair;

Recording model(const std::string& kind, const std::string& operations) {
  Recording out = TinyRun(kTorchTraits, operations).recording;
  out.model = kind;
  return out;
}

using Models = std::vector<Recording>;

TEST(Models, BelongTogetherByKindWhateverTheirOrder) {
  const Models golden = {model("Gpt", "root\n  a"), model("Bert", "root\n  b")};
  const Models actual = {model("Bert", "root\n  b"), model("Gpt", "root\n  a")};
  EXPECT_THAT(pair_models(golden, actual), ElementsAre(Pair(1, 0), Pair(0, 1)));
}

TEST(Models, OfOneKindBelongTogetherByStructureAndThenByOrder) {
  const Models golden = {model("Net", "root\n  a"), model("Net", "root\n  b\n  c"),
                         model("Net", "root\n  a")};
  const Models actual = {model("Net", "root\n  b\n  c"), model("Net", "root\n  a"),
                         model("Net", "root\n  a")};
  EXPECT_THAT(pair_models(golden, actual), ElementsAre(Pair(1, 0), Pair(0, 1), Pair(2, 2)));
}

TEST(Models, OfOtherKindsBelongTogetherByNames) {
  const Models golden = {model("Gpt", "root\n  a\n  b"), model("Bert", "root\n  x\n  y")};
  const Models actual = {model("MyBert", "root\n  x\n  y\n  z"), model("MyGpt", "root\n  a\n  b")};
  EXPECT_THAT(pair_models(golden, actual), ElementsAre(Pair(1, 0), Pair(0, 1)));
  // The outermost module is called alike in all models.
  EXPECT_THAT(pair_models(golden, Models{model("Loss", "root"), actual[1]}),
              ElementsAre(Pair(0, 1)));
}

TEST(Models, ThatHaveNothingInCommonAreAPairOnlyWhereNothingElseIs) {
  const Models golden = {model("Gpt", "root\n  a"), model("Clip", "p\n  q\n  r\n  s")};
  EXPECT_THAT(pair_models(golden, Models{model("Gpt", "root\n  a"), model("Bert", "x\n  y")}),
              ElementsAre(Pair(0, 0)));
  EXPECT_THAT(pair_models(golden, Models{model("Bert", "x\n  y"), model("", "u\n  v\n  w")}),
              ElementsAre(Pair(1, 1)));
}

TEST(Models, AreToldApartByTheirNamesInSubjects) {
  const auto found = [](const std::string& name, size_t operations) {
    match::Pair pair;
    pair.subject.name = name;
    AutomaticPairs out;
    out.pairs = std::vector<match::Pair>{pair};
    out.actual.operations = out.actual.paired = operations;
    out.actual_layers = operations;
    out.notes = {"something"};
    out.method = "by the names of modules";
    return out;
  };
  std::vector<AutomaticPairs> both;
  both.push_back(found("root", 3));
  both.push_back(found("root.x", 5));
  const AutomaticPairs all = put_together(std::move(both), {"Encoder", "Net"});
  ASSERT_EQ(all.pairs.count, 2u);
  EXPECT_EQ(all.pairs.at(0).subject.name, "Encoder/root");
  EXPECT_EQ(all.pairs.at(1).subject.name, "Net/root.x");
  EXPECT_EQ(all.actual.operations, 8u);
  EXPECT_EQ(all.actual_layers, 5u);
  EXPECT_EQ(all.method, "by the names of modules");
  EXPECT_THAT(all.notes, ElementsAre("Encoder: something", "Net: something"));
}

}  // namespace
}  // namespace ait::match
