#include "launch/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "elf_builder.h"
#include "scratch_folder.h"

namespace ait::launch {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& word, const std::string& path) {
  const auto program = find_program(word, path);
  EXPECT_FALSE(program);
  return program ? "" : program.error().text();
}

TEST(FindProgram, LooksInTheFoldersOfPathInTheirOrder) {
  const ScratchFolder folder;
  folder.file("a/tool", "", 0640);  // not executable: passed over
  folder.file("b/tool", "", 0750);
  folder.file("c/tool", "", 0750);
  const auto program =
      find_program("tool", (folder / "a") + ":" + (folder / "b") + ":" + (folder / "c"));
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->path, folder / "b/tool");
}

TEST(FindProgram, TakesAPathAsItIs) {
  const auto program = find_program("/bin/sh", "");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->path, "/bin/sh");
  EXPECT_EQ(program->obstacle, Obstacle::kNone);
  EXPECT_EQ(obstacle_text(*program), "");
}

TEST(FindProgram, SaysWhatIsWrong) {
  const ScratchFolder folder;
  const std::string script = folder.file("run.sh", "#!/bin/sh\n", 0640);
  EXPECT_THAT(refusal("no-such-tool", folder.path()), HasSubstr("no such program on PATH"));
  EXPECT_THAT(refusal("A=1", folder.path()), HasSubstr("put env in front"));
  EXPECT_THAT(refusal(folder / "nothing", ""), HasSubstr("no such program"));
  EXPECT_THAT(refusal(folder.path() + "/.", ""), HasSubstr("is a folder"));
  EXPECT_THAT(refusal(script, ""), HasSubstr("chmod +x"));
}

TEST(FindProgram, FollowsScriptsToWhatRunsThem) {
  const ScratchFolder folder;
  folder.file("inner", "#! /bin/sh -e\n", 0750);
  const std::string outer = folder.file("outer", "#!" + (folder / "inner") + "\n", 0750);
  EXPECT_EQ(find_program(outer, "")->runs, "/bin/sh");
  EXPECT_EQ(find_program(outer, "")->path, outer);
  const std::string by_env = folder.file("by_env", "#!/usr/bin/env -S A=1 tool -x\n", 0750);
  const std::string tool = folder.file("bin/tool", "", 0750);
  EXPECT_EQ(find_program(by_env, folder / "bin")->runs, tool);
}

TEST(FindProgram, DoesNotFollowScriptsForEver) {
  const ScratchFolder folder;
  const std::string loop = folder / "loop";
  folder.file("loop", "#!" + loop + "\n", 0750);
  EXPECT_TRUE(find_program(loop, ""));
}

TEST(FindProgram, SeesWhatAPreloadCannotReach) {
  const ScratchFolder folder;
  const std::string fixed = folder.file("static", ElfBuilder().text(), 0750);
  EXPECT_EQ(find_program(fixed, "")->obstacle, Obstacle::kStatic);
  EXPECT_THAT(obstacle_text(*find_program(fixed, "")), HasSubstr("linked statically"));

  ElfBuilder other;
  other.header().e_machine = EM_MIPS;
  const std::string foreign = folder.file("foreign", other.text(), 0750);
  EXPECT_EQ(find_program(foreign, "")->obstacle, Obstacle::kOtherMachine);

  const std::string script = folder.file("script", "#!" + fixed + "\n", 0750);
  EXPECT_EQ(find_program(script, "")->obstacle, Obstacle::kStatic);
}

TEST(FindProgram, SeesSetuidProgramsOfOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const ScratchFolder folder;
  ElfBuilder dynamic;
  dynamic.add_loader();
  const std::string path = folder.file("setuid", dynamic.text(), 0750);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  EXPECT_EQ(find_program(path, "")->obstacle, Obstacle::kOtherRights);
  ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  EXPECT_EQ(find_program(path, "")->obstacle, Obstacle::kNone);  // ours already
}

}  // namespace
}  // namespace ait::launch
