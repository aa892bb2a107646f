#include "dump/overflow_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../launch/scratch_folder.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OverflowResults, CountEachOperatorOfThisRunInItsOrder) {
  const ScratchFolder folder;
  const std::string line = "Overflow detected! Operator name: ";
  folder.file("ait_overflow_res_7.txt", line + "Old_1:K\n");
  const ResultSizes earlier = result_sizes(folder.path());
  folder.file("ait_overflow_res_7.txt", line + "Old_1:K\n" + line + "B_2_0:K\n" + line +
                                            "A_1:K\nnoise\n" + line + "B_2_0:K\n");
  const auto results = read_results(folder.path(), 7, earlier);
  ASSERT_TRUE(results) << results.error().text();
  EXPECT_THAT(results->operators, ElementsAre(std::pair("B_2_0:K", 2), std::pair("A_1:K", 1)));
  EXPECT_THAT(read_results(folder.path(), 8, earlier)->operators, IsEmpty());
}

TEST(OverflowResults, IdsAreTheEndOfTheOperationsName) {
  EXPECT_EQ(ids_of("LinearOperation_3_1:MatMulKernel"), "3_1");
  EXPECT_EQ(ids_of("Op2_4"), "4");
  EXPECT_EQ(ids_of("Nothing:K_1"), "");
}

}  // namespace
}  // namespace ait::dump
