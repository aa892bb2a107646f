// The example at the head of api_check/output.h.
#include <gtest/gtest.h>

#include "api_check/output.h"
#include "values.h"

namespace ait::api_check {
namespace {

std::pair<bool, bool> judged(const TensorView& bench, const TensorView& device,
                             const TensorView& moved) {
  Output out = judge_tensors({"linear"}, bench, device, {});
  if (out.wants_moved)  // what a rounding of the inputs does may explain the difference
    out = judge_tensors({"linear"}, bench, device, {.moved = &moved});
  return std::pair(out.passes, out.within);
}

TEST(ApiCheckExample, HasTwoVerdicts) {
  const auto bench = f64({1e-9, 1e-9}), moved = f64({1e-9 + 6e-8, 1e-9 + 6e-8});
  EXPECT_EQ(judged(bench.view(), f32({3e-8F, 1e-9F}).view(), moved.view()), std::pair(false, true));
  EXPECT_EQ(judged(bench.view(), f32({1e-3F, 1e-9F}).view(), moved.view()),
            std::pair(false, false));
}

}  // namespace
}  // namespace ait::api_check
