// An operation that the library does not have: this is all that one more needs, besides its line in
// ops/registry.h.
#include <array>

#include "ops/params.h"
#include "ops/registry.h"
#include "tensors.h"

namespace {

using atb_test::RunOnce;
using atb_test::Values;

struct TimesParam {
  int64_t factor = 2;
  void visit(atb::ParamFields& fields) { fields.field("factor", factor); }
  atb::Status check() const { return {}; }
};

class TimesOperation final : public atb::ParamOperation<TimesParam> {
 public:
  TimesOperation() : ParamOperation("TimesOperation") {}
  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }
  atb::Status InferShape(const std::vector<atb::TensorDesc>& in,
                         std::vector<atb::TensorDesc>& out) const override {
    out = in;
    return {};
  }

 private:
  atb::Status plan(const std::vector<atb::TensorDesc>&, const std::vector<atb::TensorDesc>&,
                   KernelPlan& plan) const override {
    plan.kernels.push_back({"TimesF32Kernel", atb::Tiling(), {}, {}});
    return {};
  }
  atb::Status launch(size_t, std::span<const atb::Tensor> in, std::span<const atb::Tensor> out,
                     const atb::Tiling&) const override {
    const auto count = static_cast<size_t>(in[0].desc.dims.count());
    for (size_t i = 0; i < count; ++i)
      out[0].as<float>()[i] = in[0].as<float>()[i] * static_cast<float>(param().factor);
    return {};
  }
};

constexpr std::array kToys = {atb::OperationMaker{
    "TimesOperation",
    [] { return std::unique_ptr<atb::Operation>(std::make_unique<TimesOperation>()); }}};

TEST(ToyOperation, IsMadeFromJsonAndRuns) {
  auto made = atb::CreateOperation("TimesOperation", R"({"factor":3})", kToys);
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  atb::Context context(0);
  Values x({2, 3}, 1), y({2, 3});
  ASSERT_TRUE(RunOnce(*made.operation, {{x.tensor()}, {y.tensor()}}, context).ok());
  for (size_t i = 0; i < x.data.size(); ++i) EXPECT_EQ(y.data[i], 3 * x.data[i]);
}

TEST(ToyOperation, IsNotTheLibrarys) {
  EXPECT_FALSE(atb::CreateOperation("TimesOperation", "{}").status.ok());
  EXPECT_FALSE(atb::CreateOperation("TimesOperation", R"({"nothing":3})", kToys).status.ok());
  EXPECT_EQ(atb::operation_types().size(), 16U);
}

}  // namespace
