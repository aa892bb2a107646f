#include "api_check/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "api_check/window_kernel.h"
#include "base/parallel.h"
#include "golden/rounder.h"
#include "golden/rounding.h"
#include "metrics/compare.h"
#include "metrics/elements.h"

namespace ait::api_check {
namespace {

constexpr size_t kBlock = 1024;             // elements that are looked at at a time
constexpr size_t kChunk = size_t{1} << 17;  // elements of one thread at a time
// Below this a side counts as zero, as in the old tools.
constexpr double kZero = 0x1p-52;
constexpr size_t kSamples = 64;  // blocks that say how large elements are
// Between these a sum of squares has lost nothing, and kSamples of them fit into a double.
constexpr double kSmallSquares = 0x1p-900;
constexpr double kLargeSquares = 0x1p900;
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

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class Chunk {
 public:
  Chunk(DType dtype, const MeasureOptions& options, double usual_unit)
      : dtype_(dtype),
        rounder_(dtype),
        half_steps_{rounder_.half_step(1), rounder_.half_step(0),
                    rounder_.half_step(std::numeric_limits<double>::max())},
        options_(options),
        epsilon_(epsilon_of(dtype)),
        usual_unit_(usual_unit) {}

  void look(const TensorView& bench, const TensorView& device, size_t first, size_t end) {
    for (size_t at = first; at < end; at += kBlock) {
      const size_t count = std::min(kBlock, end - at);
      metrics::read_elements(bench, at, count, bench_);
      metrics::read_elements(device, at, count, device_);
      if (options_.moved != nullptr) metrics::read_elements(*options_.moved, at, count, moved_);
      count_ = count;
      const size_t windows = (count + kWindow - 1) / kWindow;
      for (auto* side : {&bench_, &device_})
        std::fill(side->begin() + static_cast<ptrdiff_t>(count),
                  side->begin() + static_cast<ptrdiff_t>(windows * kWindow), 0.0);
      if (dtype_ == DType::kFloat32)
        round_to_float32(bench_.data(), windows, rounded_.data());
      else
        rounder_.round(bench_.data(), windows * kWindow, rounded_.data());
      units_.assign(windows, kUnknown);
      if (options_.raw_bench || dtype_ == DType::kFloat64 || !look_at_finite(at))
        for (size_t i = 0; i < count; ++i) look_at(i, at + i);
    }
  }

  Sums sums;
  Difference found;
  double squares = 0;  // of roundings

 private:
  static constexpr double kUnknown = -1;

  // The same as look_at() for each, where all are finite; else it does nothing and says so.
  bool look_at_finite(size_t at) {
    const Sums block = sums_of(rounded_.data(), device_.data(), units_.size());
    if (!std::isfinite(block.bench) || !std::isfinite(block.device)) return false;
    sums.add(block);
    sums.finite += count_;
    for (size_t from = 0; from < count_; from += kWindow) {
      const size_t count = std::min(kWindow, count_ - from);
      if (equal_window(&rounded_[from], &device_[from]))
        for (size_t& below : found.below) below += count;
      else
        look_at_window(from, count, at);
    }
    return true;
  }

  void look_at_window(size_t from, size_t count, size_t at) {
    const double unit = unit_of(from / kWindow);
    const WindowDifference window = compare_window({&bench_[from], &rounded_[from], &device_[from]},
                                                   half_steps_, unit, epsilon_, found.max_relative);
    found.max_absolute = std::max(found.max_absolute, window.max_absolute);
    found.max_relative = std::max(found.max_relative, window.max_relative);
    for (size_t k = 0; k < kThresholds.size(); ++k)
      found.below[k] += window.below[k] - (kWindow - count);
    squares += window.squares;
    if (window.roundings <= found.roundings) return;
    for (size_t i = from; i < from + count; ++i)
      if (device_[i] != rounded_[i])
        keep_worst(std::abs(device_[i] - bench_[i]) / (half_step(bench_[i]) + unit), at + i,
                   bench_[i], device_[i]);
  }

  void look_at(size_t i, size_t place) {
    const double rounded = rounded_[i], n = device_[i];
    if (!std::isfinite(rounded) || !std::isfinite(n)) {
      compare_non_finite(rounded, n, place);
      return;
    }
    const double b = options_.raw_bench ? bench_[i] : rounded;
    ++sums.finite;
    sums.product += b * n;
    sums.bench += b * b;
    sums.device += n * n;
    sums.bench_peak = std::max(sums.bench_peak, std::abs(b));
    sums.device_peak = std::max(sums.device_peak, std::abs(n));
    compare(i, place, b);
  }

  // Both are finite.
  void compare(size_t i, size_t place, double b) {
    const double n = device_[i];
    const double absolute = std::abs(b - n);
    // Where the device has 0 both are moved by epsilon, so that two zeros agree.
    count(absolute, absolute == 0 ? 0 : absolute / std::abs(n == 0 ? b + epsilon_ : b));
    if (n == rounded_[i]) return;
    const double unit = half_step(bench_[i]) + unit_of(i / kWindow);
    const double roundings = std::abs(n - bench_[i]) / unit;
    squares += roundings * roundings;
    keep_worst(roundings, place, bench_[i], n);
  }

  double half_step(double value) const {
    if (dtype_ == DType::kFloat64) return std::max(std::abs(value) * 0x1p-53, 0x1p-1074);
    return rounder_.half_step(value);
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
    for (size_t k = 0; k < kThresholds.size(); ++k)
      found.below[k] += static_cast<size_t>(relative < kThresholds[k]);
  }

  void keep_worst(double roundings, size_t place, double bench, double device) {
    if (!(roundings > found.roundings)) return;
    found.roundings = roundings;
    found.worst = place;
    found.worst_bench = bench;
    found.worst_device = device;
  }

  // What a rounding of the inputs does to the elements of a window, and one of themselves: as the
  // root of the mean square.
  double unit_of(size_t window) {
    double& unit = units_[window];
    if (unit != kUnknown) return unit;
    const size_t from = window * kWindow, to = std::min(count_, from + kWindow);
    unit = usual_unit_;
    if (options_.neighbours) {
      const double all = squares_of(&bench_[from], 1);
      unit += half_step(std::isfinite(all)
                            ? std::sqrt(all / static_cast<double>(to - from))
                            : mean_square(from, to, [&](size_t i) { return bench_[i]; }));
    }
    if (options_.moved != nullptr)
      unit += mean_square(from, to, [&](size_t i) { return moved_[i] - bench_[i]; });
    return unit;
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
  const golden::Rounder rounder_;
  const HalfSteps half_steps_;
  const MeasureOptions& options_;
  const double epsilon_;
  const double usual_unit_;  // of every element
  size_t count_ = 0;         // of the block
  std::vector<double> bench_ = std::vector<double>(kBlock);
  std::vector<double> rounded_ = bench_;  // bench_, as the device's type can say it
  std::vector<double> device_ = bench_;
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

// The root of the mean square of its finite elements; of a large tensor of kSamples parts of it.
double size_of(const TensorView& view) {
  const size_t blocks = (view.elements + kBlock - 1) / kBlock;
  const size_t looked_at = std::min(blocks, kSamples);
  std::vector<double> values(kBlock);
  double squares = 0, peak = 0;
  size_t finite = 0;
  for (size_t sample = 0; sample < looked_at; ++sample) {
    const size_t at = sample * blocks / looked_at * kBlock;
    const size_t count = std::min(kBlock, view.elements - at);
    metrics::read_elements(view, at, count, values);
    std::fill(values.begin() + static_cast<ptrdiff_t>(count), values.end(), 0.0);
    const double all = squares_of(values.data(), kBlock / kWindow);
    if (all > kSmallSquares && all < kLargeSquares) {
      squares += all;
      finite += count;
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[i])) continue;
      squares += values[i] * values[i];
      peak = std::max(peak, std::abs(values[i]));
      ++finite;
    }
  }
  if (finite == 0) return 0;
  // Squares of numbers that are very large or very small are no numbers any more.
  return std::isnormal(squares) ? std::sqrt(squares / static_cast<double>(finite)) : peak;
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
    sums.add(part.sums);
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
