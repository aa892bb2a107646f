#include "locate/unpaired.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ait::locate {
namespace {

using capture::OpKind;
using match::Pair;

Pair pair(const std::string& name, const std::string& golden, OpKind kind,
          std::vector<uint32_t> sources) {
  Pair out;
  out.subject.name = name;
  out.subject.tensor = "outtensor0";
  out.subject.layer = 0;
  out.golden.records.emplace_back().path = golden;
  out.actual.records.emplace_back().path = "mine/" + name;
  out.origin.is_known = true;
  out.origin.operation = name;
  out.origin.kind = kind;
  out.origin.sources = std::move(sources);
  return out;
}

// A finding at the last of the pairs.
std::optional<Culprit> culprit_of(const std::vector<Pair>& pairs) {
  Finding finding;
  finding.number = pairs.size() - 1;
  finding.row.token = "0";
  finding.row.judgement.emplace().verdict = compare::Verdict::kFault;
  for (const uint32_t back : pairs.back().origin.sources)
    finding.sources.push_back(finding.number - back);
  return led_astray(finding, [&](size_t number) -> Result<Pair> {
    if (number >= pairs.size()) return fail(Error(ErrorCode::kNotFound, "no such row"));
    return pairs[number];
  });
}

TEST(LedAstray, NamesTheSumThatHoldsNoMoreThanItsAddend) {
  const auto culprit = culprit_of({pair("1_Layer/4_Mlp", "golden/mlp", OpKind::kUnknown, {}),
                                   pair("1_Layer/5_Elewise", "golden/mlp", OpKind::kOther, {1}),
                                   pair("2_Layer/0_RmsNorm", "golden/norm", OpKind::kNorm, {1})});
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->operation, "1_Layer/5_Elewise");
  ASSERT_EQ(culprit->causes.size(), 1U);
  EXPECT_EQ(culprit->causes[0].name, "missing-residual");
}

TEST(LedAstray, LeavesSumsThatAreSumsAlone) {
  EXPECT_FALSE(culprit_of({pair("1_Layer/4_Mlp", "golden/mlp", OpKind::kUnknown, {}),
                           pair("1_Layer/5_Elewise", "golden/layer", OpKind::kOther, {1}),
                           pair("2_Layer/0_RmsNorm", "golden/norm", OpKind::kNorm, {1})}));
}

TEST(LedAstray, LeavesWhatOnlyMovesDataAlone) {
  EXPECT_FALSE(culprit_of({pair("1_Layer/4_Mlp", "golden/mlp", OpKind::kUnknown, {}),
                           pair("1_Layer/5_AllReduce", "golden/mlp", OpKind::kMove, {1}),
                           pair("2_Layer/0_RmsNorm", "golden/norm", OpKind::kNorm, {1})}));
}

}  // namespace
}  // namespace ait::locate
