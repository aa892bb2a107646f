// The same sums as pair_kernel.cpp in double throughout, for every kind of request and every type:
// one division per element, exact maxima.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/pair_f64_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// |m/g - 1| rather than |d|/|g| where the difference is an ordinary one: it is the definition the
// reports had.
HWY_INLINE V64 relative_error(V64 g, V64 m, V64 error, bool exact_difference, RelativeError kind,
                              double epsilon) {
  const F64 d;
  const V64 magnitude = hn::Abs(g);
  const V64 zero = hn::Zero(d);
  switch (kind) {
    case RelativeError::kDamped:
      return hn::Div(error, hn::Add(magnitude, hn::Set(d, epsilon)));
    case RelativeError::kPlain:
      return hn::IfThenElseZero(hn::Gt(error, zero), hn::Div(error, magnitude));
    case RelativeError::kMasked:
      break;
  }
  const auto live = hn::Gt(magnitude, hn::Set(d, epsilon));
  const V64 quotient = exact_difference ? hn::Div(error, magnitude)
                                        : hn::Abs(hn::Sub(hn::Div(m, g), hn::Set(d, 1.0)));
  return hn::IfThenElseZero(live, quotient);
}

void pair_f64(const double* golden, const double* actual, const double* difference, size_t elements,
              const Request& request, const Scales& scales, PairBlock& out) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  const V64 zero = hn::Zero(d);
  const V64 epsilon = hn::Set(d, request.relative_epsilon);
  const V64 scale_g = hn::Set(d, scales.golden);
  const V64 scale_m = hn::Set(d, scales.actual);
  const V64 scale_d = hn::Set(d, scales.difference);
  V64 gg = zero, gm = zero, mm = zero, dd = zero, sum_g = zero, sum_m = zero, absolute = zero,
      relative = zero;
  V64 max_absolute = zero, max_relative = zero;
  V64 min_g = hn::Set(d, kInfinity), min_m = min_g;
  V64 max_g = hn::Set(d, -kInfinity), max_m = max_g;
  size_t differing = 0;
  size_t hidden = 0;
  size_t passes[kMaxThresholds] = {};
  HWY_ALIGN double last[3][HWY_MAX_BYTES / sizeof(double)] = {};
  for (size_t i = 0; i < elements; i += lanes) {
    const double* at_g = golden + i;
    const double* at_m = actual + i;
    const double* at_d = difference != nullptr ? difference + i : nullptr;
    const size_t count = std::min(lanes, elements - i);
    const auto present = hn::FirstN(d, count);
    if (count < lanes) {  // the padding repeats an element for the extremes; the sums leave it out
      std::fill_n(last[0], lanes, at_g[0]);
      std::fill_n(last[1], lanes, at_m[0]);
      std::copy_n(at_g, count, last[0]);
      std::copy_n(at_m, count, last[1]);
      if (at_d != nullptr) {
        std::copy_n(at_d, count, last[2]);
        at_d = last[2];
      }
      at_g = last[0];
      at_m = last[1];
    }
    V64 g = hn::LoadU(d, at_g);
    V64 m = hn::LoadU(d, at_m);
    min_g = hn::Min(min_g, g);
    max_g = hn::Max(max_g, g);
    min_m = hn::Min(min_m, m);
    max_m = hn::Max(max_m, m);
    g = hn::IfThenElseZero(present, g);
    m = hn::IfThenElseZero(present, m);
    const V64 e = at_d != nullptr ? hn::LoadU(d, at_d) : hn::Sub(m, g);
    const V64 error = hn::Abs(hn::IfThenElseZero(present, e));
    const V64 gs = hn::Mul(g, scale_g);
    const V64 ms = hn::Mul(m, scale_m);
    const V64 ds = hn::Mul(error, scale_d);
    sum_g = hn::Add(sum_g, gs);
    sum_m = hn::Add(sum_m, ms);
    gg = hn::MulAdd(gs, gs, gg);
    gm = hn::MulAdd(gs, ms, gm);
    mm = hn::MulAdd(ms, ms, mm);
    dd = hn::MulAdd(ds, ds, dd);
    const auto live = hn::Gt(hn::Abs(g), epsilon);
    const auto differs = hn::Gt(error, zero);
    differing += hn::CountTrue(d, differs);
    hidden += hn::CountTrue(d, hn::AndNot(live, differs));
    const V64 counted = request.mask_absolute ? hn::IfThenElseZero(live, error) : error;
    absolute = hn::MulAdd(counted, scale_d, absolute);
    max_absolute = hn::Max(max_absolute, counted);
    const V64 r =
        hn::IfThenElseZero(present, relative_error(g, m, error, difference != nullptr,
                                                   request.relative, request.relative_epsilon));
    relative = hn::Add(relative, r);
    max_relative = hn::Max(max_relative, r);
    for (size_t k = 0; k < request.threshold_count; ++k)
      passes[k] += hn::CountTrue(d, hn::And(present, hn::Lt(r, hn::Set(d, request.thresholds[k]))));
  }
  out.gg = total(gg);
  out.gm = total(gm);
  out.mm = total(mm);
  out.dd = total(dd);
  out.absolute = total(absolute);
  out.relative = total(relative);
  out.max_absolute = largest(d, max_absolute);
  out.max_relative = largest(d, max_relative);
  out.compared = elements;
  out.differing = differing;
  out.zero_golden_mismatch = hidden;
  std::copy_n(passes, kMaxThresholds, out.passes.begin());
  out.golden.sum = total(sum_g);
  out.golden.squares = out.gg;
  out.golden.minimum = smallest(d, min_g);
  out.golden.maximum = largest(d, max_g);
  out.actual.sum = total(sum_m);
  out.actual.squares = out.mm;
  out.actual.minimum = smallest(d, min_m);
  out.actual.maximum = largest(d, max_m);
}

void row_f64(const double* golden, const double* actual, size_t elements, RowSums& out) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  V64 gg = hn::Zero(d), gm = gg, mm = gg;
  size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const V64 g = hn::LoadU(d, golden + i);
    const V64 m = hn::LoadU(d, actual + i);
    gg = hn::MulAdd(g, g, gg);
    gm = hn::MulAdd(g, m, gm);
    mm = hn::MulAdd(m, m, mm);
  }
  out.gg = total(gg);
  out.gm = total(gm);
  out.mm = total(mm);
  for (; i < elements; ++i) {
    out.gg += golden[i] * golden[i];
    out.gm += golden[i] * actual[i];
    out.mm += actual[i] * actual[i];
  }
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(pair_f64);
HWY_EXPORT(row_f64);

void pair_block_f64(const double* golden, const double* actual, const double* difference,
                    size_t elements, const Request& request, const Scales& scales, PairBlock& out) {
  HWY_DYNAMIC_DISPATCH(pair_f64)(golden, actual, difference, elements, request, scales, out);
}

void row_block(const double* golden, const double* actual, size_t elements, RowSums& out) {
  HWY_DYNAMIC_DISPATCH(row_f64)(golden, actual, elements, out);
}

}  // namespace ait::metrics
#endif
