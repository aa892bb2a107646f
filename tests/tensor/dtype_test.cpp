#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace ait {
namespace {

TEST(DType, EveryNameReadsBackAsItself) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(dtype)), dtype) << name(dtype);
    EXPECT_EQ(parse_dtype("torch." + std::string(name(dtype))), dtype) << name(dtype);
  }
}

TEST(DType, SizesAreThoseOfOneElement) {
  EXPECT_EQ(size_bytes(DType::kBool), 1u);
  EXPECT_EQ(size_bytes(DType::kUInt16), 2u);
  EXPECT_EQ(size_bytes(DType::kBFloat16), 2u);
  EXPECT_EQ(size_bytes(DType::kFloat32), 4u);
  EXPECT_EQ(size_bytes(DType::kInt64), 8u);
  EXPECT_EQ(size_bytes(DType::kFloat8E8M0FNU), 1u);
  EXPECT_EQ(size_bytes(DType::kComplex32), 4u);
  EXPECT_EQ(size_bytes(DType::kComplex128), 16u);
  EXPECT_EQ(size_bytes(DType::kFloat4Packed), 1u);
}

TEST(DType, KindsTellHowToCompare) {
  EXPECT_EQ(info(DType::kBool).kind, DTypeKind::kInteger);
  EXPECT_EQ(info(DType::kUInt64).kind, DTypeKind::kInteger);
  EXPECT_EQ(info(DType::kFloat8E5M2).kind, DTypeKind::kFloat);
  EXPECT_EQ(info(DType::kComplex64).kind, DTypeKind::kComplex);
  EXPECT_EQ(info(DType::kInt4Packed).kind, DTypeKind::kPacked);
}

TEST(DType, TheUsualShortNamesAreKnown) {
  for (const auto* half : {"half", "fp16", "f2", "float16", "torch.half"})
    EXPECT_EQ(parse_dtype(half), DType::kFloat16);
  EXPECT_EQ(parse_dtype("bf16"), DType::kBFloat16);
  EXPECT_EQ(parse_dtype("long"), DType::kInt64);
  EXPECT_EQ(parse_dtype("u1"), DType::kUInt8);
  EXPECT_EQ(parse_dtype("double"), DType::kFloat64);
}

TEST(DType, AnythingElseIsNotAType) {
  for (const auto* word : {"", "torch.", "float128", "FLOAT16", " float16", "float16 "}) {
    EXPECT_EQ(parse_dtype(word), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace ait
