// The unit of work of the metrics: a few thousand elements that fit in the first-level cache, what
// is summed over one of them, and how such sums add up to those of a tensor. Internal to this
// library.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "metrics/compare.h"

namespace ait::metrics {

// Both sides of a float32 block are 32 KiB together, a common size of the first-level data cache.
inline constexpr size_t kBlockElements = 4096;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Neumaier's compensated sum: the error does not grow with the number of blocks.
class Sum {
 public:
  void add(double value) {
    const double total = total_ + value;
    if (std::isfinite(total))
      lost_ += std::fabs(total_) >= std::fabs(value) ? (total_ - total) + value
                                                     : (value - total) + total_;
    total_ = total;
  }
  void add(const Sum& other) {
    add(other.total_);
    lost_ += other.lost_;
  }
  double value() const { return total_ + lost_; }

 private:
  double total_ = 0;
  double lost_ = 0;
};

// One tensor's finite elements in a block, and how many were not.
struct SideBlock {
  double sum = 0;
  double squares = 0;
  double magnitudes = 0;  // statistics only
  double minimum = kInfinity;
  double maximum = -kInfinity;
  size_t nan = 0;
  size_t positive_inf = 0;
  size_t negative_inf = 0;
};

// Positions finite on both sides in a block. Every sum but `relative` has been scaled, see Scales.
struct PairBlock {
  SideBlock golden;
  SideBlock actual;
  double gg = 0;
  double gm = 0;
  double mm = 0;
  double dd = 0;
  double absolute = 0;
  double relative = 0;
  // Exact, and not scaled.
  double max_absolute = 0;
  double max_relative = 0;  // of this block and, by pair_block_f32, of those before it
  size_t compared = 0;
  size_t differing = 0;
  size_t zero_golden_mismatch = 0;
  size_t non_finite_disagree = 0;
  std::array<size_t, kMaxThresholds> passes{};
};

// Sums from which Kullback-Leibler divergence follows, over any part of a tensor:
// weights e^(g - golden_shift) and e^(m - actual_shift).
struct KlSums {
  double golden_shift = -kInfinity;
  double actual_shift = -kInfinity;
  double golden_weights = 0;
  double actual_weights = 0;
  // Σ e^(g - golden_shift) ((m - actual_shift) - (g - golden_shift)): without the shifts, which may
  // be huge and cancel, taken out of the difference.
  double weighted_difference = 0;

  void add(const KlSums& other);
  double divergence() const;  // at least 0; 0 for nothing
};

struct RowSums {
  double gg = 0;
  double gm = 0;
  double mm = 0;
  KlSums kl;

  void add(const RowSums& other);
  double cosine() const;
};

// g·m / (|g| |m|), 1 for two zero vectors, 0 for one.
double cosine(double gg, double gm, double mm);

// Powers of two that keep sums and squares of very large or very small doubles representable; 1 for
// everything else.
struct Scales {
  double golden = 1;
  double actual = 1;
  double difference = 1;
};

// The types that the float32 kernels load directly. The others are widened to double first.
inline bool has_fast_kernel(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32;
}

}  // namespace ait::metrics
