// Attention of one sequence, which all operations of attention share:
//
//   score(i, j)  = queries[i] · keys[j] * scale, clamped, and with a mask added to it
//   weight(i, j) = exp(score(i, j) - the largest score of row i)
//   out[i]       = sum over j of weight(i, j) * values[j] / sum over j of weight(i, j)
//
// for each head: head h of the queries reads head h / (heads of queries / heads of keys) of the
// keys and values.
//
// How far a sound kernel may be off. It sums in float32, block after block with a running maximum,
// and holds the weights in the type of the values. So every weight is off on its own: by the
// rounding to that type, by the float32 sum of its score (times the weight, as exp' = exp), by the
// exponential. Such errors add up like a random walk: out is off by the root of the sum over j of
// (error of weight j * (values[j] - out))², divided by the sum of the weights. That is one more sum
// over all keys for every number of the result; it is taken over kGroupKeys keys at a time with the
// largest |value| among them, which costs a sixteenth and makes the bound about twice as wide. To
// that comes the float32 sum over j itself (sum_slack in task.h), whose magnitudes are no more than
// the largest |value| of all.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/product.h"
#include "golden/task.h"

namespace ait::golden {

// Rows of heads: the `size` numbers of a row and head lie in one piece, in memory or in an input,
// which is read head by head.
struct HeadRows {
  size_t rows = 0;
  size_t heads = 0;
  size_t size = 0;
  size_t row_step = 0;
  size_t head_step = 0;
  const double* data = nullptr;
  const Task* task = nullptr;  // where `data` is null
  std::string_view input;
  size_t first = 0;  // element of the input

  // All rows of one head. What has to be read goes to `read`.
  Matrix head(size_t index, std::vector<double>& read) const;
};

// Keys [first, last).
struct KeyRange {
  size_t first = 0;
  size_t last = 0;

  size_t count() const { return last - first; }
};

struct Sequence {
  HeadRows queries;
  HeadRows keys;
  HeadRows values;

  // In this order a product of a query and a key becomes a score; what is empty is left out.
  std::vector<double> key_terms;    // added, one for each key
  std::vector<double> head_scales;  // multiplied by, one for each head of the queries
  bool half_products = false;       // rounded to half
  double scale = 1;
  std::vector<double> row_scales;  // one for each query
  std::optional<std::pair<double, double>> clamp;
  // The keys that a query can see at all. Where it sees none, it is hidden (below).
  std::function<KeyRange(size_t row)> visible;
  // Adds a mask to the scores of `keys`. False: it hides all of them.
  std::function<bool(size_t head, size_t row, KeyRange keys, double* scores)> add_mask;

  // Weights that are held in int8: changes the weights of one row, and with them what each may be
  // off. The sum of the weights stays that of the unchanged ones.
  std::function<void(size_t head, std::span<double> weights, std::span<double> off)> quantise;
  std::vector<double> value_scales;  // the result is multiplied by, one for each head

  // What a sound kernel rounds.
  DType weight_type = DType::kFloat32;  // the type it holds weights in
  bool half_scores = false;             // it holds scores in half
  double operand_unit = 0;  // relative, of each number of a query or key that it rounds itself
};

// Where the results of a sequence go. Rows and heads lie apart as those of HeadRows do, `slack` as
// `values`. `lse` is the logarithm of the sum of exp(score), with its slack; null for none.
struct Place {
  double* values = nullptr;
  double* slack = nullptr;
  size_t row_step = 0;
  size_t head_step = 0;
  double* lse = nullptr;
  double* lse_slack = nullptr;
  size_t lse_row_step = 0;
  size_t lse_head_step = 0;
};

// A row of which the mask hides every key. Its values are those of the scores under the mask;
// kernels that lose the scores under it give `average` instead, the mean of all values. Both are
// the same where the mask is infinite.
struct HiddenRow {
  size_t row;
  size_t head;
  std::vector<double> average;
  std::vector<double> slack;  // of the average
};

// On `threads` threads (0: all cores); by plain loops where the limits of the task ask for it. All
// sizes fit together. Returns the hidden rows, in order. Without keys nothing is written.
std::vector<HiddenRow> attend(const Task& task, const Sequence& sequence, const Place& place,
                              size_t threads);

// Asks the task for what attend() needs for itself at most, where sequences have no more queries
// and keys.
Result<void> make_attend_room(Task& task, const Sequence& sequence, size_t queries, size_t keys);

}  // namespace ait::golden
