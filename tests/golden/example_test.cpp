// The example at the head of golden/golden.h.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/golden.h"
#include "tensor/half.h"
#include "tensors.h"

namespace ait::golden {
namespace {

Result<bool> is_sound(const Tensor& x, const Tensor& gamma, double recorded) {
  Operation operation;
  operation.type = "RmsNormOperation";
  operation.param = R"({"layerType": 1, "normParam": {"epsilon": 1e-6}})";
  operation.inputs = {Given{x}, Given{gamma}};      // in the library's order
  operation.outputs = {{DType::kFloat16, {4, 8}}};  // what was recorded
  const auto expected = compute(operation);
  if (!expected) return fail(expected.error());  // kUnsupported: no golden, and why
  const Output& y = expected->outputs[0];
  const bool sound = std::abs(recorded - y.values[3]) <= bound(y, 3, DType::kFloat16);
  return sound;
}

TEST(GoldenExample, TellsASoundResultFromAWrongOne) {
  std::vector<uint16_t> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float_to_fp16(static_cast<float>(i) / 8);
  const auto values = make_tensor(DType::kFloat16, {4, 8}, x);
  const auto gamma = make_tensor(DType::kFloat16, {8}, std::vector<uint16_t>(8, float_to_fp16(2)));
  double squares = 0;
  for (int i = 0; i < 8; ++i) squares += i * i / 64.0;
  const double y = 3.0 / 8 * 2 / std::sqrt(squares / 8 + 1e-6);
  const float rounded = fp16_to_float(float_to_fp16(static_cast<float>(y)));
  EXPECT_TRUE(*is_sound(*values, *gamma, rounded));
  EXPECT_FALSE(*is_sound(*values, *gamma, rounded * 1.002));
}

}  // namespace
}  // namespace ait::golden
