// The loops of random.cpp, compiled for every instruction set and chosen at run time: each gives the
// same numbers. Internal to this library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ait::api_check {

// Philox 4x32-10: the four numbers of each of `count` places from `first` on. `out` has room for a
// multiple of 8 places.
void philox(uint64_t key, uint32_t tensor, uint64_t first, size_t count, uint32_t* out);

// Spreads numbers of [0, 1) over [low, high]. There is room for a multiple of 8 of them.
void spread(double low, double high, size_t count, double* numbers);

}  // namespace ait::api_check
