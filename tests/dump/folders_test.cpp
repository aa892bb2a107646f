#include "dump/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "../launch/scratch_folder.h"
#include "launch/process.h"

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

TEST(RunFolder, IsForOneRunAloneAndGoesWithIt) {
  const ScratchFolder folder;
  std::string first_path;
  {
    const auto first = dump::ScratchFolder::in(folder.path());
    const auto second = dump::ScratchFolder::in(folder.path());
    ASSERT_TRUE(first && second);
    first_path = first->path();
    EXPECT_EQ(first_path, folder / (".run_" + std::to_string(::getpid())));
    EXPECT_EQ(second->path(), first_path + "_1");
    clear_leftovers(folder.path());
    EXPECT_TRUE(fs::exists(first_path) && fs::exists(second->path()));
  }
  EXPECT_FALSE(fs::exists(first_path));
  EXPECT_FALSE(fs::exists(first_path + "_1"));
}

TEST(ClearLeftovers, TakesWhatNobodyHoldsAnyMore) {
  const ScratchFolder folder;
  folder.file(".run_1/7.0.ledger", "x");
  fs::create_directory(folder / ".run_2");
  folder.file("elsewhere/kept", "x");
  fs::create_directory_symlink(folder / "elsewhere", folder / ".run_3");
  folder.file("run_4/kept", "x");
  fs::create_directory(folder / ".claims");
  fs::create_symlink(".run_1:12:pid:[1]", folder / ".claims/7");
  fs::create_symlink(":12:pid:[1]", folder / ".claims/8");  // of a probe without a launcher
  clear_leftovers(folder.path());
  for (const char* gone : {".run_1", ".run_2", ".claims/7"})
    EXPECT_FALSE(fs::exists(fs::symlink_status(folder / gone))) << gone;
  for (const char* kept : {"elsewhere/kept", "run_4/kept", ".claims/8"})
    EXPECT_TRUE(fs::exists(fs::symlink_status(folder / kept))) << kept;
}

TEST(ClearLeftovers, LeavesTheFolderOfACommandThatStillRuns) {
  const ScratchFolder folder;
  folder.file(".run_1/7.0.ledger", "x");
  const std::string mark = "AIT_PROBE_SCRATCH=" + folder.path() + "/.run_1";
  const pid_t child = ::fork();
  if (child == 0) {
    char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("60"), nullptr};
    char* const environment[] = {const_cast<char*>(mark.c_str()), nullptr};
    ::execve("/bin/sleep", words, environment);
    ::_exit(1);
  }
  for (int i = 0; i < 1000 && !launch::runs_with(child, mark); ++i) ::usleep(10'000);
  clear_leftovers(folder.path());
  EXPECT_TRUE(fs::exists(folder / ".run_1"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  clear_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(folder / ".run_1"));
}

TEST(ReleaseClaims, TakesThoseOfTheRunAlone) {
  const ScratchFolder folder;
  fs::create_directory(folder / ".claims");
  fs::create_symlink(".run_1:12:pid:[1]", folder / ".claims/7");
  fs::create_symlink(".run_11:12:pid:[1]", folder / ".claims/8");
  release_claims(folder.path(), folder / ".run_1");
  EXPECT_FALSE(fs::is_symlink(folder / ".claims/7"));
  EXPECT_TRUE(fs::is_symlink(folder / ".claims/8"));
  release_claims(folder.path(), folder / ".run_11");
  EXPECT_FALSE(fs::exists(folder / ".claims"));
}

}  // namespace
}  // namespace ait::dump
