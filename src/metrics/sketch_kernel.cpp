// Sums of elements under signs that look random, for sketch.h.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/sketch_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// The finaliser of splitmix64: every bit of the result depends on every bit of `x`.
HWY_INLINE uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A line is turned by another step in each part, so that elements of one column, which are often
// wrong together, do not all meet in one bucket. A sum gets one element of each line, in their
// order: it is the same for every instruction set.
void add_lines(const double* values, size_t first_line, size_t lines, ProjectionSums& sums) {
  const F64 d;
  const hn::RebindToUnsigned<F64> bits;
  const auto sign = hn::Set(bits, uint64_t{1} << 63);
  const auto last = hn::Sub(hn::Set(bits, uint64_t{63}), hn::Iota(bits, 0));
  for (size_t line = first_line; line < first_line + lines; ++line, values += Sketch::kBuckets) {
    const uint64_t turns = mixed(~uint64_t{line});
    for (size_t part = 0; part < Sketch::kParts; ++part) {
      const auto signs = hn::Set(bits, mixed(line * Sketch::kParts + part));
      double* out = sums[part].data() + (turns >> (16 * part)) % Sketch::kBuckets;
      for (size_t i = 0; i < Sketch::kBuckets; i += hn::Lanes(d)) {
        // Bit i of the signs is that of element i.
        const auto flip = hn::And(hn::Shl(signs, hn::Sub(last, hn::Set(bits, uint64_t{i}))), sign);
        const V64 value = hn::Xor(hn::LoadU(d, values + i), hn::BitCast(d, flip));
        hn::StoreU(hn::Add(hn::LoadU(d, out + i), value), d, out + i);
      }
    }
  }
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(add_lines);

void add_projections(const double* values, size_t first_line, size_t lines, ProjectionSums& sums) {
  HWY_DYNAMIC_DISPATCH(add_lines)(values, first_line, lines, sums);
}

}  // namespace ait::metrics
#endif
