// Looking at and spoiling results after the fact.
#pragma once

#include <span>

#include "atb/fault.h"
#include "atb/types.h"

namespace atb::kernels {

// Whether a floating tensor holds +Inf or -Inf. NaN does not count, as on the device.
bool holds_infinity(const Tensor& tensor);

// Does to the floating tensors what the fault says its kernel does wrong. kEpsilon is left to the
// kernel itself.
void distort(const KernelFault& fault, std::span<const Tensor> out);

}  // namespace atb::kernels
