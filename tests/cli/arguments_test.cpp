#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::cli {
namespace {

using ::testing::ElementsAre;

TEST(RewriteArguments, MakesLongOptionsOfTheSeedsSpellings) {
  EXPECT_THAT(rewrite_arguments({"llm", "compare", "-gp", "a", "-mp=b", "-mf", "c", "-o", "d"}),
              ElementsAre("llm", "compare", "--golden-path", "a", "--my-path=b",
                          "--op-mapping-file", "c", "-o", "d"));
  EXPECT_THAT(rewrite_arguments({"llm", "dump", "-sd", "-er", "1,3", "-child", "True", "-time", "2",
                                 "-opname", "self", "-tiling", "-stp", "1", "-device", "0"}),
              ElementsAre("llm", "dump", "--only-save-desc", "--execute-range", "1,3",
                          "--save-operation-child", "True", "--save-time", "2", "--operation-name",
                          "self", "--save-tiling", "--save-tensor-part", "1", "--device-id", "0"));
  EXPECT_THAT(rewrite_arguments({"llm", "opcheck", "-metric", "kl", "-rerun"}),
              ElementsAre("llm", "opcheck", "--precision-metric", "kl", "--atb-rerun"));
  EXPECT_THAT(rewrite_arguments({"llm", "opcheck", "-pmode", "force_fp16"}),
              ElementsAre("llm", "opcheck", "--precision-mode", "force_fp16"));
}

TEST(RewriteArguments, KnowsTheDoubleDashTwins) {
  EXPECT_THAT(rewrite_arguments({"llm", "opcheck", "--metric", "kl", "--rerun", "--opname=self"}),
              ElementsAre("llm", "opcheck", "--precision-metric", "kl", "--atb-rerun",
                          "--operation-name=self"));
}

TEST(RewriteArguments, GivesIdsTheNameTheCommandKnows) {
  EXPECT_THAT(rewrite_arguments({"llm", "dump", "-ids", "2"}),
              ElementsAre("llm", "dump", "--save-operation-ids", "2"));
  EXPECT_THAT(rewrite_arguments({"llm", "opcheck", "--ids", "2"}),
              ElementsAre("llm", "opcheck", "--operation-ids", "2"));
}

TEST(RewriteArguments, LeavesEverythingElseAlone) {
  EXPECT_THAT(rewrite_arguments({"show", "x-gp.npy", "-g", "--golden-path", "--", "-gp"}),
              ElementsAre("show", "x-gp.npy", "-g", "--golden-path", "--", "-gp"));
  EXPECT_TRUE(rewrite_arguments({}).empty());
}

TEST(SeedSpelling, IsTheSingleDashForm) {
  EXPECT_EQ(seed_spelling("--golden-path"), "-gp");
  EXPECT_EQ(seed_spelling("--precision-metric"), "-metric");
  EXPECT_EQ(seed_spelling("--json"), "");
}

}  // namespace
}  // namespace ait::cli
