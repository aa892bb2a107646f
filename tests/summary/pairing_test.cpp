#include "summary/pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::summary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

match::AutomaticPairs found() {
  match::AutomaticPairs out;
  out.actual.operations = 10;
  out.actual.paired = 7;
  out.actual.copies = 1;
  out.actual.alone = {{"a common reason.", 1}, {"another reason.", 1}};
  out.golden.operations = out.golden.paired = 7;
  out.certain = 6;
  out.likely = 1;
  out.method = "by their data";
  return out;
}

TEST(Pairing, SaysHowMuchOfEachSideHasAPartner) {
  EXPECT_THAT(coverage_text(found(), false),
              AllOf(HasSubstr("my side: 7 of 10 operations paired, 1 holds the same data as one of "
                              "these, 2 have no partner\n  1 × a common reason.\n"),
                    HasSubstr("golden: 7 of 7 operations paired\n"),
                    HasSubstr("6 are certain, 1 likely; they were paired by their data\n")));
}

TEST(Pairing, CommonReasonsComeFirstAndRareOnesAreCounted) {
  match::AutomaticPairs pairs = found();
  pairs.actual.alone = {{"e", 9}, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
  EXPECT_THAT(
      coverage_text(pairs, false),
      HasSubstr("  9 × e\n  1 × a\n  1 × b\n  1 × c\n  … and 1 more reasons, see the report\n"));
}

TEST(Pairing, LongListsOfTokensAreCutInTheMiddle) {
  match::AutomaticPairs pairs = found();
  for (int i = 0; i < 20; ++i)
    pairs.tokens.push_back({std::to_string(i), "g" + std::to_string(i), "m", i == 0});
  EXPECT_THAT(coverage_text(pairs, false), AllOf(HasSubstr("prefill"), HasSubstr("g6 "),
                                                 Not(HasSubstr("g7 ")), HasSubstr("g19")));
}

TEST(Pairing, ARecordingThatMayLackTensorsIsNamedFirst) {
  match::PairList list;
  EXPECT_EQ(completeness_text(list), "");
  list.actual_completeness.doubts = {"3 tensors were not stored", "it was killed"};
  list.actual_completeness.complete = false;
  EXPECT_EQ(completeness_text(list),
            "my side may lack tensors: 3 tensors were not stored (and 1 more)\n");
  EXPECT_THAT(report::Json(completeness_json(list)).text(),
              AllOf(HasSubstr(R"("complete": null)"), HasSubstr(R"("complete": false)"),
                    HasSubstr("it was killed")));
}

}  // namespace
}  // namespace ait::summary
