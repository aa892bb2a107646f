#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace ait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Bytes in a vector that a tensor keeps alive.
template <typename T>
struct Storage {
  explicit Storage(size_t count) : values(std::make_shared<std::vector<T>>(count)) {
    std::iota(values->begin(), values->end(), T{});
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(*values)); }
  std::shared_ptr<std::vector<T>> values;
};

template <typename T>
std::vector<T> gathered(const TensorView& view, size_t first, size_t count) {
  std::vector<T> out(count);
  gather(view, first, count, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

template <typename T>
std::vector<T> gathered(const TensorView& view) {
  return gathered<T>(view, 0, view.elements);
}

TEST(CountElements, MultipliesTheDimensions) {
  EXPECT_EQ(count_elements({}), 1u);
  EXPECT_EQ(count_elements(Shape{2, 3, 4}), 24u);
  EXPECT_EQ(count_elements(Shape{5, 0, 4}), 0u);
  EXPECT_EQ(count_elements(Shape{kHuge}), static_cast<size_t>(kHuge));
}

TEST(CountElements, RefusesWhatNoTensorCanBe) {
  EXPECT_EQ(count_elements(Shape{-1}), std::nullopt);
  EXPECT_EQ(count_elements(Shape{0, -1}), std::nullopt);
  EXPECT_EQ(count_elements(Shape{kHuge, 2}), std::nullopt);
  EXPECT_EQ(count_elements(Shape{int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(count_elements(Shape{0, kHuge, kHuge}), std::nullopt);
  EXPECT_EQ(count_elements(Shape(kMaxRank + 1, 1)), std::nullopt);
  EXPECT_EQ(count_elements(Shape(kMaxRank, 1)), 1u);
}

TEST(RowMajorStrides, CountElementsFromTheLastDimension) {
  EXPECT_THAT(row_major_strides(Shape{2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(row_major_strides(Shape{2, 0, 4}), ElementsAre(4, 4, 1));
  EXPECT_TRUE(row_major_strides(Shape{}).empty());
}

TEST(ShapeText, LooksLikeTorch) {
  EXPECT_EQ(shape_text(Shape{1, 13, 4096}), "[1, 13, 4096]");
  EXPECT_EQ(shape_text(Shape{}), "[]");
}

TEST(TensorContiguous, DescribesBytesWithoutCopying) {
  const Storage<float> storage(6);
  const auto tensor = Tensor::contiguous(storage.values, storage.bytes(), DType::kFloat32, {2, 3});
  ASSERT_TRUE(tensor.has_value());
  EXPECT_EQ(tensor->view().data, storage.bytes().data());
  EXPECT_EQ(tensor->elements(), 6u);
  EXPECT_EQ(tensor->view().bytes(), 24u);
  EXPECT_THAT(tensor->strides(), ElementsAre(3, 1));
  EXPECT_TRUE(tensor->view().plain());
}

TEST(TensorContiguous, KeepsTheOwnerAlive) {
  Storage<int32_t> storage(1);
  const std::weak_ptr<std::vector<int32_t>> watch = storage.values;
  {
    const auto tensor = Tensor::contiguous(storage.values, storage.bytes(), DType::kInt32, {1});
    storage.values.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(TensorContiguous, TakesScalarsAndEmptyTensors) {
  const Storage<float> storage(1);
  const auto scalar = Tensor::contiguous(storage.values, storage.bytes(), DType::kFloat32, {});
  ASSERT_TRUE(scalar.has_value());
  EXPECT_EQ(scalar->elements(), 1u);
  EXPECT_THAT(gathered<float>(scalar->view()), ElementsAre(0.0f));
  const auto empty = Tensor::contiguous(nullptr, {}, DType::kFloat32, {3, 0});
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(empty->elements(), 0u);
  EXPECT_TRUE(empty->view().plain());
}

TEST(TensorContiguous, RefusesAShapeThatReachesPastTheBytes) {
  const Storage<float> storage(6);
  const auto tensor = Tensor::contiguous(storage.values, storage.bytes(), DType::kFloat32, {7});
  ASSERT_FALSE(tensor.has_value());
  EXPECT_EQ(tensor.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(tensor.error().text(), HasSubstr("needs 7 elements but 6 are there"));
}

TEST(TensorContiguous, RefusesAnElementThatIsCutOff) {
  const Storage<uint8_t> storage(7);
  EXPECT_FALSE(
      Tensor::contiguous(storage.values, storage.bytes(), DType::kFloat32, {2}).has_value());
  EXPECT_TRUE(
      Tensor::contiguous(storage.values, storage.bytes(), DType::kFloat32, {1}).has_value());
}

TEST(TensorContiguous, RefusesProductsThatWrapAround) {
  const Storage<uint8_t> storage(64);
  const std::vector<Shape> shapes = {{int64_t{1} << 32, int64_t{1} << 32},
                                     {kHuge},
                                     {kHuge, 2},
                                     {-1},
                                     {-1, -1},
                                     {int64_t{1} << 61, 2, 2}};
  for (const Shape& shape : shapes)
    for (const DType dtype : {DType::kUInt8, DType::kFloat64, DType::kComplex128})
      EXPECT_FALSE(Tensor::contiguous(storage.values, storage.bytes(), dtype, shape).has_value())
          << shape_text(shape) << " " << name(dtype);
}

TEST(TensorStrided, SeesATransposeInRowMajorOrder) {
  const Storage<int16_t> storage(6);
  const auto tensor =
      Tensor::strided(storage.values, storage.bytes(), DType::kInt16, {3, 2}, {1, 3}, 0);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_FALSE(tensor->view().plain());
  EXPECT_THAT(gathered<int16_t>(tensor->view()), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(TensorStrided, StartsAtItsOffset) {
  const Storage<int64_t> storage(10);
  const auto tensor =
      Tensor::strided(storage.values, storage.bytes(), DType::kInt64, {2, 2}, {4, 1}, 3);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_THAT(gathered<int64_t>(tensor->view()), ElementsAre(3, 4, 7, 8));
}

TEST(TensorStrided, RepeatsAnElementWhereTheStrideIsZero) {
  const Storage<int32_t> storage(1);
  const auto tensor =
      Tensor::strided(storage.values, storage.bytes(), DType::kInt32, {2, 2}, {0, 0}, 0);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_THAT(gathered<int32_t>(tensor->view()), ElementsAre(0, 0, 0, 0));
}

TEST(TensorStrided, RefusesWhatReachesOutside) {
  const Storage<uint8_t> storage(16);
  struct Attempt {
    Shape shape;
    Strides strides;
    uint64_t offset;
  };
  const Attempt attempts[] = {
      {{2}, {16}, 0},               // the second element is one too far
      {{1}, {1}, 16},               // the first one is
      {{1}, {1}, ~uint64_t{0}},     // an offset near the end of the address space
      {{2}, {kHuge}, 2},            // offset and stride together wrap around
      {{3}, {kHuge}, 0},            // the product wraps around
      {{2, 2}, {kHuge, kHuge}, 0},  // the sum does
      {{2}, {-1}, 5},               // files have no negative strides
      {{2, 2}, {1}, 0},             // too few strides
      {{}, {1}, 0},                 // too many
      {{int64_t{1} << 33, int64_t{1} << 33},
       {0, 0},
       0},  // no bytes needed, but no countable tensor either
  };
  for (const Attempt& attempt : attempts)
    EXPECT_FALSE(Tensor::strided(storage.values, storage.bytes(), DType::kUInt8, attempt.shape,
                                 attempt.strides, attempt.offset)
                     .has_value())
        << shape_text(attempt.shape) << " " << shape_text(attempt.strides) << " " << attempt.offset;
}

TEST(TensorStrided, OfNoElementsMayPointAnywhere) {
  const auto tensor = Tensor::strided(nullptr, {}, DType::kFloat64, {0, 5}, {kHuge, 1}, 1'000'000);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_EQ(tensor->elements(), 0u);
}

TEST(Plain, IgnoresTheStrideOfADimensionOfOne) {
  const Storage<float> storage(6);
  const auto tensor = Tensor::strided(storage.values, storage.bytes(), DType::kFloat32,
                                      {1, 3, 1, 2}, {99, 2, 77, 1}, 0);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_TRUE(tensor->view().plain());
}

TEST(Plain, ForeignByteOrderIsNotPlainUnlessElementsAreBytes) {
  const Storage<uint8_t> storage(4);
  auto wide = Tensor::contiguous(storage.values, storage.bytes(), DType::kInt16, {2});
  auto narrow = Tensor::contiguous(storage.values, storage.bytes(), DType::kInt8, {4});
  ASSERT_TRUE(wide && narrow);
  EXPECT_FALSE(wide->set_byte_swapped(true).view().plain());
  EXPECT_TRUE(narrow->set_byte_swapped(true).view().plain());
}

TEST(Gather, TurnsForeignByteOrderRound) {
  const Storage<uint8_t> storage(16);
  auto words = Tensor::contiguous(storage.values, storage.bytes(), DType::kUInt32, {4});
  ASSERT_TRUE(words.has_value());
  words->set_byte_swapped(true);
  EXPECT_THAT(gathered<uint32_t>(words->view()),
              ElementsAre(0x00010203u, 0x04050607u, 0x08090a0bu, 0x0c0d0e0fu));
}

TEST(Gather, TurnsTheTwoPartsOfAComplexNumberRoundEachForItself) {
  const Storage<uint8_t> storage(8);
  auto numbers = Tensor::contiguous(storage.values, storage.bytes(), DType::kComplex64, {1});
  ASSERT_TRUE(numbers.has_value());
  numbers->set_byte_swapped(true);
  std::array<uint8_t, 8> out{};
  gather(numbers->view(), 0, 1, reinterpret_cast<std::byte*>(out.data()));
  EXPECT_THAT(out, ElementsAre(3, 2, 1, 0, 7, 6, 5, 4));
}

TEST(Gather, FollowsNegativeStrides) {
  const Storage<int32_t> storage(6);
  const Shape shape = {2, 3};
  const Strides strides = {-3, -1};
  const TensorView view{DType::kInt32, shape, strides, storage.bytes().data() + 5 * sizeof(int32_t),
                        6};
  EXPECT_THAT(gathered<int32_t>(view), ElementsAre(5, 4, 3, 2, 1, 0));
}

TEST(Gather, OfNothingTouchesNothing) {
  const auto tensor = Tensor::contiguous(nullptr, {}, DType::kFloat32, {0});
  ASSERT_TRUE(tensor.has_value());
  gather(tensor->view(), 0, 0, nullptr);
}

TEST(RowMajorOrder, IsACopyOnlyWhereItHasToBe) {
  const Storage<int32_t> storage(6);
  const auto plain = Tensor::contiguous(storage.values, storage.bytes(), DType::kInt32, {2, 3});
  const auto turned =
      Tensor::strided(storage.values, storage.bytes(), DType::kInt32, {3, 2}, {1, 3}, 0);
  ASSERT_TRUE(plain && turned);
  const auto same = in_row_major_order(*plain);
  const auto copy = in_row_major_order(*turned);
  ASSERT_TRUE(same && copy);
  EXPECT_EQ(same->view().data, plain->view().data);
  EXPECT_TRUE(copy->view().plain());
  EXPECT_EQ(copy->shape(), (Shape{3, 2}));
  EXPECT_THAT(gathered<int32_t>(copy->view()), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Gathered, HandsOutEveryElementOnceHoweverLargeTheTensor) {
  constexpr int64_t kColumns = 300001;  // of 3 rows, more than one stretch
  const Storage<int32_t> storage(3 * kColumns);
  const auto turned = Tensor::strided(storage.values, storage.bytes(), DType::kInt32, {kColumns, 3},
                                      {1, kColumns}, 0);
  ASSERT_TRUE(turned);
  size_t stretches = 0;
  const auto copy = ait::gathered(turned->view(), [&](std::span<std::byte> stretch) {
    ++stretches;
    for (std::byte& byte : stretch) byte = ~byte;
  });
  ASSERT_TRUE(copy);
  EXPECT_GT(stretches, 1u);
  const std::vector<int32_t> values = gathered<int32_t>(copy->view());
  ASSERT_EQ(values.size(), static_cast<size_t>(3 * kColumns));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(~values[i], static_cast<int32_t>(i / 3 + i % 3 * kColumns));
}

// Random shapes, strides and offsets, against the definition of a strided tensor.
struct Layout {
  Shape shape;
  Strides strides;
  uint64_t offset;
};

Layout random_layout() {
  const auto rank = *rc::gen::inRange<size_t>(0, 5);
  Layout layout;
  layout.shape = *rc::gen::container<Shape>(rank, rc::gen::inRange<int64_t>(0, 5));
  layout.strides = *rc::gen::container<Strides>(rank, rc::gen::inRange<int64_t>(0, 12));
  layout.offset = *rc::gen::inRange<uint64_t>(0, 20);
  return layout;
}

std::vector<uint64_t> element_positions(const Layout& layout) {
  std::vector<uint64_t> positions = {layout.offset};
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    std::vector<uint64_t> finer;
    for (const uint64_t position : positions)
      for (int64_t i = 0; i < layout.shape[d]; ++i)
        finer.push_back(position + static_cast<uint64_t>(i * layout.strides[d]));
    positions = std::move(finer);
  }
  return positions;
}

RC_GTEST_PROP(TensorStrided, IsAcceptedExactlyWhenEveryElementLiesInside, ()) {
  const Layout layout = random_layout();
  const Storage<uint16_t> storage(*rc::gen::inRange<size_t>(0, 80));
  const std::vector<uint64_t> positions = element_positions(layout);
  const bool inside = std::all_of(positions.begin(), positions.end(), [&](uint64_t position) {
    return position < storage.values->size();
  });
  const auto tensor = Tensor::strided(storage.values, storage.bytes(), DType::kUInt16, layout.shape,
                                      layout.strides, layout.offset);
  RC_ASSERT(tensor.has_value() == inside);
}

RC_GTEST_PROP(Gather, GivesAnyStretchOfARandomLayout, ()) {
  const Layout layout = random_layout();
  const std::vector<uint64_t> positions = element_positions(layout);
  const Storage<uint16_t> storage(300);
  const auto tensor = Tensor::strided(storage.values, storage.bytes(), DType::kUInt16, layout.shape,
                                      layout.strides, layout.offset);
  RC_ASSERT(tensor.has_value());
  RC_ASSERT(tensor->elements() == positions.size());
  const auto first = *rc::gen::inRange<size_t>(0, positions.size() + 1);
  const auto count = *rc::gen::inRange<size_t>(0, positions.size() - first + 1);
  const auto values = gathered<uint16_t>(tensor->view(), first, count);
  for (size_t i = 0; i < count; ++i) RC_ASSERT(values[i] == positions[first + i]);
}

RC_GTEST_PROP(Plain, MeansThatReadingStraightThroughIsTheSame, ()) {
  const Layout layout = random_layout();
  const Storage<uint16_t> storage(300);
  const auto tensor = Tensor::strided(storage.values, storage.bytes(), DType::kUInt16, layout.shape,
                                      layout.strides, layout.offset);
  RC_ASSERT(tensor.has_value());
  const std::vector<uint64_t> positions = element_positions(layout);
  bool straight = true;
  for (size_t i = 0; i < positions.size(); ++i)
    straight = straight && positions[i] == layout.offset + i;
  RC_ASSERT(tensor->view().plain() == straight);
}

RC_GTEST_PROP(TensorStrided, SurvivesArbitraryNumbers,
              (Shape shape, Strides strides, uint64_t offset)) {
  const Storage<uint8_t> storage(32);
  strides.resize(shape.size());
  const auto tensor =
      Tensor::strided(storage.values, storage.bytes(), DType::kUInt8, shape, strides, offset);
  if (!tensor || tensor->elements() > 10'000) return;
  std::vector<std::byte> out(tensor->elements());
  gather(tensor->view(), 0, tensor->elements(), out.data());  // under ASan: nothing outside is read
}

}  // namespace
}  // namespace ait
