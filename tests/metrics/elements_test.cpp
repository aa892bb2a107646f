#include "metrics/elements.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <numeric>

namespace ait::metrics {
namespace {

using ::testing::ElementsAre;

template <typename T>
Tensor tensor_of(const std::vector<T>& values, DType dtype, Shape shape, Strides strides) {
  auto owner = std::make_shared<std::vector<T>>(values);
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const T>(*owner));
  auto tensor = Tensor::strided(owner, bytes, dtype, std::move(shape), std::move(strides), 0);
  EXPECT_TRUE(tensor);
  return *tensor;
}

std::vector<double> elements(const Tensor& tensor, size_t first, size_t count) {
  std::vector<double> out;
  read_elements(tensor.view(), first, count, out);
  EXPECT_GE(out.size(), count);
  out.resize(count);
  return out;
}

TEST(ReadElements, WidensAnyStretchInRowMajorOrder) {
  const Tensor halves =
      tensor_of<uint16_t>({0x3c00, 0x4000, 0xc200, 0x7c00}, DType::kFloat16, {2, 2}, {1, 2});
  EXPECT_THAT(elements(halves, 0, 4), ElementsAre(1.0, -3.0, 2.0, HUGE_VAL));
  EXPECT_THAT(elements(halves, 1, 2), ElementsAre(-3.0, 2.0));
  const Tensor wide = tensor_of<int64_t>({-1, (int64_t{1} << 53) + 1}, DType::kInt64, {2}, {1});
  EXPECT_THAT(elements(wide, 0, 2), ElementsAre(-1.0, 0x1p53));
  EXPECT_TRUE(elements(wide, 2, 0).empty());
}

TEST(ReadElements, TakesMoreThanABlockAndKeepsItsMemory) {
  std::vector<float> values(10000);
  std::iota(values.begin(), values.end(), 0.0F);
  const Tensor tensor = tensor_of(values, DType::kFloat32, {10000}, {1});
  std::vector<double> out;
  read_elements(tensor.view(), 1, 9999, out);
  for (size_t i = 0; i < 9999; ++i) ASSERT_EQ(out[i], static_cast<double>(i + 1));
  const double* memory = out.data();
  read_elements(tensor.view(), 0, 3, out);
  EXPECT_EQ(out.data(), memory);
  EXPECT_EQ(out[2], 2.0);
}

TEST(ReadElements, WritesNothingBehindThem) {
  const Tensor halves = tensor_of(std::vector<uint16_t>(200, 0x3c00), DType::kFloat16, {200}, {1});
  for (const size_t count : {0, 1, 7, 63, 64, 65, 129}) {
    std::vector<double> out(200, -1);
    read_elements(halves.view(), 5, count, out.data());
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i < count ? 1.0 : -1.0) << count;
  }
}

}  // namespace
}  // namespace ait::metrics
