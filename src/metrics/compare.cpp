#include "metrics/compare.h"

#include <bit>
#include <cstring>

#include "base/parallel.h"
#include "metrics/profile.h"

namespace ait::metrics {
namespace {

// The unit of parallel work; its size is fixed so that the order of every sum is.
constexpr size_t kBlocksPerChunk = 64;
constexpr size_t kChunkElements = kBlocksPerChunk * kBlockElements;

// Weights of a block whose values are all this far below the largest seen are below 1e-34 of its.
constexpr double kNoWeight = 80;

// Without a branch per element: only an exponent of all ones carries into the sign bit.
bool all_finite(const double* values, size_t count) {
  uint64_t carried = 0;
  for (size_t i = 0; i < count; ++i)
    carried |= (std::bit_cast<uint64_t>(values[i]) & ~(uint64_t{1} << 63)) + (uint64_t{1} << 52);
  return carried >> 63 == 0;
}

// Sums over any number of blocks.
struct PairTotal {
  SideTotal golden;
  SideTotal actual;
  Sum gg, gm, mm, dd, absolute, relative;
  size_t compared = 0;
  size_t differing = 0;
  size_t zero_golden_mismatch = 0;
  size_t non_finite_disagree = 0;
  std::array<size_t, kMaxThresholds> passes{};

  template <typename Part>  // PairBlock or PairTotal
  void add(const Part& part) {
    golden.add(part.golden);
    actual.add(part.actual);
    gg.add(part.gg);
    gm.add(part.gm);
    mm.add(part.mm);
    dd.add(part.dd);
    absolute.add(part.absolute);
    relative.add(part.relative);
    compared += part.compared;
    differing += part.differing;
    zero_golden_mismatch += part.zero_golden_mismatch;
    non_finite_disagree += part.non_finite_disagree;
    for (size_t k = 0; k < kMaxThresholds; ++k) passes[k] += part.passes[k];
  }
};

// Rows in the order they end; a row may begin in one chunk and end in another.
class RowTotal {
 public:
  void finish_row(size_t row, const RowSums& sums) {
    const double similarity = sums.cosine();
    if (rows_ == 0 || similarity < worst_cosine_) {
      worst_cosine_ = similarity;
      worst_row_ = row;
    }
    const double divergence = sums.kl.divergence();
    kl_sum_.add(divergence);
    kl_max_ = std::max(kl_max_, divergence);
    ++rows_;
  }
  void add(const RowTotal& later) {
    if (later.rows_ > 0 && (rows_ == 0 || later.worst_cosine_ < worst_cosine_)) {
      worst_cosine_ = later.worst_cosine_;
      worst_row_ = later.worst_row_;
    }
    kl_sum_.add(later.kl_sum_);
    kl_max_ = std::max(kl_max_, later.kl_max_);
    rows_ += later.rows_;
  }
  RowFinding finish() const {
    return {rows_, worst_row_, worst_cosine_,
            rows_ > 0 ? kl_sum_.value() / static_cast<double>(rows_) : 0, kl_max_};
  }

 private:
  size_t rows_ = 0;
  size_t worst_row_ = 0;
  double worst_cosine_ = 1;
  Sum kl_sum_;
  double kl_max_ = 0;
};

// The largest errors so far, and where the largest absolute one stands.
struct Maxima {
  double absolute = 0;
  double relative = 0;
  size_t block = 0;  // the first that holds `absolute`

