// The example at the head of match/pair_paths.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/pair_paths.h"
#include "test_files.h"

namespace ait::match {
namespace {

Result<std::vector<std::string>> pairs_of(const std::string& golden, const std::string& actual) {
  std::vector<std::string> lines;
  auto list = pair_paths({.golden = golden, .actual = actual});
  if (!list) return fail(list.error());
  for (size_t i = 0; i < list->pairs.count; ++i) {
    const Pair pair = list->pairs.at(i);
    lines.push_back(pair.subject.name + (pair.complete() ? "" : ": " + pair.alone));
  }
  return lines;
}

TEST(MatchExample, ListsThePairsOfTwoFolders) {
  const formats::TempFolder folder;
  for (const char* file : {"g/a.npy", "g/b.npy", "m/b.npy"}) folder.write(file, "x");
  const auto lines = pairs_of((folder.path() / "g").string(), (folder.path() / "m").string());
  ASSERT_TRUE(lines) << lines.error().text();
  EXPECT_THAT(*lines, ::testing::ElementsAre("a.npy: ", "b.npy"));
}

}  // namespace
}  // namespace ait::match
