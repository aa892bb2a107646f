#include "dump/cpu_profiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::HasSubstr;

TEST(Profiling, KeepsTheLastRecordsOfEachOperation) {
  EXPECT_EQ(profiling_by_operation("[b_1]:totalTime:1, runnerSetupTime:2\n"
                                   "noise\n"
                                   "[a]:kernelExecuteTime:1\n"
                                   "[a]:kernelExecuteTime:2\n"
                                   "[bad name]:kernelExecuteTime:9\n"
                                   "[b_1]:kernelExecuteTime:3, x:4\n"),
            "b_1:\n[execute] kernelExecuteTime:3, x:4\n[setup] totalTime:1, runnerSetupTime:2\n\n"
            "a:\n[execute] kernelExecuteTime:2\n[setup] \n\n");
}

TEST(Profiling, IsRewrittenOnce) {
  const ScratchFolder folder;
  const std::string path = folder.file("t/operation_statistic_0.txt", "[a]:kernelExecuteTime:1\n");
  folder.file("t/other.txt", "[a]:kernelExecuteTime:1\n");
  ASSERT_TRUE(rewrite_profiling(folder / "t"));
  const std::string done = content_of(path);
  EXPECT_THAT(done, HasSubstr("[execute] kernelExecuteTime:1"));
  ASSERT_TRUE(rewrite_profiling(folder / "t"));
  EXPECT_EQ(content_of(path), done);
  EXPECT_EQ(content_of(folder / "t/other.txt"), "[a]:kernelExecuteTime:1\n");
  EXPECT_TRUE(rewrite_profiling(folder / "missing"));
}

}  // namespace
}  // namespace ait::dump
