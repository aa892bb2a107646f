// Tensors as they lie in a file: a typed, shaped, strided look at bytes that somebody else owns.
//
//   const std::span<const std::byte> bytes = file->bytes();  // of a MappedFile, or any other owner
//   auto tensor = Tensor::contiguous(file, bytes, DType::kFloat32, {2, 3});
//   if (!tensor) return fail(tensor.error());  // kCorrupt: fewer bytes than the shape needs
//   std::vector<float> row(3);
//   gather(tensor->view(), 3, 3, std::as_writable_bytes(std::span(row)).data());  // the second row
//
// tests/tensor/example_test.cpp runs this example.
//
// Nothing is copied: Fortran order, views with a storage offset and foreign byte order are
// described by strides and a flag, and `gather` brings a stretch of elements into plain row-major
// order when asked.
//
// This is the main header of `tensor`. The others: dtype.h (the element types, and how to add one)
// and half.h (narrow floating-point values).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace ait {

using Shape = std::vector<int64_t>;
using Strides = std::vector<int64_t>;  // in elements

// numpy's own limit is 64; more is a corrupt header.
inline constexpr size_t kMaxRank = 64;

// Product of the dimensions (1 for rank 0), or nothing if one is negative or the product does not
// fit in 63 bits.
std::optional<size_t> count_elements(std::span<const int64_t> shape);
Strides row_major_strides(std::span<const int64_t> shape);
std::string shape_text(std::span<const int64_t> shape);  // "[1, 13, 4096]"

// A look that lives no longer than the call it is passed to.
struct TensorView {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // may be negative or zero
  const std::byte* data;             // the element with all indices 0
  size_t elements;
  bool byte_swapped = false;  // stored in the other byte order than this machine's

  size_t bytes() const { return elements * size_bytes(dtype); }
  // Row-major without gaps and in this machine's byte order: `data` can be read straight through.
  bool plain() const;
};

// Copies elements [first, first + count) in row-major order, native byte order, to `out`.
void gather(const TensorView& view, size_t first, size_t count, std::byte* out);

// A tensor that keeps what owns its bytes alive. Cheap to copy.
class Tensor {
 public:
  // Describes bytes at the start of `storage`, which `owner` keeps alive. Fails with kCorrupt when
  // the shape is impossible or reaches outside `storage`.
  static Result<Tensor> contiguous(std::shared_ptr<const void> owner,
                                   std::span<const std::byte> storage, DType dtype, Shape shape);
  // The same with strides and an offset in elements, none of them negative.
  static Result<Tensor> strided(std::shared_ptr<const void> owner,
                                std::span<const std::byte> storage, DType dtype, Shape shape,
                                Strides strides, uint64_t offset_elements);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  size_t elements() const { return elements_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  Tensor& set_byte_swapped(bool swapped) {
    byte_swapped_ = swapped;
    return *this;
  }

  TensorView view() const { return {dtype_, shape_, strides_, data_, elements_, byte_swapped_}; }

 private:
  Tensor() = default;

  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t elements_ = 0;
  Shape shape_;
  Strides strides_;
  DType dtype_ = DType::kUInt8;
  bool byte_swapped_ = false;
};

// A copy in row-major order and native byte order, in an unlinked, mapped file (MappedFile::
// temporary). `change` may alter each stretch of whole elements once it is there.
Result<Tensor> gathered(const TensorView& view,
                        const std::function<void(std::span<std::byte> stretch)>& change = nullptr);

// The tensor itself where it is plain, else such a copy.
Result<Tensor> in_row_major_order(const Tensor& tensor);

}  // namespace ait
