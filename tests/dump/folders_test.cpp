#include "dump/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(MadeFolders, AreTakenAwayAgainWhereEmpty) {
  const ScratchFolder folder;
  MadeFolders made;
  ASSERT_TRUE(made.make(folder / "a/b/c"));
  folder.file("a/kept", "x");
  made.remove_empty();
  EXPECT_FALSE(fs::exists(folder / "a/b"));
  EXPECT_TRUE(fs::exists(folder / "a/kept"));
  MadeFolders nothing;
  ASSERT_TRUE(nothing.make(folder.path()));
  nothing.remove_empty();
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST(PrepareOutput, MakesAnAbsoluteFolderAndKnowsHome) {
  const ScratchFolder folder;
  MadeFolders made;
  ::setenv("HOME", folder.path().c_str(), 1);
  const std::string expected = fs::canonical(folder.path()).native() + "/x/y";
  EXPECT_EQ(prepare_output("~/x/y", made).value(), expected);
  EXPECT_TRUE(fs::is_directory(expected));
  EXPECT_EQ(prepare_output(folder / "x/./y/", made).value(), expected);
  EXPECT_EQ(prepare_output(".", made).value(), fs::current_path());
  struct stat status{};
  ::stat((folder / "x").c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0750U);
}

TEST(PrepareOutput, RefusesAFileInThePlace) {
  const ScratchFolder folder;
  MadeFolders made;
  const std::string file = folder.file("file", "x");
  for (const std::string& path : {file, file + "/below"}) {
    const auto output = prepare_output(path, made);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code(), ErrorCode::kUnwritable);
    EXPECT_THAT(output.error().text(), HasSubstr("is not a folder"));
  }
}

}  // namespace
}  // namespace ait::dump
