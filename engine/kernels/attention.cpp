#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd.h"

namespace atb::kernels {

void attend(const AttentionHead& head, const float* q, const std::vector<KeyRun>& runs,
            size_t visible, const float* bias, std::vector<float>& scores, float* out) {
  std::fill_n(out, head.value_size, 0.0f);
  if (visible == 0) return;
  scores.resize(visible);
  const auto for_runs = [&](const auto& body) {
    size_t first = 0;
    for (const KeyRun& run : runs) {
      if (first == visible) break;
      const size_t rows = std::min(run.rows, visible - first);
      body(run, first, rows);
      first += rows;
    }
  };
  for_runs([&](const KeyRun& run, size_t first, size_t rows) {
    dot_rows(q, head.key_size, head.dtype, run.keys, head.key_stride, rows, scores.data() + first);
  });
  for (size_t j = 0; j < visible; ++j)
    scores[j] = scores[j] * head.scale + (bias == nullptr ? 0.0f : bias[j]);
  float largest = *std::max_element(scores.begin(), scores.end());
  if (largest == -HUGE_VALF) {  // all masked out: the average, not 0/0
    std::fill(scores.begin(), scores.end(), 0.0f);
    largest = 0;
  }
  const float sum = exp_and_sum(scores.data(), visible, largest);
  for_runs([&](const KeyRun& run, size_t first, size_t rows) {
    add_weighted_rows(scores.data() + first, head.dtype, run.values, head.value_stride, rows,
                      head.value_size, out);
  });
  for (size_t i = 0; i < head.value_size; ++i) out[i] /= sum;
}

}  // namespace atb::kernels
