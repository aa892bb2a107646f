#include "launch/preload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch_folder.h"

namespace ait::launch {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(PreloadValue, KeepsWhatWasThere) {
  EXPECT_EQ(preload_value("/p.so", std::nullopt), "/p.so");
  EXPECT_EQ(preload_value("/p.so", ""), "/p.so");
  EXPECT_EQ(preload_value("/p.so", "/a.so:/b.so"), "/p.so:/a.so:/b.so");
}

TEST(CheckProbe, TakesAFileThatOnlyItsOwnerCanChange) {
  const ScratchFolder folder;
  EXPECT_TRUE(check_probe(folder.file("probe.so", "x", 0755)));
}

TEST(CheckProbe, RefusesAFileThatOthersCanChange) {
  const ScratchFolder folder;
  for (const mode_t mode : {0770, 0757}) {
    const auto checked = check_probe(folder.file("probe.so", "x", mode));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), ErrorCode::kRefused);
    EXPECT_THAT(checked.error().text(), HasSubstr("chmod go-w"));
  }
}

TEST(CheckProbe, RefusesPathsThatTheLoaderWouldCutInTwo) {
  const ScratchFolder folder;
  for (const char* name : {"a b.so", "a:b.so"}) {
    const auto checked = check_probe(folder.file(name, "x", 0755));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), ErrorCode::kUnsupported);
  }
}

TEST(FindProbe, LooksBesideTheProgram) {
  const auto probe = find_probe("no_such_probe.so");
  ASSERT_FALSE(probe);
  EXPECT_EQ(probe.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(probe.error().path(), EndsWith("/lib/ait/no_such_probe.so"));
}

}  // namespace
}  // namespace ait::launch
