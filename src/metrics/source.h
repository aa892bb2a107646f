// A tensor as a stream of real numbers in row-major order, handed out block by block. Internal to
// this library.
#pragma once

#include <cstddef>

#include "metrics/block.h"
#include "metrics/kernels.h"

namespace ait::metrics {

// Complex tensors count as twice as many reals; tensors that are not plain are gathered into the
// caller's scratch.
class Source {
 public:
  // Enough for a block of any type.
  static constexpr size_t kScratchBytes = kBlockElements * 16;

  explicit Source(const TensorView& view)
      : view_(view),
        plain_(view.plain()),
        parts_(info(view.dtype).kind == DTypeKind::kComplex ? 2 : 1),
        real_(real_type(view.dtype)) {}

  size_t elements() const { return view_.elements * parts_; }
  DType dtype() const { return real_; }
  bool plain() const { return plain_; }  // block() does not touch its scratch

  // How many reals the last dimension has; a tensor of rank 0 is one row.
  size_t row_elements() const {
    return view_.shape.empty() ? parts_ : static_cast<size_t>(view_.shape.back()) * parts_;
  }

  // Reals [first, first + count), native and contiguous. Both numbers are even for complex tensors.
  const void* block(size_t first, size_t count, std::byte* scratch) const {
    if (plain_) return view_.data + first * size_bytes(real_);
    gather(view_, first / parts_, count / parts_, scratch);
    return scratch;
  }

 private:
  static DType real_type(DType dtype) {
    switch (dtype) {
      case DType::kComplex32:
        return DType::kFloat16;
      case DType::kComplex64:
        return DType::kFloat32;
      case DType::kComplex128:
        return DType::kFloat64;
      default:
        return dtype;
    }
  }

  TensorView view_;
  bool plain_;
  size_t parts_;
  DType real_;
};

// Counts the values that are not finite and moves the finite ones to the front of `values`; returns
// how many these are.
size_t split_non_finite(double* values, size_t elements, SideBlock& side);

// Side values of a whole tensor from the sums over its blocks.
struct SideTotal {
  Sum sum;
  Sum squares;
  Sum magnitudes;
  double minimum = kInfinity;
  double maximum = -kInfinity;
  size_t nan = 0;
  size_t positive_inf = 0;
  size_t negative_inf = 0;

  template <typename Part>  // SideBlock or SideTotal
  void add(const Part& part) {
    sum.add(part.sum);
    squares.add(part.squares);
    magnitudes.add(part.magnitudes);
    minimum = std::min(minimum, part.minimum);
    maximum = std::max(maximum, part.maximum);
    nan += part.nan;
    positive_inf += part.positive_inf;
    negative_inf += part.negative_inf;
  }

  // The largest magnitude of a finite element, 0 if there is none.
  double magnitude() const {
    return maximum < minimum ? 0 : std::max(std::fabs(minimum), std::fabs(maximum));
  }
  Side finish(size_t elements, double scale) const;
};

// The power of two that brings `magnitude` near 1, where squares of such values could leave the
// range of double; otherwise 1.
double protective_scale(double magnitude);

}  // namespace ait::metrics