  void add(const Maxima& later) {
    if (later.absolute > absolute) {
      absolute = later.absolute;
      block = later.block;
    }
    relative = std::max(relative, later.relative);
  }
};

struct Chunk {
  PairTotal total;
  Maxima maxima;
  KlSums kl;
  RowTotal rows;  // those that lie wholly in this chunk
  RowSums head;   // the row that began before, if any; else the chunk's only, unfinished row
  RowSums tail;   // the row that goes on after
  Profiler::Part profile;
};

void set_metrics(Comparison& out, double value) {
  for (double* metric : {&out.cosine_similarity, &out.max_relative_error, &out.mean_relative_error,
                         &out.max_absolute_error, &out.mean_absolute_error, &out.kl_divergence,
                         &out.relative_euclidean_distance})
    *metric = value;
}

class PairComparison {
 public:
  PairComparison(const TensorView& golden, const TensorView& actual, const Request& request)
      : golden_(golden), actual_(actual), request_(request) {
    const bool default_definition = request.relative == RelativeError::kMasked &&
                                    request.relative_epsilon == kMaskEpsilon &&
                                    !request.mask_absolute && request.threshold_count == 0;
    fast_ =
        default_definition && has_fast_kernel(golden_.dtype()) && has_fast_kernel(actual_.dtype());
    wide_integers_ = needs_integer_differences(golden_.dtype(), actual_.dtype());
    row_elements_ = std::max<size_t>(golden_.row_elements(), 1);
    if (request.profile) profiler_.emplace(golden_, actual_, request);
  }

  Comparison run() {
    Chunk whole = measure();
    const Scales scales = {protective_scale(whole.total.golden.magnitude()),
                           protective_scale(whole.total.actual.magnitude()),
                           protective_scale(whole.maxima.absolute)};
    if (scales.golden != 1 || scales.actual != 1 || scales.difference != 1) {
      scales_ = scales;
      whole = measure();
    }
    return finish(whole);
  }

 private:
  Chunk measure() {
    const size_t elements = golden_.elements();
    std::vector<Chunk> chunks((elements + kChunkElements - 1) / kChunkElements);
    if (profiler_) profiler_->start(scales_);
    parallel_for(chunks.size(), request_.threads, [&](size_t c) { measure_chunk(c, chunks[c]); });
    Chunk whole;
    RowSums open;  // the row that the next chunk's head continues
    for (size_t c = 0; c < chunks.size(); ++c) {
      const Chunk& chunk = chunks[c];
      whole.total.add(chunk.total);
      whole.maxima.add(chunk.maxima);
      whole.kl.add(chunk.kl);
      const size_t first = c * kChunkElements;
      const size_t end = std::min(elements, first + kChunkElements);
      if (request_.rows && first % row_elements_ != 0) {
        open.add(chunk.head);
        const size_t row = first / row_elements_;
        if ((row + 1) * row_elements_ <= end) {
          whole.rows.finish_row(row, open);
          open = chunk.tail;
        }
      } else {
        open = chunk.tail;
      }
      whole.rows.add(chunk.rows);
    }
    if (profiler_) {
      profile_parts_.clear();
      for (const Chunk& chunk : chunks) profile_parts_.push_back(chunk.profile);
    }
    return whole;
  }

  void measure_chunk(size_t c, Chunk& chunk) {
    if (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed)) return;
    PairBuffers buffers;
    const size_t begin = c * kChunkElements;
    const size_t end = std::min(golden_.elements(), begin + kChunkElements);
    RowSums row;  // of the row at hand, since `begin` or since it began
    for (size_t first = begin; first < end; first += kBlockElements) {
      const size_t count = std::min(kBlockElements, end - first);
      const void* g = golden_.block(first, count, buffers.golden_scratch);
      const void* m = actual_.block(first, count, buffers.actual_scratch);
      PairBlock block;
      if (profiler_) profiler_->set_cuts(first, buffers);
      const bool fast = fast_ && measure_fast(g, m, count, chunk.maxima.relative, block,
                                              profiler_ ? &buffers.rows : nullptr);
      if (!fast) measure_careful(g, m, count, buffers, block);
      chunk.maxima.add({block.max_absolute, block.max_relative, first / kBlockElements});
      chunk.total.add(block);
      if (profiler_)
        profiler_->add_block(g, m, first, count, begin, block, !fast, buffers, chunk.profile);
      if (request_.rows) {
        add_rows(g, m, first, count, begin, buffers, row, chunk);
      } else if (request_.kl) {
        add_kl(g, m, count, fast, block, buffers, chunk.kl);
      }
    }
    if (request_.rows && end % row_elements_ != 0)
      (end / row_elements_ * row_elements_ < begin ? chunk.head : chunk.tail) = row;
  }

