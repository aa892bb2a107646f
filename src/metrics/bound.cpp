#include "metrics/bound.h"

#include <algorithm>
#include <cmath>

namespace ait::metrics {
namespace {

bool all_finite(const Side& side) {
  return std::isfinite(side.maximum) && std::isfinite(side.minimum) && std::isfinite(side.mean) &&
         std::isfinite(side.l2_norm);
}

}  // namespace

// Two tensors whose norms, means or extremes are this far apart are themselves at least as far
// apart: | |g| - |m| | <= |g - m| (triangle inequality), sqrt(n) |mean(g) - mean(m)| <= |g - m|
// (Cauchy-Schwarz), and maxima and minima cannot differ by more than the largest difference of two
// elements, which is no larger than |g - m|. Relative to |g|. What the numbers may be off by for
// being rounded is taken off: extremes and sqrt(n) times the mean are no larger than the norm.
std::optional<double> distance_at_least(const KnownSide& golden, const KnownSide& actual) {
  const Side& g = golden.side;
  const Side& m = actual.side;
  if (!all_finite(g) || !all_finite(m)) return std::nullopt;
  const double golden_part = golden.relative_rounding * g.l2_norm;
  const double actual_part = actual.relative_rounding * m.l2_norm;
  const double rounding = golden.rounding + actual.rounding;
  const auto apart_by = [&](double one, double other, double weight) {
    return (std::abs(one - other) - rounding) * weight - golden_part - actual_part;
  };
  const double apart =
      std::max({0.0, apart_by(g.l2_norm, m.l2_norm, 1),
                apart_by(g.mean, m.mean, std::sqrt(static_cast<double>(g.elements))),
                apart_by(g.maximum, m.maximum, 1), apart_by(g.minimum, m.minimum, 1)});
  if (apart == 0) return 0;
  const double scale = g.l2_norm + golden_part + golden.rounding;
  return scale > 0 ? std::optional(apart / scale) : std::nullopt;
}

}  // namespace ait::metrics
