#include "golden/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "base/parallel.h"
#include "golden/exponentials.h"
#include "golden/rounding.h"
#include "metrics/elements.h"

namespace ait::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows that are computed together: the scores of so many numbers stay in the second-level cache,
// and where rows see different keys few enough that little is computed in vain.
constexpr size_t kBlockScores = size_t{1} << 18;
constexpr size_t kMostRows = 192;
constexpr size_t kLeastRows = 16;
// With fewer rows it costs more to lay keys and values out than to read them as they are.
constexpr size_t kWorthPanels = 4;

// Room for `count` numbers, whatever they are.
double* at_least(std::vector<double>& numbers, size_t count) {
  if (numbers.size() < count) numbers.resize(count);
  return numbers.data();
}

size_t groups_of(size_t keys) { return (keys + kGroupKeys - 1) / kGroupKeys; }

double of(const std::vector<double>& numbers, size_t index) {
  return numbers.empty() ? 1 : numbers[index];
}

// One head of keys and values, and what all rows that read it share.
struct KeyHead {
  Matrix keys{};
  Matrix values{};
  double longest = 0;           // of the keys, as vectors
  double largest = 0;           // of the numbers in the keys
  std::vector<double> peaks;    // the largest |value| up to each group of keys: [groups][size]
  std::vector<double> squares;  // of the largest |value| in each group
  std::vector<double> key_memory, value_memory;
};

void read_key_head(const Sequence& sequence, size_t head, KeyHead& out) {
  out.keys = sequence.keys.head(head, out.key_memory);
  out.values = sequence.values.head(head, out.value_memory);
  out.longest = 0;
  for (const double length : row_norms(out.keys)) out.longest = std::max(out.longest, length);
  out.largest = 0;
  for (size_t j = 0; j < out.keys.rows && sequence.operand_unit != 0; ++j)
    for (size_t d = 0; d < out.keys.columns; ++d)
      out.largest = std::max(out.largest, std::abs(out.keys.at(j, d)));
  const size_t size = out.values.columns;
  out.peaks.assign(groups_of(out.values.rows) * size, 0.0);
  for (size_t j = 0; j < out.values.rows; ++j) {
    const double* value = out.values.data + j * out.values.row_step;
    double* peak = out.peaks.data() + j / kGroupKeys * size;
    for (size_t d = 0; d < size; ++d) {
      // Infinite and NaN do not widen the bound of their neighbours.
      const double magnitude = std::abs(value[d]) < kInfinity ? std::abs(value[d]) : 0;
      peak[d] = std::max(peak[d], magnitude);
    }
  }
  out.squares.resize(out.peaks.size());
  for (size_t i = 0; i < out.peaks.size(); ++i) out.squares[i] = out.peaks[i] * out.peaks[i];
  for (size_t i = size; i < out.peaks.size(); ++i)
    out.peaks[i] = std::max(out.peaks[i], out.peaks[i - size]);
}

// One query of one head.
struct Row {
  size_t head;   // of the queries
  size_t index;  // the query
  const double* query;
  KeyRange keys;  // that it sees; all where it is hidden
  bool hidden;
};

// `queries` are those of its head.
Row row_of(const Sequence& sequence, const Matrix& queries, size_t head, size_t index) {
  const double* query = queries.data + index * queries.row_step;
  Row row{head, index, query, {0, sequence.keys.rows}, false};
  if (!sequence.visible) return row;
  const KeyRange visible = sequence.visible(index);
  row.hidden = visible.first >= visible.last;
  if (!row.hidden) row.keys = visible;
  return row;
}

// What a product is multiplied by until it is a score.
double factor_of(const Sequence& sequence, size_t head, size_t index) {
  return sequence.scale * of(sequence.head_scales, head) * of(sequence.row_scales, index);
}

// Whether the query may be multiplied by that beforehand: nothing happens in between.
bool scales_queries(const Sequence& sequence) {
  return sequence.key_terms.empty() && !sequence.half_products;
}

