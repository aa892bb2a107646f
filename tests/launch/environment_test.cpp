#include "launch/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ait::launch {
namespace {

TEST(Environment, StartsAsThatOfThisProcess) {
  ::setenv("AIT_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(Environment::of_this_process().get("AIT_TEST_VARIABLE"), "a=b");
  EXPECT_EQ(Environment::of_this_process().get("AIT_TEST_VARIABL"), std::nullopt);
}

TEST(Environment, SetsReplacesAndRemoves) {
  Environment environment;
  environment.set("A", "1").set("AB", "2").set("A", "3");
  EXPECT_EQ(environment.get("A"), "3");
  environment.remove("A").remove("C");
  EXPECT_EQ(environment.get("A"), std::nullopt);
  EXPECT_EQ(environment.get("AB"), "2");
  const auto pointers = environment.pointers();
  ASSERT_EQ(pointers.size(), 2U);
  EXPECT_STREQ(pointers[0], "AB=2");
  EXPECT_EQ(pointers[1], nullptr);
}

}  // namespace
}  // namespace ait::launch
