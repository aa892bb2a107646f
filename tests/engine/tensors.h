// Tensors for the tests of the embedded acceleration library.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "atb/graph_operation.h"

namespace atb_test {

// fp32 values with a shape.
struct Values {
  Values(atb::Dims dims, float first = 0) : data(static_cast<size_t>(dims.count())), shape(dims) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = first + 0.25f * static_cast<float>(i % 7) - 0.5f;
  }
  atb::Tensor tensor() { return {{atb::DataType::kFloat, shape}, data.data()}; }

  std::vector<float> data;
  atb::Dims shape;
};

inline std::unique_ptr<atb::Operation> Make(const std::string& type, const std::string& param) {
  auto made = atb::CreateOperation(type, param);
  EXPECT_TRUE(made.status.ok()) << made.status.message();
  return std::move(made.operation);
}

// y = (x W^T) + z, then a nested graph that doubles it: "Outer" with a Linear, an add and "Inner".
inline std::unique_ptr<atb::Operation> MakeNested() {
  atb::GraphParam inner;
  inner.name = "Inner";
  inner.inTensorNum = inner.outTensorNum = 1;
  inner.nodes.push_back({Make("ElewiseOperation", R"({"elewiseType":8})"), {0, 0}, {1}, {}});
  auto made_inner = atb::GraphOperation::create(std::move(inner));
  EXPECT_TRUE(made_inner.status.ok());
  atb::GraphParam outer;
  outer.name = "Outer";
  outer.inTensorNum = 3;
  outer.outTensorNum = 1;
  outer.internalTensorNum = 2;
  outer.nodes.push_back({Make("LinearOperation", R"({"hasBias":false})"), {0, 1}, {4}, {}});
  outer.nodes.push_back({Make("ElewiseOperation", R"({"elewiseType":8})"), {4, 2}, {5}, {}});
  outer.nodes.push_back({std::move(made_inner.operation), {5}, {3}, {}});
  auto made = atb::GraphOperation::create(std::move(outer));
  EXPECT_TRUE(made.status.ok()) << made.status.message();
  return std::move(made.operation);
}

// Setup and Execute with a workspace of the size asked for.
inline atb::Status RunOnce(atb::Operation& operation, const atb::VariantPack& pack,
                           atb::Context& context) {
  uint64_t bytes = 0;
  if (auto status = operation.Setup(pack, bytes, context); !status.ok()) return status;
  std::vector<uint8_t> workspace(bytes);
  return operation.Execute(pack, workspace.data(), bytes, context);
}

}  // namespace atb_test