  bool measure_fast(const void* g, const void* m, size_t count, double max_relative,
                    PairBlock& block, RowCuts* rows) const {
    pair_block_f32(golden_.dtype(), g, actual_.dtype(), m, count, max_relative, block, rows);
    if (is_clean(block)) return true;
    block = {};
    if (rows != nullptr) rows->done = false;
    return false;
  }

  // Widens a block and moves the positions finite on both sides to the front; what is not finite is
  // counted in `block` where given. Returns how many positions are left.
  size_t widen_finite(const void* g, const void* m, size_t count, PairBuffers& buffers,
                      PairBlock* block) const {
    decode_f64(golden_.dtype(), g, count, buffers.golden);
    decode_f64(actual_.dtype(), m, count, buffers.actual);
    if (wide_integers_)
      integer_differences(golden_.dtype(), g, actual_.dtype(), m, count, buffers.difference);
    if (all_finite(buffers.golden, count) && all_finite(buffers.actual, count)) return count;
    size_t kept = 0;
    size_t alone_golden = 0;
    size_t alone_actual = 0;
    for (size_t i = 0; i < count; ++i) {
      const double golden = buffers.golden[i];
      const double actual = buffers.actual[i];
      if (std::isfinite(golden) && std::isfinite(actual)) {
        buffers.golden[kept] = golden;
        buffers.actual[kept] = actual;
        ++kept;
      } else if (block != nullptr) {
        const bool agree = golden == actual || (std::isnan(golden) && std::isnan(actual));
        block->differing += agree ? 0 : 1;
        block->non_finite_disagree += agree ? 0 : 1;
        // The lone finite partner still counts for its own side; there is room for both kinds in
        // one buffer.
        if (std::isfinite(golden)) buffers.alone[alone_golden++] = golden;
        if (std::isfinite(actual)) buffers.alone[kBlockElements - ++alone_actual] = actual;
        count_non_finite(golden, block->golden);
        count_non_finite(actual, block->actual);
      }
    }
    if (alone_golden > 0) add_alone(buffers.alone, alone_golden, scales_.golden, block->golden);
    if (alone_actual > 0)
      add_alone(buffers.alone + kBlockElements - alone_actual, alone_actual, scales_.actual,
                block->actual);
    return kept;
  }

  static void count_non_finite(double value, SideBlock& side) {
    if (std::isnan(value)) ++side.nan;
    if (std::isinf(value)) ++(value > 0 ? side.positive_inf : side.negative_inf);
  }

  static void add_alone(const double* values, size_t count, double scale, SideBlock& side) {
    SideBlock alone;
    statistics_block_f64(values, count, scale, alone);
    side.sum += alone.sum;
    side.squares += alone.squares;
    side.minimum = std::min(side.minimum, alone.minimum);
    side.maximum = std::max(side.maximum, alone.maximum);
  }

  void measure_careful(const void* g, const void* m, size_t count, PairBuffers& buffers,
                       PairBlock& block) const {
    PairBlock outside;
    const size_t kept = widen_finite(g, m, count, buffers, &outside);
    if (kept > 0)
      pair_block_f64(buffers.golden, buffers.actual, wide_integers_ ? buffers.difference : nullptr,
                     kept, request_, scales_, block);
    block.differing += outside.differing;
    block.non_finite_disagree = outside.non_finite_disagree;
    merge_side(outside.golden, block.golden);
    merge_side(outside.actual, block.actual);
  }

  static void merge_side(const SideBlock& from, SideBlock& into) {
    into.sum += from.sum;
    into.squares += from.squares;
    into.minimum = std::min(into.minimum, from.minimum);
    into.maximum = std::max(into.maximum, from.maximum);
    into.nan = from.nan;
    into.positive_inf = from.positive_inf;
    into.negative_inf = from.negative_inf;
  }

  // `fast`: `block` is of pair_block_f32, and all values are finite.
  void add_kl(const void* g, const void* m, size_t count, bool fast, const PairBlock& block,
              PairBuffers& buffers, KlSums& into) const {
    if (block.golden.maximum < into.golden_shift - kNoWeight &&
        block.actual.maximum < into.actual_shift - kNoWeight)
      return;
    KlSums sums;
    if (!fast || !kl_block_f32(golden_.dtype(), g, actual_.dtype(), m, count, block, sums)) {
      const size_t kept = widen_finite(g, m, count, buffers, nullptr);
      if (kept == 0) return;
      kl_block_f64(buffers.golden, buffers.actual, kept, sums);
    }
    into.add(sums);
  }

