#include "golden/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensors.h"

namespace ait::golden {
namespace {

using ::testing::HasSubstr;

Operation with_inputs(std::vector<std::optional<Given>> inputs) {
  Operation operation;
  operation.type = "SomeOperation";
  operation.inputs = std::move(inputs);
  return operation;
}

TEST(Task, GivesInputsByName) {
  const Operation operation = with_inputs({Given{*floats({1, 2})}, std::nullopt});
  const Limits limits;
  Task task(operation, limits);
  ASSERT_TRUE(task.takes({"x", "?bias"}));
  EXPECT_EQ(task.values("x").data, (std::vector<double>{1, 2}));
  EXPECT_FALSE(task.has("bias"));
  EXPECT_EQ(task.values("bias").elements(), 0u);
}

TEST(Task, NamesWhatIsMissing) {
  const Operation operation = with_inputs({Given{*floats({1, 2})}});
  const Limits limits;
  Task task(operation, limits);
  EXPECT_EQ(task.takes({"x", "gamma"}).error().text(),
            "SomeOperation: input 1 (gamma) was not recorded");
}

TEST(Task, RefusesMoreMemoryThanItMayTake) {
  const Operation operation = with_inputs({Given{*floats(std::vector<float>(1000))}});
  Limits limits;
  limits.memory_bytes = 7999;
  Task task(operation, limits);
  EXPECT_THAT(task.takes({"x"}).error().text(), HasSubstr("give it more memory"));
  Task lazy(operation, limits);
  EXPECT_TRUE(lazy.takes({"~x"})) << "what is read in parts does not count";
  EXPECT_FALSE(lazy.make_room(~size_t{0}));
}

TEST(Compute, SaysWhatItDoesNotKnow) {
  Operation operation;
  operation.type = "FrobnicateOperation";
  EXPECT_EQ(compute(operation).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(compute(operation).error().text(), "FrobnicateOperation: operation type not supported");
  EXPECT_FALSE(knows("FrobnicateOperation"));
  EXPECT_TRUE(knows("RmsNormOperation"));
}

TEST(Compute, SaysWhichFactIsMissingForAnOperationOfTheLibrary) {
  Operation operation;
  for (const auto& [type, missing] :
       {std::pair("RelayAttentionOperation", "how its lists of tensors are recorded is not known"),
        std::pair("RopeGradOperation", "it is an operation of training"),
        std::pair("IfCondOperation", "it steers others and has no tensors to compare")}) {
    operation.type = type;
    EXPECT_FALSE(knows(type));
    EXPECT_EQ(compute(operation).error().text(), std::string(type) + ": no golden: " + missing);
  }
}

TEST(Compute, RefusesParametersThatAreNoJson) {
  Operation operation = with_inputs({Given{*floats({1, 2})}});
  operation.type = "ActivationOperation";
  for (const char* param :
       {"{", "[1]", R"({"activationType": "NO_SUCH"})", R"({"activationType": [1]})"}) {
    operation.param = param;
    EXPECT_EQ(compute(operation).error().code(), ErrorCode::kCorrupt) << param;
  }
}

}  // namespace
}  // namespace ait::golden
