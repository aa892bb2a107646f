// Where in a tensor the error is: sums by row, taken block by block beside the metrics, and sums by
// column of a few rows, taken at the end. Internal to this library.
#pragma once

#include <vector>

#include "metrics/profile_kernels.h"
#include "metrics/source.h"

namespace ait::metrics {

// Room for one block of both sides.
struct PairBuffers {
  alignas(64) std::byte golden_scratch[Source::kScratchBytes];
  alignas(64) std::byte actual_scratch[Source::kScratchBytes];
  alignas(64) double golden[kBlockElements];
  alignas(64) double actual[kBlockElements];
  alignas(64) double difference[kBlockElements];
  alignas(64) double alone[kBlockElements];
  alignas(64) double row_dd[kBlockElements];
  alignas(64) double row_gg[kBlockElements];
  RowCuts rows;
};

// The ends of what a type holds.
class Saturation {
 public:
  explicit Saturation(DType dtype);
  // Whether any value of a block can be at or beyond one.
  bool is_reached(const SideBlock& block) const {
    return block.maximum >= high_ || block.minimum <= low_ || block.positive_inf > 0 ||
           block.negative_inf > 0;
  }
  size_t count(const double* values, size_t elements) const;

 private:
  double low_ = -kInfinity;
  double high_ = kInfinity;
};

class Profiler {
 public:
  // What a chunk of the tensor gives.
  struct Part {
    RowSum head;  // the row that began before this chunk and ends in it, if any
    RowSum open;  // the row that goes on after it
    size_t saturated = 0;
    size_t flushed = 0;
    // Where the rows are too many to keep the sums of all.
    size_t rows = 0;
    double dd = 0;
    double gg = 0;
    Worst worst;
  };
  // What the other metrics know of the whole; dd and gg are scaled.
  struct Whole {
    double dd;
    double gg;
    double largest_golden;
    double largest_difference;
    bool all_finite;
  };

  Profiler(const Source& golden, const Source& actual, const Request& request);

  // Before the first block, and once more where all blocks are gone through once more.
  void start(const Scales& scales);
  // Before a block is measured: what pair_block_f32 is to cut.
  void set_cuts(size_t first, PairBuffers& buffers) const;
  // Once it was measured; `widened`: by way of doubles, which still lie in the buffers. Thread-safe
  // for different chunks.
  void add_block(const void* g, const void* m, size_t first, size_t count, size_t chunk_begin,
                 const PairBlock& block, bool widened, PairBuffers& buffers, Part& part);
  // `chunks` are all of them, in order.
  ErrorProfile finish(const std::vector<Part>& chunks, size_t chunk_elements, const Whole& whole);

 private:
  bool keeps_rows() const { return !gg_.empty(); }
  bool is_padding(size_t row) const { return padding_ != nullptr && (*padding_)[row]; }
  Doubles widen(const void* g, const void* m, size_t count, PairBuffers& buffers) const;
  Doubles in_doubles(const PairBuffers& buffers) const;
  size_t rows_that_count(size_t first, size_t end) const;
  RowSum sum_of_row(size_t row, PairBuffers& buffers) const;
  void finish_row(size_t row, const RowSum& sum, Part& part);
  Part merged(const std::vector<Part>& chunks, size_t chunk_elements);
  std::vector<size_t> drop_uncounted(Part& all);
  std::vector<size_t> some_rows(size_t wanted) const;
  double root(double squared) const;  // of sums of squares, as they are without scales
  bool set_columns(const std::vector<size_t>& rows, bool fast, ErrorProfile& out) const;
  Worst worst_column(const std::vector<size_t>& rows, bool fast, double least) const;
  void add_columns(const std::vector<size_t>& rows, size_t first, size_t columns, bool fast,
                   double* dd, double* gg) const;

  const Source& golden_;
  const Source& actual_;
  size_t threads_;
  const std::vector<bool>* padding_ = nullptr;
  Saturation saturation_;
  Scales scales_;
  bool fast_types_;
  bool exact_differences_;
  size_t row_elements_;
  size_t rows_;
  // Of every row, where they are not too many. gg is NaN where a row does not count.
  std::vector<double> dd_;
  std::vector<double> gg_;
  // Else what a look at some of them says.
  Spread look_;
};

}  // namespace ait::metrics
