// The example at the head of engine/atb/operation.h.
#include "tensors.h"

namespace atb {
namespace {

Status Multiply(const Tensor& x, const Tensor& weight, const Tensor& y, Context& context) {
  auto made = CreateOperation("LinearOperation", R"({"hasBias":false})");
  if (!made.status.ok()) return made.status;
  VariantPack pack{{x, weight}, {y}};
  uint64_t bytes = 0;
  if (auto status = made.operation->Setup(pack, bytes, context); !status.ok()) return status;
  std::vector<uint8_t> workspace(bytes);
  return made.operation->Execute(pack, workspace.data(), bytes, context);
}

TEST(EngineExample, MultipliesWithTheTransposedWeight) {
  Context context(0);
  atb_test::Values x({1, 2}), weight({3, 2}), y({1, 3});
  x.data = {1, 2};
  weight.data = {1, 0, 0, 1, 1, 1};
  const Status status = Multiply(x.tensor(), weight.tensor(), y.tensor(), context);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(y.data, (std::vector<float>{1, 2, 3}));
  EXPECT_FALSE(Multiply(x.tensor(), y.tensor(), y.tensor(), context).ok());
}

}  // namespace
}  // namespace atb
