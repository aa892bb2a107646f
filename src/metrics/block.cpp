#include "metrics/block.h"

#include "metrics/source.h"

namespace ait::metrics {
namespace {

// Squares of values within these bounds, and sums of 2^64 of them, stay clear of overflow and
// underflow.
constexpr double kLargeMagnitude = 0x1p400;
constexpr double kSmallMagnitude = 0x1p-400;
constexpr int kMaxScaleExponent = 1000;

}  // namespace

void KlSums::add(const KlSums& other) {
  if (other.golden_shift == -kInfinity) return;
  if (golden_shift == -kInfinity) {
    *this = other;
    return;
  }
  const double golden_top = std::max(golden_shift, other.golden_shift);
  const double actual_top = std::max(actual_shift, other.actual_shift);
  double weights = 0;
  double actual = 0;
  double difference = 0;
  for (const KlSums* part : {static_cast<const KlSums*>(this), &other}) {
    const double golden_move = part->golden_shift - golden_top;
    const double actual_move = part->actual_shift - actual_top;
    const double keep = std::exp(golden_move);
    weights += keep * part->golden_weights;
    actual += std::exp(actual_move) * part->actual_weights;
    if (keep > 0)
      difference +=
          keep * (part->weighted_difference + part->golden_weights * (actual_move - golden_move));
  }
  *this = {golden_top, actual_top, weights, actual, difference};
}

double KlSums::divergence() const {
  if (golden_weights == 0) return 0;
  const double log_ratio = std::log1p((actual_weights - golden_weights) / golden_weights);
  return std::max(0.0, log_ratio - weighted_difference / golden_weights);
}

void RowSums::add(const RowSums& other) {
  gg += other.gg;
  gm += other.gm;
  mm += other.mm;
  kl.add(other.kl);
}

double RowSums::cosine() const { return metrics::cosine(gg, gm, mm); }

double cosine(double gg, double gm, double mm) {
  if (gg == 0 && mm == 0) return 1;
  if (gg == 0 || mm == 0) return 0;
  return std::clamp(gm / (std::sqrt(gg) * std::sqrt(mm)), -1.0, 1.0);
}

double protective_scale(double magnitude) {
  if (magnitude == 0 || (magnitude > kSmallMagnitude && magnitude < kLargeMagnitude)) return 1;
  return std::ldexp(1.0, std::min(-std::ilogb(magnitude), kMaxScaleExponent));
}

size_t split_non_finite(double* values, size_t elements, SideBlock& side) {
  size_t kept = 0;
  for (size_t i = 0; i < elements; ++i) {
    const double value = values[i];
    if (std::isnan(value)) {
      ++side.nan;
    } else if (std::isinf(value)) {
      ++(value > 0 ? side.positive_inf : side.negative_inf);
    } else {
      values[kept++] = value;
    }
  }
  return kept;
}

Side SideTotal::finish(size_t elements, double scale) const {
  Side side;
  side.elements = elements;
  side.nan = nan;
  side.positive_inf = positive_inf;
  side.negative_inf = negative_inf;
  side.l2_norm = std::sqrt(squares.value()) / scale;
  side.minimum = negative_inf > 0 ? -kInfinity : (minimum > maximum ? kInfinity : minimum);
  side.maximum = positive_inf > 0 ? kInfinity : (minimum > maximum ? -kInfinity : maximum);
  if (positive_inf > 0 && negative_inf > 0) {
    side.mean = std::numeric_limits<double>::quiet_NaN();
  } else if (positive_inf > 0 || negative_inf > 0) {
    side.mean = positive_inf > 0 ? kInfinity : -kInfinity;
  } else {
    side.mean = elements > 0 ? sum.value() / static_cast<double>(elements) / scale : 0;
  }
  if (nan > 0) side.minimum = side.maximum = side.mean = std::numeric_limits<double>::quiet_NaN();
  if (elements == 0) side.minimum = side.maximum = 0;
  return side;
}

}  // namespace ait::metrics