  // Splits a block at the ends of rows.
  void add_rows(const void* g, const void* m, size_t first, size_t count, size_t chunk_begin,
                PairBuffers& buffers, RowSums& row, Chunk& chunk) const {
    const auto* g_bytes = static_cast<const std::byte*>(g);
    const auto* m_bytes = static_cast<const std::byte*>(m);
    const size_t end = first + count;
    for (size_t at = first; at < end;) {
      const size_t row_end = (at / row_elements_ + 1) * row_elements_;
      const size_t length = std::min(end, row_end) - at;
      const size_t kept = widen_finite(g_bytes + (at - first) * size_bytes(golden_.dtype()),
                                       m_bytes + (at - first) * size_bytes(actual_.dtype()), length,
                                       buffers, nullptr);
      if (kept > 0) {
        RowSums part;
        row_block(buffers.golden, buffers.actual, kept, part);
        if (request_.kl) {
          kl_block_f64(buffers.golden, buffers.actual, kept, part.kl);
          chunk.kl.add(part.kl);
        }
        row.add(part);
      }
      at += length;
      if (at == row_end) {
        if (row_end - row_elements_ < chunk_begin) {
          chunk.head = row;
        } else {
          chunk.rows.finish_row(row_end / row_elements_ - 1, row);
        }
        row = {};
      }
    }
  }

  // Finds the largest absolute error in its block, and what stands there.
  void locate_worst(const Maxima& maxima, Comparison& out) const {
    if (maxima.absolute == 0) return;
    PairBuffers buffers;
    const size_t first = maxima.block * kBlockElements;
    const size_t count = std::min(kBlockElements, golden_.elements() - first);
    const void* g = golden_.block(first, count, buffers.golden_scratch);
    const void* m = actual_.block(first, count, buffers.actual_scratch);
    decode_f64(golden_.dtype(), g, count, buffers.golden);
    decode_f64(actual_.dtype(), m, count, buffers.actual);
    if (wide_integers_)
      integer_differences(golden_.dtype(), g, actual_.dtype(), m, count, buffers.difference);
    for (size_t i = 0; i < count; ++i) {
      const double golden = buffers.golden[i];
      const double actual = buffers.actual[i];
      const bool masked = request_.mask_absolute && std::fabs(golden) <= request_.relative_epsilon;
      const double error = std::fabs(wide_integers_ ? buffers.difference[i] : actual - golden);
      if (error == maxima.absolute && !masked && std::isfinite(golden) && std::isfinite(actual)) {
        out.worst_index = first + i;
        out.worst_golden = golden;
        out.worst_actual = actual;
        return;
      }
    }
  }

  Comparison finish(const Chunk& whole) {
    const PairTotal& total = whole.total;
    Comparison out;
    out.elements = golden_.elements();
    out.compared = total.compared;
    out.golden = total.golden.finish(golden_.elements(), scales_.golden);
    out.actual = total.actual.finish(actual_.elements(), scales_.actual);
    out.differing = total.differing;
    out.identical = total.differing == 0;
    out.zero_golden_mismatch = total.zero_golden_mismatch;
    out.non_finite_agree = total.non_finite_disagree == 0;
    out.passes = total.passes;
    if (request_.rows) out.row = whole.rows.finish();
    const bool any_non_finite = total.compared < out.elements;
    out.withheld = request_.non_finite == NonFinite::kWithhold && any_non_finite;
    locate_worst(whole.maxima, out);
    if (profiler_ && !out.identical)
      out.profile = profiler_->finish(profile_parts_, kChunkElements,
                                      {total.dd.value(), total.gg.value(), total.golden.magnitude(),
                                       whole.maxima.absolute, !any_non_finite});
    if (out.withheld || total.compared == 0) {
      set_metrics(out, std::numeric_limits<double>::quiet_NaN());
      return out;
    }
    const auto compared = static_cast<double>(total.compared);
    const double gg = total.gg.value();
    const double mm = total.mm.value();
    const double dd = total.dd.value();
    out.golden_zero = gg == 0;
    out.actual_zero = mm == 0;
    out.cosine_similarity = cosine(gg, total.gm.value(), mm);
    out.max_relative_error = whole.maxima.relative;
    out.mean_relative_error = total.relative.value() / compared;
    out.max_absolute_error = whole.maxima.absolute;
    out.mean_absolute_error = total.absolute.value() / compared / scales_.difference;
    out.kl_divergence = request_.kl ? whole.kl.divergence() : 0;
    if (dd == 0) {
      out.relative_euclidean_distance = 0;
    } else {
      out.relative_euclidean_distance =
          gg == 0 ? kInfinity
                  : std::sqrt(dd) / std::sqrt(gg) * (scales_.golden / scales_.difference);
    }
    return out;
  }

