// The example at the head of metrics/compare.h.
#include "metrics/compare.h"

#include <gtest/gtest.h>

namespace ait {
namespace {

Result<bool> are_alike(const Tensor& golden, const Tensor& actual) {
  metrics::Request request;
  auto compared = metrics::compare(golden.view(), actual.view(), request);
  if (!compared) return fail(compared.error());
  return compared->cosine_similarity > 0.999;
}

Tensor tensor_of(const std::vector<float>& values) {
  const auto owner = std::make_shared<const std::vector<float>>(values);
  return Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kFloat32,
                            {static_cast<int64_t>(values.size())})
      .value();
}

TEST(MetricsExample, TellsAlikeFromDifferent) {
  EXPECT_TRUE(are_alike(tensor_of({1, 2, 3}), tensor_of({1, 2, 3.01f})).value());
  EXPECT_FALSE(are_alike(tensor_of({1, 2, 3}), tensor_of({3, 2, 1})).value());
  EXPECT_EQ(are_alike(tensor_of({1, 2, 3}), tensor_of({1, 2})).error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace ait