// From products to scores, of the keys of this row.
void finish_scores(const Sequence& sequence, Row& row, double* scores) {
  const size_t count = row.keys.count();
  if (!scales_queries(sequence)) {
    const double before = of(sequence.head_scales, row.head);
    const double after = sequence.scale * of(sequence.row_scales, row.index);
    for (size_t j = 0; j < count; ++j) {
      double score = scores[j];
      if (!sequence.key_terms.empty()) score += sequence.key_terms[row.keys.first + j];
      score *= before;
      if (sequence.half_products) score = round_to(DType::kFloat16, score);
      scores[j] = score * after;
    }
  }
  if (sequence.clamp)
    for (size_t j = 0; j < count; ++j)
      scores[j] = std::min(std::max(scores[j], sequence.clamp->first), sequence.clamp->second);
  if (!row.hidden && sequence.add_mask)
    row.hidden = !sequence.add_mask(row.head, row.index, row.keys, scores);
}

RowNoise noise_of(const Sequence& sequence, const Row& row, const KeyHead& keys) {
  double squares = 0;
  for (size_t d = 0; d < sequence.queries.size; ++d) squares += row.query[d] * row.query[d];
  const double length = std::sqrt(squares) * std::abs(factor_of(sequence, row.head, row.index));
  RowNoise noise;
  noise.relative =
      half_step(sequence.weight_type, 1) + kFunctionUnits * kFloat32Unit +
      kFloat32Unit * std::sqrt(static_cast<double>(sequence.queries.size)) * length * keys.longest +
      sequence.operand_unit * length * keys.largest;
  if (sequence.clamp)  // whose limits kernels hold in half
    noise.relative += half_step(DType::kFloat16, sequence.clamp->first) +
                      half_step(DType::kFloat16, sequence.clamp->second);
  // A hidden row of a kernel with scores in half has another form.
  const bool half = sequence.half_scores && !row.hidden;
  noise.of_score = half ? half_step(DType::kFloat16, 1) : kFloat32Unit;
  noise.floor = half_step(sequence.weight_type, 0);
  return noise;
}

// Makes weights of the scores of one row, with the noises of groups of keys. The first `before`
// scores are of keys that it does not see.
RowSums weigh(const Sequence& sequence, const Row& row, const KeyHead& keys, bool plainly,
              size_t before, std::span<double> scores, double* noises) {
  const size_t count = scores.size();
  const RowNoise noise = noise_of(sequence, row, keys);
  std::vector<double> off(sequence.quantise ? count : 0);
  double* each = sequence.quantise ? off.data() : nullptr;
  const auto run = [&] {
    return (plainly ? exponentials_plainly : exponentials)(scores.data(), count, noise, noises,
                                                           each);
  };
  RowSums out = run();
  if (out.largest == -kInfinity) {  // nothing is left of the scores: all count the same
    std::fill_n(scores.begin() + static_cast<ptrdiff_t>(before), row.keys.count(), 0.0);
    out = run();
  }
  if (sequence.quantise && std::isfinite(out.total)) {
    sequence.quantise(row.head, scores, off);
    std::fill(noises, noises + groups_of(count), 0.0);
    for (size_t j = 0; j < count; ++j) noises[j / kGroupKeys] += off[j] * off[j];
  }
  return out;
}

// Of one row, for each number of a value: the sums over keys of weight * value and of noise * peak².
struct Products {
  const double* sums;
  const double* squares;
};

void store(const Sequence& sequence, const KeyHead& keys, const Row& row, const RowSums& sums,
           const Products& products, const Place& place) {
  const size_t size = sequence.values.size;
  const double value_scale = of(sequence.value_scales, row.head);
  const double scale = value_scale / sums.total;
  const auto count = static_cast<double>(row.keys.count());
  const double sum_unit = sum_slack(row.keys.count(), 1);
  const double* peaks = keys.peaks.data() + (groups_of(row.keys.last) - 1) * size;
  // The sum of the weights is off as well, and the whole result with it.
  const double relative = sums.noise / (sums.total * sums.total);
  const size_t first = row.index * place.row_step + row.head * place.head_step;
  for (size_t d = 0; d < size; ++d) {
    const double value = products.sums[d] * scale;
    const double sum_off = sum_unit * (std::abs(peaks[d] * value_scale) + std::abs(value));
    const double weights_off =
        kMargin * std::sqrt(products.squares[d] * scale * scale + value * value * relative);
    const double slack = sum_off + weights_off;
    place.values[first + d] = value;
    place.slack[first + d] = std::isfinite(slack) ? slack : 0;
  }
  if (place.lse == nullptr) return;
  const size_t lse = row.index * place.lse_row_step + row.head * place.lse_head_step;
  place.lse[lse] = sums.largest + std::log(sums.total);
  place.lse_slack[lse] =
      kMargin * (std::sqrt(sums.noise) / sums.total +
                 kFloat32Unit * (std::sqrt(count) + kFunctionUnits * (1 + std::abs(sums.largest))));
}