  Source golden_;
  Source actual_;
  Request request_;
  Scales scales_;
  bool fast_ = false;
  bool wide_integers_ = false;
  size_t row_elements_ = 1;
  std::optional<Profiler> profiler_;
  std::vector<Profiler::Part> profile_parts_;  // of all chunks
};

// Every bit the same, which is true of most pairs of a good port and quicker to see than to
// measure.
bool same_bytes(const TensorView& golden, const TensorView& actual, const Request& request) {
  if (golden.dtype != actual.dtype || !golden.plain() || !actual.plain()) return false;
  if (golden.data == actual.data) return true;
  constexpr size_t kStep = size_t{8} << 20;
  const size_t bytes = golden.bytes();
  std::atomic<bool> differ = false;
  const auto compare_step = [&](size_t step) {
    if (differ.load(std::memory_order_relaxed)) return;
    const size_t first = step * kStep;
    const size_t count = std::min(kStep, bytes - first);
    if (std::memcmp(golden.data + first, actual.data + first, count) != 0) differ = true;
  };
  // Tensors that differ usually do so at once: the first step alone decides before others are asked
  // to help.
  if (bytes > 0) compare_step(0);
  const size_t steps = (bytes + kStep - 1) / kStep;
  if (!differ && steps > 1)
    parallel_for(steps - 1, request.threads, [&](size_t i) { compare_step(i + 1); });
  return !differ;
}

// What a comparison with itself gives.
Comparison identical_to_itself(const TensorView& tensor, const Request& request) {
  const Source source(tensor);
  const Side side = statistics(tensor, request.threads);
  Comparison out;
  out.elements = side.elements;
  out.compared = side.elements - side.non_finite();
  out.identical = true;
  out.golden = side;
  out.actual = side;
  out.withheld = request.non_finite == NonFinite::kWithhold && side.non_finite() > 0;
  for (size_t k = 0; k < request.threshold_count; ++k)
    out.passes[k] = request.thresholds[k] > 0 ? out.compared : 0;
  if (request.rows)
    out.row = RowFinding{.rows = source.elements() / std::max<size_t>(source.row_elements(), 1)};
  out.golden_zero = out.actual_zero = side.l2_norm == 0 && out.compared > 0;
  out.cosine_similarity = 1;
  if (out.withheld || out.compared == 0) set_metrics(out, std::numeric_limits<double>::quiet_NaN());
  return out;
}

}  // namespace

Result<Comparison> compare(const TensorView& golden, const TensorView& actual,
                           const Request& request) {
  const size_t golden_reals = Source(golden).elements();
  const size_t actual_reals = Source(actual).elements();
  if (golden_reals != actual_reals)
    return fail(Error(ErrorCode::kUsage)
                << "golden has " << golden_reals << " numbers and my " << actual_reals
                << "; only tensors of equal size can be compared");
  const Comparison out = same_bytes(golden, actual, request)
                             ? identical_to_itself(golden, request)
                             : PairComparison(golden, actual, request).run();
  if (request.stop != nullptr && request.stop->load(std::memory_order_relaxed))
    return fail(Error(ErrorCode::kInterrupted) << "stopped on request");
  return out;
}

}  // namespace ait::metrics
