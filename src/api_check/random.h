// Inputs for functions of which only the extremes of the inputs are known. The same on every machine,
// for any number of threads and whatever was drawn before: each value is a function of the seed, the
// call's key, the tensor's number and its own place (Philox 4x32-10; Salmon et al., SC 2011).
//
//   std::vector<float> x(1000);
//   draw_reals({1234, "Torch*cat*0", 0}, DType::kFloat32, -1, 1, x.size(), x.data());
//   x.front();  // -1: the first element is the lowest, the last the highest
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace ait::api_check {

struct Stream {
  uint64_t seed;
  std::string_view key;
  uint32_t tensor;
};

// Whether draw_reals or draw_integers can fill a tensor of this type.
bool is_real(DType dtype);
bool is_integer(DType dtype);

// Behind the first 65537 elements their values come again.
//
// Evenly over [low, high], both finite and low <= high, rounded to the type. The first element is
// `low` and the last `high`, so that the extremes are there; a single one is `high`.
void draw_reals(const Stream& stream, DType dtype, double low, double high, size_t elements,
                void* out);

// The same of whole numbers.
void draw_integers(const Stream& stream, DType dtype, int64_t low, int64_t high, size_t elements,
                   void* out);

// Exactly `true_count` of the elements are true.
void draw_mask(const Stream& stream, size_t true_count, size_t elements, void* out);

// Of the two values only, each as often as the other: masks that are added to scores.
void draw_either(const Stream& stream, DType dtype, double low, double high, size_t elements,
                 void* out);

// Makes each element larger or smaller by the share `size`, unless it would overflow. Of float32 and
// float64.
void move_reals(const Stream& stream, DType dtype, double size, size_t elements, void* out);

}  // namespace ait::api_check
