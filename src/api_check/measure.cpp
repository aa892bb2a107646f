#include "api_check/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "golden/rounding.h"
#include "metrics/compare.h"
#include "metrics/elements.h"

namespace ait::api_check {
namespace {

constexpr size_t kBlock = 4096;             // elements that are looked at at a time
constexpr size_t kChunk = size_t{1} << 17;  // elements of one thread at a time
// Neighbours that say together what a rounding of the inputs does: one alone may be hit by accident
// in a way that cancels out.
constexpr size_t kWindow = 64;
// Below this a side counts as zero, as in the old tools.
constexpr double kZero = 0x1p-52;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of the old tools' relative error, which take bfloat16 for float32.
double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kFloat64:
      return 0x1p-52;
    default:
      return 0x1p-23;
  }
}

double rounded_to(DType dtype, double value) {
  return dtype == DType::kFloat32 ? static_cast<double>(static_cast<float>(value))
                                  : golden::round_to(dtype, value);
}

double half_step(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::max(std::abs(value) * 0x1p-53, 0x1p-1074);
  return golden::half_step(dtype, value);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct Sums {
  double product = 0;
  double bench = 0;
  double device = 0;
  double bench_peak = 0;
  double device_peak = 0;
  size_t finite = 0;
};

class Chunk {
 public:
  Chunk(DType dtype, const MeasureOptions& options, double usual_unit)
      : dtype_(dtype), options_(options), epsilon_(epsilon_of(dtype)), usual_unit_(usual_unit) {}

  void look(const TensorView& bench, const TensorView& device, size_t first, size_t end) {
    for (size_t at = first; at < end; at += kBlock) {
      const size_t count = std::min(kBlock, end - at);
      metrics::read_elements(bench, at, count, bench_);
      metrics::read_elements(device, at, count, device_);
      if (options_.moved != nullptr) metrics::read_elements(*options_.moved, at, count, moved_);
      find_units(count);
      for (size_t i = 0; i < count; ++i) look_at(i, at + i);
    }
  }

  Sums sums;
  Difference found;
  double squares = 0;  // of roundings

 private:
  void look_at(size_t i, size_t place) {
    const double exact = bench_[i];
    const double n = device_[i];
    const double rounded = rounded_to(dtype_, exact);
    const bool finite = std::isfinite(rounded) && std::isfinite(n);
    if (!finite) {
      compare_non_finite(rounded, n, place);
      return;
    }
    const double b = options_.raw_bench ? exact : rounded;
    ++sums.finite;
    sums.product += b * n;
    sums.bench += b * b;
    sums.device += n * n;
    sums.bench_peak = std::max(sums.bench_peak, std::abs(b));
    sums.device_peak = std::max(sums.device_peak, std::abs(n));
    const double absolute = std::abs(b - n);
    // Where the device has 0 both are moved by epsilon, so that two zeros agree.
    const double relative = absolute == 0 ? 0 : absolute / std::abs(n == 0 ? b + epsilon_ : b);
    count(absolute, relative);
    if (n != rounded) {
      const double unit = half_step(dtype_, exact) + units_[i / kWindow];
      const double roundings = std::abs(n - exact) / unit;
      squares += roundings * roundings;
      keep_worst(roundings, place, exact, n);
    }
  }

  void compare_non_finite(double rounded, double n, size_t place) {
    if (same(rounded, n)) {
      count(0, 0);
      return;
    }
    ++found.mismatched;
    count(kInfinity, kInfinity);
    keep_worst(kInfinity, place, rounded, n);
  }

  void count(double absolute, double relative) {
    found.max_absolute = std::max(found.max_absolute, absolute);
    found.max_relative = std::max(found.max_relative, relative);
    for (size_t k = 0; k < kThresholds.size(); ++k) found.below[k] += relative < kThresholds[k];
  }

  void keep_worst(double roundings, size_t place, double bench, double device) {
    if (!(roundings > found.roundings)) return;
    found.roundings = roundings;
    found.worst = place;
    found.worst_bench = bench;
    found.worst_device = device;
  }

  // What a rounding of the inputs does to the elements of each window, and one of themselves: as the
  // root of the mean square.
  void find_units(size_t count) {
    units_.assign((count + kWindow - 1) / kWindow, 0);
    for (size_t window = 0; window < units_.size(); ++window) {
      const size_t from = window * kWindow, to = std::min(count, from + kWindow);
      double unit = usual_unit_;
      if (options_.neighbours)
        unit += half_step(dtype_, mean_square(from, to, [&](size_t i) { return bench_[i]; }));
      if (options_.moved != nullptr)
        unit += mean_square(from, to, [&](size_t i) { return moved_[i] - bench_[i]; });
      units_[window] = unit;
    }
  }

  template <typename Value>
  static double mean_square(size_t from, size_t to, Value value) {
    double sum = 0;
    size_t finite = 0;
    for (size_t i = from; i < to; ++i) {
      const double each = value(i);
      if (!std::isfinite(each)) continue;
      sum += each * each;
      ++finite;
    }
    return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
  }

  const DType dtype_;
  const MeasureOptions& options_;
  const double epsilon_;
  const double usual_unit_;  // of every element
  std::vector<double> bench_;
  std::vector<double> device_;
  std::vector<double> moved_;
  std::vector<double> units_;  // of each window
};

void add(Difference& total, const Difference& part) {
  total.mismatched += part.mismatched;
  total.max_absolute = std::max(total.max_absolute, part.max_absolute);
  total.max_relative = std::max(total.max_relative, part.max_relative);
  for (size_t k = 0; k < kThresholds.size(); ++k) total.below[k] += part.below[k];
  if (part.roundings > total.roundings) {
    total.roundings = part.roundings;
    total.worst = part.worst;
    total.worst_bench = part.worst_bench;
    total.worst_device = part.worst_device;
  }
}

// Of vectors that are scaled by their largest elements, where the sums of squares do not fit.
double scaled_cosine(const TensorView& bench, const TensorView& device, const Sums& sums) {
  std::vector<double> b, n;
  double product = 0, bb = 0, nn = 0;
  for (size_t at = 0; at < bench.elements; at += kBlock) {
    const size_t count = std::min(kBlock, bench.elements - at);
    metrics::read_elements(bench, at, count, b);
    metrics::read_elements(device, at, count, n);
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(b[i]) || !std::isfinite(n[i])) continue;
      const double x = b[i] / sums.bench_peak, y = n[i] / sums.device_peak;
      product += x * y;
      bb += x * x;
      nn += y * y;
    }
  }
  return product / std::sqrt(bb) / std::sqrt(nn);
}

