#include "kernels/quantise.h"

#include <algorithm>
#include <cmath>

namespace atb::kernels {

void quantise_by(const float* x, size_t count, float factor, float offset, int8_t* q) {
  for (size_t i = 0; i < count; ++i) {
    const float rounded = std::nearbyint(x[i] * factor + offset);
    // NaN has no place in int8; min in this order makes it 127.
    q[i] = static_cast<int8_t>(std::max(-128.0f, std::min(127.0f, rounded)));
  }
}

float quantise_row(const float* x, size_t count, int8_t* q) {
  float largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  if (largest == 0) {
    std::fill_n(q, count, int8_t{0});
    return 0;
  }
  const float scale = largest / 127;
  for (size_t i = 0; i < count; ++i) {
    const float rounded = std::nearbyint(x[i] / scale);
    q[i] = static_cast<int8_t>(std::max(-128.0f, std::min(127.0f, rounded)));
  }
  return scale;
}

TensorDesc row_scales(const TensorDesc& x) {
  TensorDesc scales{DataType::kFloat, {}};
  for (size_t i = 0; i + 1 < x.dims.size(); ++i) scales.dims.push_back(x.dims[i]);
  return scales;
}

}  // namespace atb::kernels
