#include "metrics/elements.h"

#include <algorithm>

#include "metrics/kernels.h"

namespace ait::metrics {

void read_elements(const TensorView& view, size_t first, size_t count, std::vector<double>& out) {
  // The kernels read and write whole vectors, up to a block.
  constexpr size_t kSlack = 64;
  constexpr size_t kWidestElement = 8;
  std::vector<std::byte> raw((count + kSlack) * kWidestElement);
  out.resize(std::max(out.size(), count + kSlack));
  gather(view, first, count, raw.data());
  decode_f64(view.dtype, raw.data(), count, out.data());
}

}  // namespace ait::metrics
