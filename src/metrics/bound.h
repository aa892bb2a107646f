// How far apart two tensors are at least, by what is known of each of them alone.
#pragma once

#include <optional>

#include "metrics/compare.h"

namespace ait::metrics {

// Statistics in a file are off by this part of themselves at most: they are written as float32
// (2^-23, since the shortest text may lie half a unit from it), and the older tools' means and
// norms are sums in float32, whose errors are those of a handful of roundings when it is done in
// pairs.
inline constexpr double kWrittenRounding = 0x1p-20;

// Statistics, and what they may be off by: a part of the norm, and an amount.
struct KnownSide {
  const Side& side;
  double relative_rounding = 0;
  double rounding = 0;
};

// The relative euclidean distance |golden - actual| / |golden| is no smaller. Both must have the same
// number of elements. Nothing where data are not all finite: their norm leaves out elements that the
// other side may have, so that it bounds nothing.
std::optional<double> distance_at_least(const KnownSide& golden, const KnownSide& actual);

}  // namespace ait::metrics