void finish_cosine(const TensorView& bench, const TensorView& device, const Sums& sums,
                   Difference& out) {
  out.bench_zero = sums.bench_peak <= kZero;
  out.device_zero = sums.device_peak <= kZero;
  if (sums.finite == 0 || out.bench_zero || out.device_zero) return;
  double cosine = sums.product / std::sqrt(sums.bench) / std::sqrt(sums.device);
  const auto fits = [](double sum) { return std::isnormal(sum); };
  if (!fits(sums.bench) || !fits(sums.device)) cosine = scaled_cosine(bench, device, sums);
  out.cosine = std::clamp(cosine, -1.0, 1.0);
}

// The root of the mean square of its finite elements.
double size_of(const TensorView& view) {
  const auto statistics = metrics::statistics(view, 0);
  const size_t finite = statistics.elements - statistics.non_finite();
  return finite == 0 ? 0 : statistics.l2_norm / std::sqrt(static_cast<double>(finite));
}

}  // namespace

double Difference::share_below(size_t threshold) const {
  return elements == 0 ? 1 : static_cast<double>(below[threshold]) / static_cast<double>(elements);
}

Difference measure(const TensorView& bench, const TensorView& device,
                   const MeasureOptions& options) {
  const size_t elements = device.elements;
  const size_t chunks = (elements + kChunk - 1) / kChunk;
  const double usual_unit = options.neighbours && device.dtype != DType::kFloat64
                                ? golden::kFloat32Unit * size_of(bench)
                                : 0;
  std::vector<Chunk> parts(chunks, Chunk(device.dtype, options, usual_unit));
  parallel_for(chunks, chunks > 1 ? 0 : 1, [&](size_t i) {
    parts[i].look(bench, device, i * kChunk, std::min(elements, (i + 1) * kChunk));
  });
  Difference out;
  out.elements = elements;
  Sums sums;
  double squares = 0;
  for (const Chunk& part : parts) {
    squares += part.squares;
    add(out, part.found);
    sums.product += part.sums.product;
    sums.bench += part.sums.bench;
    sums.device += part.sums.device;
    sums.finite += part.sums.finite;
    sums.bench_peak = std::max(sums.bench_peak, part.sums.bench_peak);
    sums.device_peak = std::max(sums.device_peak, part.sums.device_peak);
  }
  finish_cosine(bench, device, sums, out);
  out.typical = elements == 0 ? 0 : std::sqrt(squares / static_cast<double>(elements));
  return out;
}

size_t count_zeros(const TensorView& view) {
  std::vector<double> values;
  size_t zeros = 0;
  for (size_t at = 0; at < view.elements; at += kBlock) {
    const size_t count = std::min(kBlock, view.elements - at);
    metrics::read_elements(view, at, count, values);
    zeros += static_cast<size_t>(
        std::count(values.begin(), values.begin() + static_cast<ptrdiff_t>(count), 0.0));
  }
  return zeros;
}

}  // namespace ait::api_check