// As the definition reads. `scores` has room for all keys.
void attend_plainly(const Sequence& sequence, const KeyHead& keys, Row& row,
                    std::vector<double>& scores, const Place& place) {
  const size_t size = sequence.values.size;
  const double factor = scales_queries(sequence) ? factor_of(sequence, row.head, row.index) : 1;
  // Groups of keys begin at the same places for every row.
  const size_t aligned = row.keys.first / kGroupKeys * kGroupKeys;
  std::fill(scores.begin(), scores.end(), -kInfinity);
  for (size_t j = row.keys.first; j < row.keys.last; ++j) {
    double sum = 0;
    for (size_t d = 0; d < sequence.queries.size; ++d)
      sum += row.query[d] * factor * keys.keys.at(j, d);
    scores[j - aligned] = sum;
  }
  finish_scores(sequence, row, scores.data() + (row.keys.first - aligned));
  const size_t count = row.keys.last - aligned;
  std::vector<double> noises(groups_of(count));
  const RowSums weighed = weigh(sequence, row, keys, true, row.keys.first - aligned,
                                std::span(scores).first(count), noises.data());
  std::vector<double> sums(size, 0), squares(size, 0);
  for (size_t j = 0; j < count; ++j)
    for (size_t d = 0; d < size; ++d) sums[d] += scores[j] * keys.values.at(aligned + j, d);
  for (size_t group = 0; group < noises.size(); ++group)
    for (size_t d = 0; d < size; ++d)
      squares[d] += noises[group] * keys.squares[(aligned / kGroupKeys + group) * size + d];
  store(sequence, keys, row, weighed, {sums.data(), squares.data()}, place);
}

HiddenRow average_of(const Sequence& sequence, const KeyHead& keys, const Row& row) {
  const size_t size = keys.values.columns;
  std::vector<double> sums(size, 0), magnitudes(size, 0), squares(size, 0);
  for (size_t j = 0; j < keys.values.rows; ++j)
    for (size_t d = 0; d < size; ++d) {
      const double value = keys.values.at(j, d);
      sums[d] += value;
      magnitudes[d] += std::abs(value);
      squares[d] += value * value;
    }
  const double scale = of(sequence.value_scales, row.head) / static_cast<double>(keys.values.rows);
  HiddenRow out{row.index, row.head, {}, {}};
  for (size_t d = 0; d < size; ++d) {
    out.average.push_back(sums[d] * scale);
    out.slack.push_back(sum_slack(keys.values.rows, magnitudes[d] * std::abs(scale)) +
                        kMargin * half_step(sequence.weight_type, 1) * std::sqrt(squares[d]) *
                            std::abs(scale));
  }
  return out;
}

// Memory that is used for one block after the other.
struct Scratch {
  KeyHead head;
  std::vector<std::vector<double>> query_memory;  // of each head that reads the same keys
  std::vector<Matrix> query_heads;
  Panels keys;
  Panels values;
  Panels squares;
  std::vector<double> queries, scores, noises, sums, square_sums;
  std::vector<Row> rows;
  std::vector<RowSums> row_sums;
};

void read_queries(const Sequence& sequence, size_t key_head, Scratch& scratch) {
  const size_t group_heads = sequence.queries.heads / sequence.keys.heads;
  scratch.query_memory.resize(group_heads);
  scratch.query_heads.clear();
  for (size_t i = 0; i < group_heads; ++i)
    scratch.query_heads.push_back(
        sequence.queries.head(key_head * group_heads + i, scratch.query_memory[i]));
}

