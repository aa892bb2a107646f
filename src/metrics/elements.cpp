#include "metrics/elements.h"

#include <algorithm>

#include "metrics/kernels.h"

namespace ait::metrics {
namespace {

// The kernels write whole vectors, so that the last elements take a way of their own.
constexpr size_t kVector = 64;
constexpr size_t kWidestElement = 8;

void decode(DType dtype, const std::byte* data, size_t count, double* out) {
  const size_t whole = count / kVector * kVector;
  decode_f64(dtype, data, whole, out);
  double last[kVector];
  decode_f64(dtype, data + whole * size_bytes(dtype), count - whole, last);
  std::copy_n(last, count - whole, out + whole);
}

}  // namespace

void read_elements(const TensorView& view, size_t first, size_t count, double* out) {
  if (view.plain())
    return decode(view.dtype, view.data + first * size_bytes(view.dtype), count, out);
  std::vector<std::byte> raw(count * kWidestElement);
  gather(view, first, count, raw.data());
  decode(view.dtype, raw.data(), count, out);
}

void read_elements(const TensorView& view, size_t first, size_t count, std::vector<double>& out) {
  out.resize(std::max(out.size(), count));
  read_elements(view, first, count, out.data());
}

}  // namespace ait::metrics
