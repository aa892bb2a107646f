#include "formats/raw.h"

#include <gmock/gmock.h>

#include "test_files.h"

namespace ait::formats::raw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Raw : public testing::Test {
 protected:
  Result<std::unique_ptr<TensorFile>> open_as(const std::string& bytes, DType dtype,
                                              std::optional<Shape> shape = std::nullopt) {
    return open(folder_.map(bytes), {dtype, std::move(shape)});
  }

  TempFolder folder_;
};

TEST_F(Raw, IsOneDimensionOfAllElementsUnlessAShapeIsGiven) {
  const std::string bytes = bytes_of<int32_t>({1, 2, 3, 4});
  const auto flat = open_as(bytes, DType::kInt32).value()->load(0).value();
  EXPECT_THAT(flat.shape(), ElementsAre(4));
  EXPECT_THAT(values_of<int32_t>(flat), ElementsAre(1, 2, 3, 4));
  const auto square = open_as(bytes, DType::kInt32, Shape{2, 2}).value();
  EXPECT_THAT(square->load(0).value().shape(), ElementsAre(2, 2));
  EXPECT_EQ(square->format(), "raw");
  EXPECT_EQ(square->note(), "");
}

TEST_F(Raw, RefusesHalfElements) {
  const auto file = open_as("12345", DType::kFloat16);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(file.error().text(), HasSubstr("5 bytes are not a whole number of float16 elements"));
}

TEST_F(Raw, RefusesFewerBytesThanTheShapeNeeds) {
  const auto file = open_as("12345678", DType::kFloat32, Shape{3});
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().text(), HasSubstr("needs 12 bytes but 8 are there"));
}

TEST_F(Raw, RefusesImpossibleShapes) {
  for (const Shape& shape :
       {Shape{-1}, Shape{INT64_MAX, 2}, Shape{INT64_MAX}, Shape(kMaxRank + 1, 1)})
    EXPECT_EQ(open_as("12345678", DType::kFloat32, shape).error().code(), ErrorCode::kUsage);
}

TEST_F(Raw, NotesSurplusBytes) {
  EXPECT_THAT(open_as("12345", DType::kUInt8, Shape{2}).value()->note(),
              HasSubstr("3 bytes follow"));
}

TEST_F(Raw, TakesAnEmptyFileForAnEmptyTensor) {
  EXPECT_THAT(open_as("", DType::kFloat32).value()->load(0).value().shape(), ElementsAre(0));
}

}  // namespace
}  // namespace ait::formats::raw
