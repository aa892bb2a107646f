#include "metrics/elements.h"

#include <algorithm>

#include "metrics/kernels.h"

namespace ait::metrics {

void read_elements(const TensorView& view, size_t first, size_t count, std::vector<double>& out) {
  // The kernels read and write whole vectors, up to a block.
  constexpr size_t kSlack = 64;
  constexpr size_t kWidestElement = 8;
  out.resize(std::max(out.size(), count + kSlack));
  if (view.plain() && first + count + kSlack <= view.elements) {
    decode_f64(view.dtype, view.data + first * size_bytes(view.dtype), count, out.data());
    return;
  }
  std::vector<std::byte> raw((count + kSlack) * kWidestElement);
  gather(view, first, count, raw.data());
  decode_f64(view.dtype, raw.data(), count, out.data());
}

}  // namespace ait::metrics
