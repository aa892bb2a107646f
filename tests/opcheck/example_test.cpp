// The example at the head of opcheck/check.h.
#include <gtest/gtest.h>

#include "opcheck/check.h"
#include "small_dump.h"

namespace ait::opcheck {
namespace {

Result<size_t> count_failed(const std::string& folder) {
  size_t failed = 0;
  auto cases = find_cases({.folder = folder});
  if (!cases) return fail(cases.error());
  const std::atomic<bool> stop = false;
  check_cases(cases->cases, Options(), stop, [&](std::vector<CheckRow>&& rows) {
    for (const CheckRow& row : rows) failed += row.verdict == Verdict::kFailed;
  });
  return failed;
}

TEST(OpcheckExample, CountsOperationsThatAreWrong) {
  const SmallDump dump;
  dump.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 6});
  dump.add_doubling("0_7/0/2_ElewiseOperation", {2, 4, 7});
  EXPECT_EQ(count_failed(dump.path()).value(), 1u);
}

}  // namespace
}  // namespace ait::opcheck
