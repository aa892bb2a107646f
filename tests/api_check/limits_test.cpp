#include "api_check/limits.h"

#include <gtest/gtest.h>

namespace ait::api_check {
namespace {

TEST(Limits, NamesOfOneFunctionAreOfOneKind) {
  for (const char* name : {"add", "add_", "__add__", "__iadd__", "__radd__"})
    EXPECT_EQ(kind_of(name), Kind::kRounded) << name;
  for (const char* name : {"__rsub__", "__rdiv__", "__truediv__", "__itruediv__", "rsub"})
    EXPECT_EQ(kind_of(name), Kind::kRounded) << name;
  for (const char* name :
       {"__getitem__", "__setitem__", "__invert__", "__ior__", "relu_", "masked_fill_"})
    EXPECT_EQ(kind_of(name), Kind::kExact) << name;
  EXPECT_EQ(kind_of("__pow__"), Kind::kFunction);
  EXPECT_EQ(kind_of("__rpow__"), Kind::kFunction);
  EXPECT_EQ(kind_of("__matmul__"), Kind::kProduct);
}

TEST(Limits, WhatNobodyKnowsIsComposite) {
  for (const char* name : {"layer_norm", "softmax", "", "_", "____", "my_own"})
    EXPECT_EQ(kind_of(name), Kind::kComposite) << name;
}

TEST(Limits, GradientsAreSumsWhateverTheFunction) {
  EXPECT_EQ(limit_of("relu", Direction::kForward, DType::kFloat32), 0);
  EXPECT_GT(limit_of("relu", Direction::kBackward, DType::kFloat32), 0);
}

TEST(Limits, WhatIsLeftOfASumMayBeSmallerThanItsParts) {
  for (const char* name : {"add_", "__isub__", "rsub", "gelu", "mean", "layer_norm"})
    EXPECT_TRUE(adds_up(name, Direction::kForward)) << name;
  EXPECT_FALSE(adds_up("mul", Direction::kForward));
  EXPECT_TRUE(adds_up("mul", Direction::kBackward));
}

TEST(Limits, NarrowTypesAreRoundedAtTheEnd) {
  EXPECT_LT(limit_of("linear", Direction::kForward, DType::kBFloat16),
            limit_of("linear", Direction::kForward, DType::kFloat32));
}

}  // namespace
}  // namespace ait::api_check
