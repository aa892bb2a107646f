#include "golden/attention_output.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

// Kernels take no fewer keys at a time, so up to here there is one block.
constexpr size_t kBlockKeys = 128;

}  // namespace

Result<Heads> read_heads(Task& task) {
  const int64_t queries = task.param().integer("headNum", 0);
  const int64_t given = task.param().integer("kvHeadNum", 0);
  const int64_t keys = given == 0 ? queries : given;
  if (queries <= 0 || keys <= 0 || queries % keys != 0)
    return fail(task.contradiction("headNum " + std::to_string(queries) +
                                   " is not a multiple of kvHeadNum " + std::to_string(given)));
  return Heads{static_cast<size_t>(queries), static_cast<size_t>(keys)};
}

Result<void> for_each_sequence(
    const Task& task, size_t count,
    const std::function<Result<void>(size_t sequence, size_t threads)>& body) {
  const size_t threads = task.limits().threads == 0 ? available_threads() : task.limits().threads;
  const bool beside = count >= 2 * threads && threads > 1;
  std::vector<Result<void>> done(count);
  parallel_for(count, beside ? threads : 1,
               [&](size_t i) { done[i] = body(i, beside ? 1 : threads); });
  for (const auto& each : done)
    if (!each) return each;
  return {};
}

Result<AttentionOutput> AttentionOutput::of(Task& task, const TokenLayout& layout, Shape shape) {
  AttentionOutput out(layout);
  const size_t elements = layout.elements();
  // Values, what they may be off, and perhaps another form.
  if (auto room = task.make_room(elements, 3); !room) return fail(room.error());
  const Recorded* recorded = task.recorded(0);
  const bool fits = recorded != nullptr && count_elements(recorded->shape) == elements;
  if (fits) shape = recorded->shape;
  out.output_.shape = std::move(shape);
  for (std::vector<double>* numbers : {&out.output_.values, &out.output_.slack}) {
    reserve_large(*numbers, elements);
    numbers->assign(elements, 0.0);
  }
  out.defined_.assign(elements, false);
  return out;
}

void AttentionOutput::add_lse(Shape shape, bool heads_first) {
  lse_.emplace();
  lse_->shape = std::move(shape);
  lse_->values.assign(layout_.rows * layout_.heads, 0.0);
  lse_->slack.assign(lse_->values.size(), 0.0);
  lse_->undefined.assign(lse_->values.size(), true);
  lse_row_step_ = heads_first ? 1 : layout_.heads;
  lse_head_step_ = heads_first ? layout_.rows : 1;
}

Place AttentionOutput::place(size_t sequence, size_t start) {
  const size_t first = layout_.offset(sequence, start);
  Place place;
  place.values = output_.values.data() + first;
  place.slack = output_.slack.data() + first;
  place.row_step = layout_.row_step();
  place.head_step = layout_.head_step();
  if (lse_) {
    place.lse = lse_->values.data() + start * lse_row_step_;
    place.lse_slack = lse_->slack.data() + start * lse_row_step_;
    place.lse_row_step = lse_row_step_;
    place.lse_head_step = lse_head_step_;
  }
  return place;
}

void AttentionOutput::add(size_t sequence, size_t start, size_t rows,
                          const std::vector<HiddenRow>& hidden) {
  const size_t first = layout_.offset(sequence, start);
  const auto at = [&](size_t row, size_t head) {
    return first + row * layout_.row_step() + head * layout_.head_step();
  };
  for (size_t row = 0; row < rows; ++row)
    for (size_t head = 0; head < layout_.heads; ++head) {
      std::fill_n(defined_.begin() + static_cast<ptrdiff_t>(at(row, head)), layout_.size, true);
      if (lse_) lse_->undefined[(start + row) * lse_row_step_ + head * lse_head_step_] = false;
    }
  for (const HiddenRow& row : hidden) hidden_.emplace_back(at(row.row, row.head), row);
}

std::vector<Output> AttentionOutput::finish(Task& task) && {
  std::vector<Output> out;
  out.push_back(std::move(*this).finish_values(task));
  if (!lse_) return out;
  if (std::find(lse_->undefined.begin(), lse_->undefined.end(), true) == lse_->undefined.end())
    lse_->undefined.clear();
  out.push_back(std::move(*lse_));
  return out;
}

Output AttentionOutput::finish_values(Task& task) && {
  defined_.flip();
  if (std::find(defined_.begin(), defined_.end(), true) != defined_.end())
    output_.undefined = std::move(defined_);
  if (hidden_.empty()) return std::move(output_);
  task.note("the mask hides every key from " + std::to_string(hidden_.size()) +
            " rows of a head; either the softmax under the mask or the average of all values is "
            "accepted for each");
  output_.form = "softmax where the mask hides every key";
  Form averaged{"average where the mask hides every key", output_.values};
  for (const auto& [place, row] : hidden_)
    for (size_t i = 0; i < row.average.size(); ++i) {
      averaged.values[place + i] = row.average[i];
      output_.slack[place + i] = std::max(output_.slack[place + i], row.slack[i]);
    }
  output_.forms.push_back(std::move(averaged));
  return std::move(output_);
}

void quantise_weights(const Int8Weights& kind, std::span<double> weights, std::span<double> off) {
  // Of a number that is rounded to a whole one, what that changes on average.
  const double rounding = kind.unit / std::sqrt(12.0);
  const bool one_block = weights.size() <= kBlockKeys;
  for (size_t j = 0; j < weights.size(); ++j) {
    const double exact = weights[j] * kind.factor;
    const double near =
        kMargin * off[j] * kind.factor + (kind.half ? half_step(DType::kFloat16, exact) : 0.0);
    off[j] *= kind.factor * kind.unit;
    if (!kind.rounds) {
      weights[j] = exact * kind.unit;
      off[j] += rounding;
      continue;
    }
    const double number = kind.half ? round_to(DType::kFloat16, exact) : exact;
    weights[j] = quantised(number) * kind.unit;
    const double from_tie = std::abs(exact - std::floor(exact) - 0.5);
    if (!one_block)
      off[j] += rounding;
    else if (from_tie <= near)
      off[j] += kind.unit;
  }
}

}  // namespace ait::golden
