// The example at the head of tensor/tensor.h.
#include <gmock/gmock.h>

#include <cstring>

#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace ait {
namespace {

Result<std::vector<float>> second_row(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  auto tensor = Tensor::contiguous(file, bytes, DType::kFloat32, {2, 3});
  if (!tensor) return fail(tensor.error());
  std::vector<float> row(3);
  gather(tensor->view(), 3, 3, std::as_writable_bytes(std::span(row)).data());
  return row;
}

std::shared_ptr<const MappedFile> file_of(const std::vector<float>& values) {
  return MappedFile::temporary(values.size() * sizeof(float),
                               [&](std::span<std::byte> out) -> Result<void> {
                                 std::memcpy(out.data(), values.data(), out.size());
                                 return {};
                               })
      .value();
}

TEST(TensorExample, GathersTheSecondRow) {
  EXPECT_THAT(second_row(file_of({0, 1, 2, 3, 4, 5})).value(), testing::ElementsAre(3, 4, 5));
  EXPECT_EQ(second_row(file_of({0, 1, 2, 3, 4})).error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ait
