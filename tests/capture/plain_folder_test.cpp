#include "capture/plain_folder.h"

#include <gtest/gtest.h>

#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;

std::vector<std::string> operations(const Capture& capture) {
  std::vector<std::string> names;
  for (const TensorRecord& record : capture.records) names.push_back(record.operation);
  return names;
}

TEST(NaturalLess, CountsRunsOfDigitsAsNumbers) {
  EXPECT_TRUE(natural_less("layer2", "layer10"));
  EXPECT_FALSE(natural_less("layer10", "layer2"));
  EXPECT_TRUE(natural_less("a", "a0"));
  EXPECT_TRUE(natural_less("a09", "a10"));
  EXPECT_TRUE(natural_less("99999999999999999999998", "99999999999999999999999"));
  EXPECT_FALSE(natural_less("same1", "same1"));
  // "01" and "1" must have an order, and only one.
  EXPECT_NE(natural_less("a01", "a1"), natural_less("a1", "a01"));
}

TEST(PlainFolder, ListsFilesInAnOrderOfItsOwn) {
  const TempFolder folder;
  for (const char* name : {"b/t10.npy", "b/t9.npy", "a.bin", "b/deep/x.pth"})
    folder.write(name, "x");
  const auto capture = read_plain_folder(folder.path().string());
  ASSERT_TRUE(capture);
  EXPECT_EQ(operations(*capture),
            (std::vector<std::string>{"a.bin", "b/deep/x.pth", "b/t9.npy", "b/t10.npy"}));
  EXPECT_EQ(capture->records[1].path, (folder.path() / "b/deep/x.pth").string());
}

TEST(PlainFolder, PassesOverHiddenFilesAndWhatIsNoTensor) {
  const TempFolder folder;
  for (const char* name : {".t.npy.1-2.tmp", "metadata.json", "report.csv", "notes.txt", "t.npy"})
    folder.write(name, "x");
  const auto capture = read_plain_folder(folder.path().string());
  ASSERT_TRUE(capture);
  EXPECT_EQ(operations(*capture), std::vector<std::string>{"t.npy"});
}

TEST(PlainFolder, DoesNotFollowLinksInCircles) {
  const TempFolder folder;
  folder.write("t.npy", "x");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "again");
  const auto capture = read_plain_folder(folder.path().string());
  ASSERT_TRUE(capture);
  EXPECT_EQ(operations(*capture), std::vector<std::string>{"t.npy"});
}

TEST(PlainFolder, SaysWhenThereIsNone) {
  const TempFolder folder;
  EXPECT_FALSE(read_plain_folder((folder.path() / "missing").string()));
  EXPECT_FALSE(read_plain_folder(folder.write("file", "x")));
}

}  // namespace
}  // namespace ait::capture
