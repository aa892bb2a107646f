#include "golden/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensors.h"

namespace ait::golden {
namespace {

using ::testing::ElementsAre;

TEST(Array, ReadsATensorOfAnyRealType) {
  const auto tensor = make_tensor(DType::kInt8, {2, 3}, std::vector<int8_t>{1, -2, 3, 4, 5, -128});
  const Array array = read_array(tensor->view());
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(array.data, (std::vector<double>{1, -2, 3, 4, 5, -128}));
  EXPECT_EQ(array.rows(), 2u);
  EXPECT_EQ(array.row(1)[2], -128);
  EXPECT_EQ(array.dim(-1), 3u);
  EXPECT_EQ(array.dim(5), 1u);
}

// [2, 20] in pieces of 16 columns: two pieces, each with 16 rows of which two are used.
TEST(Array, ComesBackFromFractalOrder) {
  Array stored;
  stored.shape = {1, 2, 16, 16};
  stored.data.assign(2 * 16 * 16, 0);
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 20; ++column)
      stored.data[fractal_offset(row, column, 16, 16)] = static_cast<double>(100 * row + column);
  EXPECT_EQ(stored.data[16], 100) << "the second row follows the first within a piece";
  EXPECT_EQ(stored.data[256], 16) << "the second piece follows all rows of the first";
  const Array matrix = from_fractal(stored, 2, 20);
  EXPECT_EQ(matrix.shape, (Shape{2, 20}));
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 20; ++column)
      EXPECT_EQ(matrix.row(row)[column], static_cast<double>(100 * row + column));
}

TEST(Array, IsBroadcastAsNumpyDoes) {
  EXPECT_EQ(broadcast_shape({4, 1}, {3}), (Shape{4, 3}));
  EXPECT_EQ(broadcast_shape({}, {2, 2}), (Shape{2, 2}));
  EXPECT_EQ(broadcast_shape({0}, {1}), (Shape{0}));
  EXPECT_FALSE(broadcast_shape({4, 2}, {3}));
  const Array column{{2, 1}, {1, 2}};
  EXPECT_EQ(broadcast_to(column, {2, 3}).data, (std::vector<double>{1, 1, 1, 2, 2, 2}));
  const Array row{{3}, {1, 2, 3}};
  EXPECT_EQ(broadcast_to(row, {2, 3}).data, (std::vector<double>{1, 2, 3, 1, 2, 3}));
}

TEST(FallingOrder, KeepsEqualOnesInOrderAndPutsNanLast) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(falling_order(std::vector<double>{1, nan, 3, 1, -infinity, nan, 3}),
              ElementsAre(2, 6, 0, 3, 4, 1, 5));
  EXPECT_TRUE(falling_order({}).empty());
}

}  // namespace
}  // namespace ait::golden
