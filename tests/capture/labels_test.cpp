#include "capture/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
using ::testing::HasSubstr;

TEST(Labels, BringTogetherWhatHasTheSameIdAndKeepTheLastOfEachSide) {
  const TempFolder folder;
  folder.write("12_10_labels.jsonl", R"({"data_id": "a", "source": "pta", "path": "x"})"
                                     "\n");
  folder.write("12_2_labels.jsonl", R"({"data_id": "b", "source": "acl", "path": "1"})"
                                    "\n"
                                    R"({"data_id": "a", "source": "pta", "path": "2"})"
                                    "\n"
                                    R"({"data_id": "b", "source": "pta", "path": "3"})"
                                    "\n"
                                    R"({"data_id": "b", "source": "acl", "path": "4"})"
                                    "\n");
  const auto all = read_labels(folder.path().string());
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].task_id, "12_2");
  EXPECT_EQ((*all)[1].task_id, "12_10");
  const auto& pairs = (*all)[0].pairs;
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].data_id, "b");
  EXPECT_EQ(pairs[0].pta_path, "3");
  EXPECT_EQ(pairs[0].acl_path, "4");
  EXPECT_EQ(pairs[1].acl_path, "");
}

TEST(Labels, LoseOnlyTheLineThatAKilledProcessCutShort) {
  const TempFolder folder;
  folder.write("1_0_labels.jsonl", R"({"data_id": "a", "source": "pta", "path": "x"})"
                                   "\n{\"data_id\": \"b\", \"sou");
  const auto all = read_labels(folder.path().string());
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0].pairs.size(), 1u);
  ASSERT_EQ((*all)[0].problems.size(), 1u);
  EXPECT_THAT((*all)[0].problems[0].text(), HasSubstr("is not a label"));
}

TEST(Labels, FindFilesInTheSpellingOfAnotherVersion) {
  const TempFolder folder;
  const auto written = folder.write("tensors/after/outtensor0.bin", "x");
  const auto named = (folder.path() / "tensors/after/outTensor0.bin").string();
  folder.write("1_0_labels.jsonl",
               R"({"data_id": "a", "source": "acl", "path": ")" + named + "\"}\n");
  EXPECT_EQ((*read_labels(folder.path().string()))[0].pairs[0].acl_path, written);
}

}  // namespace
}  // namespace ait::capture