// The rows [first, last) of those that read one head of keys: the heads of a query stand one after
// another, then those of the next query. `laid_out`: so are keys and values, for products.
void attend_block(const Sequence& sequence, size_t key_head, size_t first, size_t last,
                  bool laid_out, const Place& place, Scratch& scratch,
                  std::vector<HiddenRow>& hidden) {
  const size_t group_heads = scratch.query_heads.size();
  const size_t size = sequence.queries.size;
  const size_t value_size = sequence.values.size;
  const size_t rows = last - first;
  const KeyHead& keys = scratch.head;
  double* queries = at_least(scratch.queries, rows * size);
  scratch.rows.clear();
  KeyRange seen{sequence.keys.rows, 0};
  for (size_t i = first; i < last; ++i) {
    const size_t head = i % group_heads;
    const Row row =
        row_of(sequence, scratch.query_heads[head], key_head * group_heads + head, i / group_heads);
    const double factor = scales_queries(sequence) ? factor_of(sequence, row.head, row.index) : 1;
    for (size_t d = 0; d < size; ++d) queries[(i - first) * size + d] = row.query[d] * factor;
    seen.first = std::min(seen.first, row.keys.first);
    seen.last = std::max(seen.last, row.keys.last);
    scratch.rows.push_back(row);
  }
  seen.first = seen.first / kGroupKeys * kGroupKeys;
  const size_t count = seen.count();
  const size_t groups = groups_of(count);
  const auto part = [&](const Matrix& m) { return part_of(m, seen.first, count, 0, m.columns); };
  const bool prefix = laid_out && seen.first == 0;
  double* scores = at_least(scratch.scores, rows * count);
  if (prefix)
    scratch.keys.multiply(row_major(queries, rows, size), count, true, scores, count);
  else
    multiply(row_major(queries, rows, size), transposed(part(keys.keys)), scores, 1);
  double* noises = at_least(scratch.noises, rows * groups);
  scratch.row_sums.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    Row& row = scratch.rows[i];
    double* own = scores + i * count;
    std::fill(own, own + (row.keys.first - seen.first), -kInfinity);
    std::fill(own + (row.keys.last - seen.first), own + count, -kInfinity);
    finish_scores(sequence, row, own + (row.keys.first - seen.first));
    scratch.row_sums[i] = weigh(sequence, row, keys, false, row.keys.first - seen.first,
                                std::span(own, count), noises + i * groups);
    if (row.hidden) hidden.push_back(average_of(sequence, keys, row));
  }
  const Matrix weights = row_major(scores, rows, count);
  const Matrix noise_rows = row_major(noises, rows, groups);
  double* sums = at_least(scratch.sums, rows * value_size);
  double* squares = at_least(scratch.square_sums, rows * value_size);
  if (prefix) {
    scratch.values.multiply(weights, value_size, true, sums, value_size);
    scratch.squares.multiply(noise_rows, value_size, true, squares, value_size);
  } else {
    multiply(weights, part(keys.values), sums, 1);
    const double* own = keys.squares.data() + seen.first / kGroupKeys * value_size;
    multiply(noise_rows, row_major(own, groups, value_size), squares, 1);
  }
  for (size_t i = 0; i < rows; ++i) {
    const size_t at = i * value_size;
    store(sequence, keys, scratch.rows[i], scratch.row_sums[i], {sums + at, squares + at}, place);
  }
}

// Of the rows that read one head of keys, blocks of `together`: every `step`th from `first` on.
struct Share {
  size_t key_head;
  size_t first;
  size_t step;
  size_t together;
};

