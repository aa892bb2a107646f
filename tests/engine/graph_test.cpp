// Graphs: what they compute, what they refuse, and that shapes may change between rounds.
#include "tensors.h"

namespace {

using atb_test::Make;
using atb_test::MakeNested;
using atb_test::RunOnce;
using atb_test::Values;

std::vector<float> Expected(const Values& x, const Values& w, const Values& z) {
  std::vector<float> y = z.data;
  const auto k = static_cast<size_t>(x.shape[1]), n = static_cast<size_t>(w.shape[0]);
  for (size_t i = 0; i < y.size(); ++i) {
    for (size_t j = 0; j < k; ++j) y[i] += x.data[i / n * k + j] * w.data[i % n * k + j];
    y[i] *= 2;
  }
  return y;
}

TEST(Graph, ComputesWithChangingShapes) {
  atb::Context context(0);
  const auto graph = MakeNested();
  for (const int64_t rows : {2, 5, 1, 5}) {
    Values x({rows, 8}), w({3, 8}), z({rows, 3}, 1), y({rows, 3});
    const auto status =
        RunOnce(*graph, {{x.tensor(), w.tensor(), z.tensor()}, {y.tensor()}}, context);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto expected = Expected(x, w, z);
    for (size_t i = 0; i < y.data.size(); ++i) EXPECT_NEAR(y.data[i], expected[i], 1e-5) << rows;
  }
}

TEST(Graph, RefusesWrongTensors) {
  atb::Context context(0);
  const auto graph = MakeNested();
  Values x({2, 8}), w({3, 7}), z({2, 3}), y({2, 3});
  EXPECT_EQ(RunOnce(*graph, {{x.tensor(), w.tensor(), z.tensor()}, {y.tensor()}}, context).code(),
            atb::ErrorType::kInvalidTensor);
  EXPECT_EQ(RunOnce(*graph, {{x.tensor()}, {y.tensor()}}, context).code(),
            atb::ErrorType::kInvalidTensor);
}

TEST(Graph, RefusesExecutionWithoutSetup) {
  atb::Context context(0);
  const auto graph = MakeNested();
  Values x({2, 8}), w({3, 8}), z({2, 3}), y({2, 3});
  EXPECT_FALSE(
      graph->Execute({{x.tensor(), w.tensor(), z.tensor()}, {y.tensor()}}, nullptr, 0, context)
          .ok());
}

TEST(Graph, RefusesTensorsThatNobodyWroteOrThatDoNotExist) {
  for (const uint32_t id : {2u, 9u}) {
    atb::GraphParam param;
    param.name = "Bad";
    param.inTensorNum = param.outTensorNum = param.internalTensorNum = 1;
    param.nodes.push_back({Make("ElewiseOperation", R"({"elewiseType":8})"), {0, id}, {1}, {}});
    EXPECT_EQ(atb::GraphOperation::create(std::move(param)).status.code(),
              atb::ErrorType::kInvalidGraph);
  }
}

TEST(Graph, ANodeMaySeeAnotherShape) {
  atb::GraphParam param;
  param.name = "Reshaped";
  param.inTensorNum = param.outTensorNum = 1;
  param.nodes.push_back(
      {Make("TransposeOperation", R"({"perm":[1,0]})"), {0}, {1}, {[](const atb::Dims& dims) {
         return atb::Dims{2, dims.count() / 2};
       }}});
  auto made = atb::GraphOperation::create(std::move(param));
  ASSERT_TRUE(made.status.ok());
  atb::Context context(0);
  Values x({6}), y({3, 2});
  ASSERT_TRUE(RunOnce(*made.operation, {{x.tensor()}, {y.tensor()}}, context).ok());
  for (size_t r = 0; r < 2; ++r)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(y.data[c * 2 + r], x.data[r * 3 + c]);
}

TEST(Graph, AChangedParameterTakesEffectAtTheNextSetup) {
  atb::Context context(0);
  const auto muls = Make("ElewiseOperation", R"({"elewiseType":2,"mulsParam":{"varAttr":3}})");
  Values x({4}), y({4});
  ASSERT_TRUE(RunOnce(*muls, {{x.tensor()}, {y.tensor()}}, context).ok());
  EXPECT_EQ(y.data[0], 3 * x.data[0]);
  ASSERT_TRUE(muls->UpdateParam(R"({"mulsParam":{"varAttr":5}})").ok());
  ASSERT_TRUE(RunOnce(*muls, {{x.tensor()}, {y.tensor()}}, context).ok());
  EXPECT_EQ(y.data[0], 5 * x.data[0]);
}

}  // namespace
