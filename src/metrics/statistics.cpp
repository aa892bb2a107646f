#include "base/parallel.h"
#include "metrics/source.h"

namespace ait::metrics {
namespace {

constexpr size_t kBlocksPerChunk = 64;

struct Buffers {
  alignas(64) std::byte scratch[Source::kScratchBytes];
  alignas(64) double values[kBlockElements];
};

SideBlock measure_block(const Source& source, size_t first, size_t count, double scale,
                        Buffers& buffers) {
  const void* data = source.block(first, count, buffers.scratch);
  SideBlock block;
  if (has_fast_kernel(source.dtype())) {
    statistics_block_f32(source.dtype(), data, count, block);
    if (is_clean(block)) return block;
    block = {};
  }
  decode_f64(source.dtype(), data, count, buffers.values);
  const size_t finite = split_non_finite(buffers.values, count, block);
  SideBlock sums;
  if (finite > 0) statistics_block_f64(buffers.values, finite, scale, sums);
  sums.nan = block.nan;
  sums.positive_inf = block.positive_inf;
  sums.negative_inf = block.negative_inf;
  return sums;
}

SideTotal measure_all(const Source& source, double scale, size_t threads) {
  const size_t elements = source.elements();
  const size_t chunk_elements = kBlocksPerChunk * kBlockElements;
  std::vector<SideTotal> chunks((elements + chunk_elements - 1) / chunk_elements);
  parallel_for(chunks.size(), threads, [&](size_t c) {
    Buffers buffers;
    const size_t end = std::min(elements, (c + 1) * chunk_elements);
    for (size_t first = c * chunk_elements; first < end; first += kBlockElements)
      chunks[c].add(
          measure_block(source, first, std::min(kBlockElements, end - first), scale, buffers));
  });
  SideTotal total;
  for (const SideTotal& chunk : chunks) total.add(chunk);
  return total;
}

}  // namespace

Statistics statistics(const TensorView& tensor, size_t threads) {
  const Source source(tensor);
  SideTotal total = measure_all(source, 1, threads);
  const double scale = protective_scale(total.magnitude());
  if (scale != 1) total = measure_all(source, scale, threads);
  Statistics out;
  static_cast<Side&>(out) = total.finish(source.elements(), scale);
  out.l1_norm = total.magnitudes.value() / scale;
  return out;
}

std::vector<size_t> histogram(const TensorView& tensor, const Statistics& of, size_t bins) {
  // A NaN hides the extremes, an Inf is one: find the finite range first.
  const Source source(tensor);
  Buffers buffers;
  const auto each_finite = [&](auto&& visit) {
    for (size_t first = 0; first < source.elements(); first += kBlockElements) {
      const size_t count = std::min(kBlockElements, source.elements() - first);
      decode_f64(source.dtype(), source.block(first, count, buffers.scratch), count,
                 buffers.values);
      for (size_t i = 0; i < count; ++i)
        if (std::isfinite(buffers.values[i])) visit(buffers.values[i]);
    }
  };
  double low = of.minimum;
  double high = of.maximum;
  if (of.non_finite() > 0) {
    low = kInfinity;
    high = -kInfinity;
    each_finite([&](double value) {
      low = std::min(low, value);
      high = std::max(high, value);
    });
  }
  if (of.elements == of.non_finite() || bins == 0) return {};
  std::vector<size_t> counts(bins);
  // Halves, so that the width of [-1e308, 1e308] does not overflow.
  const double half_width = high / 2 - low / 2;
  each_finite([&](double value) {
    const double place =
        half_width > 0 ? (value / 2 - low / 2) / half_width * static_cast<double>(bins) : 0;
    ++counts[std::min(bins - 1, static_cast<size_t>(place))];
  });
  return counts;
}

}  // namespace ait::metrics