void attend_share(const Sequence& sequence, const Share& share, const Place& place,
                  Scratch& scratch, std::vector<HiddenRow>& hidden) {
  read_key_head(sequence, share.key_head, scratch.head);
  read_queries(sequence, share.key_head, scratch);
  const size_t rows = sequence.queries.rows * scratch.query_heads.size();
  const bool laid_out = rows >= kWorthPanels;
  if (laid_out) {
    scratch.keys.set(transposed(scratch.head.keys));
    scratch.values.set(scratch.head.values);
    const size_t size = sequence.values.size;
    scratch.squares.set(
        row_major(scratch.head.squares.data(), groups_of(sequence.keys.rows), size));
  }
  for (size_t first = share.first * share.together; first < rows;
       first += share.step * share.together)
    attend_block(sequence, share.key_head, first, std::min(first + share.together, rows), laid_out,
                 place, scratch, hidden);
}

// Lends scratch memory to tasks, which are more than the threads.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Scratch>();
    auto out = std::move(free_.back());
    free_.pop_back();
    return out;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

size_t block_rows(size_t keys) {
  return std::clamp(kBlockScores / std::max<size_t>(1, keys), kLeastRows, kMostRows);
}

}  // namespace

Matrix HeadRows::head(size_t index, std::vector<double>& read) const {
  if (data != nullptr) return {data + index * head_step, rows, size, row_step, 1};
  at_least(read, rows * size);
  // As many rows at a time as lie in one piece.
  const size_t together = row_step == size ? std::max<size_t>(1, rows) : 1;
  const TensorView view = task->tensor(input).view();
  for (size_t row = 0; row < rows; row += together)
    metrics::read_elements(view, first + row * row_step + index * head_step, together * size,
                           read.data() + row * size);
  return row_major(read.data(), rows, size);
}

std::vector<HiddenRow> attend(const Task& task, const Sequence& sequence, const Place& place,
                              size_t threads) {
  const size_t key_heads = sequence.keys.heads;
  const size_t group_heads = sequence.queries.heads / key_heads;
  const size_t rows = sequence.queries.rows * group_heads;
  std::vector<HiddenRow> hidden;
  if (rows == 0 || sequence.keys.rows == 0) return hidden;
  if (task.limits().reference_loops) {
    Scratch scratch;
    scratch.scores.resize(sequence.keys.rows + kGroupKeys);
    for (size_t key_head = 0; key_head < key_heads; ++key_head) {
      read_key_head(sequence, key_head, scratch.head);
      read_queries(sequence, key_head, scratch);
      for (size_t i = 0; i < rows; ++i) {
        Row row = row_of(sequence, scratch.query_heads[i % group_heads],
                         key_head * group_heads + i % group_heads, i / group_heads);
        attend_plainly(sequence, scratch.head, row, scratch.scores, place);
        if (row.hidden) hidden.push_back(average_of(sequence, scratch.head, row));
      }
    }
    return hidden;
  }
  const size_t together = block_rows(sequence.keys.rows);
  const size_t blocks = (rows + together - 1) / together;
  if (threads == 0) threads = available_threads();
  // A few heads of keys are shared among the threads.
  const size_t shares = std::min(blocks, (threads + key_heads - 1) / key_heads);
  std::vector<std::vector<HiddenRow>> found(key_heads * shares);
  ScratchPool pool;
  parallel_for(found.size(), threads, [&](size_t i) {
    auto scratch = pool.take();
    const Share share{i / shares, i % shares, shares, together};
    attend_share(sequence, share, place, *scratch, found[i]);
    pool.give_back(std::move(scratch));
  });
  for (const auto& some : found) hidden.insert(hidden.end(), some.begin(), some.end());
  return hidden;
}

Result<void> make_attend_room(Task& task, const Sequence& sequence, size_t queries, size_t keys) {
  const size_t threads = task.limits().threads == 0 ? available_threads() : task.limits().threads;
  const size_t group_rows = queries * (sequence.queries.heads / sequence.keys.heads);
  const size_t rows = std::min(block_rows(keys), group_rows);
  const size_t size = sequence.queries.size;
  const size_t value_size = sequence.values.size;
  // Keys and values twice, as they are and laid out.
  const size_t each = 3 * keys * (size + value_size) + group_rows * size +
                      rows * (2 * keys + 2 * size + 4 * value_size);
  return task.make_room(each, threads);
}

}  // namespace ait::golden
