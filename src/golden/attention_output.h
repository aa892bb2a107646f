// What operations of attention share around their sequences: heads, the result, its hidden rows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "golden/attention.h"
#include "golden/attention_rows.h"

namespace ait::golden {

struct Heads {
  size_t queries = 0;
  size_t keys = 0;
};

// headNum and kvHeadNum, where 0 stands for as many.
Result<Heads> read_heads(Task& task);

// Calls `body` for each sequence with the threads that it may use. Many sequences run beside each
// other. Ends with the failure of the first that fails.
Result<void> for_each_sequence(
    const Task& task, size_t count,
    const std::function<Result<void>(size_t sequence, size_t threads)>& body);

// The result of all sequences. Rows that no sequence computes stay zero, and undefined.
class AttentionOutput {
 public:
  // Of this shape where nothing was recorded, or something of another size.
  static Result<AttentionOutput> of(Task& task, const TokenLayout& layout, Shape shape);
  // With a second output: the logarithms of the sums of exponentials, of every row its heads or
  // with `heads_first` of every head its rows. The rows are packed.
  void add_lse(Shape shape, bool heads_first);

  Place place(size_t sequence, size_t start);
  // After a sequence was attended to: its first `rows` rows are defined. Not to be called from
  // several threads.
  void add(size_t sequence, size_t start, size_t rows, const std::vector<HiddenRow>& hidden);
  std::vector<Output> finish(Task& task) &&;

 private:
  explicit AttentionOutput(const TokenLayout& layout) : layout_(layout) {}
  Output finish_values(Task& task) &&;

  TokenLayout layout_;
  Output output_;
  std::vector<bool> defined_;
  std::optional<Output> lse_;
  size_t lse_row_step_ = 0;
  size_t lse_head_step_ = 0;
  std::vector<std::pair<size_t, HiddenRow>> hidden_;  // and where each begins
};

// Weights in int8: factor * weight is rounded (to half first, where `half` is set) and counts
// `unit` in the result. Kernels that take the keys in several blocks round under a maximum of their
// own, so then every weight may be off by a rounding, else those near a tie.
struct Int8Weights {
  double factor = 127;
  double unit = 1.0 / 127;
  bool half = false;
  bool rounds = true;  // false: the weights stay as they are, and are off by a rounding
};
void quantise_weights(const Int8Weights& kind, std::span<double> weights, std::span<double> off);

}  // namespace ait::golden
