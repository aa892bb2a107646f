// Looking at and spoiling results after the fact.
#pragma once

#include <cstdint>
#include <span>

#include "atb/fault.h"
#include "atb/types.h"

namespace atb::kernels {

// Whether a floating tensor holds +Inf or -Inf. NaN does not count, as on the device.
bool holds_infinity(const Tensor& tensor);

// Does to the floating tensors what the fault says its kernel does wrong. kEpsilon is left to the
// kernel itself.
void distort(const KernelFault& fault, std::span<const Tensor> out);

// Moves every finite element of the floating tensors by up to `unit` times itself, by numbers that
// follow from the seed.
void perturb(float unit, uint64_t seed, std::span<const Tensor> out);

}  // namespace atb::kernels
