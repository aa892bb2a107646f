// One query against the keys and values it may see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "atb/types.h"

namespace atb::kernels {

// Neighbouring rows of keys and values: a whole sequence, or what one block of a cache holds of it.
struct KeyRun {
  const uint8_t* keys;
  const uint8_t* values;
  size_t rows;
};

struct AttentionHead {
  DataType dtype;     // of keys and values
  size_t key_size;    // elements of a key row of one head
  size_t value_size;  // of a value row
  size_t key_stride;  // bytes from one row to the next
  size_t value_stride;
  float scale;
};

// out = softmax(scale * q K^T + bias) V over the first `visible` rows of the runs; `bias` is null
// or has a value for each of them. `scores` is scratch. No visible row: zeros.
void attend(const AttentionHead& head, const float* q, const std::vector<KeyRun>& runs,
            size_t visible, const float* bias, std::vector<float>& scores, float* out);

}  // namespace atb::kernels
