#include <algorithm>
#include <cmath>
#include <numeric>

#include "golden/families.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using graph::SamplingType;

// The numbers of glibc's rand() after srand(seed), from which the library draws. Other C libraries
// give others, so they are made here.
class GlibcRandom {
 public:
  explicit GlibcRandom(int64_t seed) {
    constexpr int64_t kModulus = 2147483647;
    constexpr size_t kFirst = 31, kSame = 34, kDropped = 344;
    auto state = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(seed)));
    if (state == 0) state = 1;
    for (size_t i = 0; i < kFirst; ++i) {
      numbers_.push_back(static_cast<uint32_t>(state));
      state = 16807 * (state % 127773) - 2836 * (state / 127773);
      if (state < 0) state += kModulus;
    }
    while (numbers_.size() < kSame) numbers_.push_back(numbers_[numbers_.size() - kFirst]);
    while (numbers_.size() < kDropped) advance();
  }

  // rand() / RAND_MAX.
  double next() {
    advance();
    return static_cast<double>(numbers_.back() >> 1) / 2147483647;
  }

 private:
  void advance() {
    const size_t end = numbers_.size();
    numbers_.push_back(numbers_[end - 3] + numbers_[end - 31]);
  }

  std::vector<uint32_t> numbers_;
};

// By how much the running sums of half and bfloat16 differ between sound kernels: what one of them
// finds on either side of a limit that is no further away is as good as the other.
constexpr double kSumTie = 0x1p-9;

// Sums of all numbers up to each, rounded to the type each time: that is how the library sums.
std::vector<double> running_sums(std::span<const double> values, DType dtype) {
  std::vector<double> sums;
  sums.reserve(values.size());
  double total = 0;
  for (const double value : values) sums.push_back(total = round_to(dtype, total + value));
  return sums;
}

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

// A value of an output with those that stand for it.
void add_value(Output& out, double value, std::vector<double> as_good) {
  out.values.push_back(value);
  std::sort(as_good.begin(), as_good.end());
  as_good.erase(std::unique(as_good.begin(), as_good.end()), as_good.end());
  const bool tied = as_good.size() > 1;
  out.tie_of.push_back(tied ? out.ties.size() : Output::kNoTie);
  if (tied) out.ties.push_back(std::move(as_good));
}

void add_undefined(Output& out, size_t count) {
  out.undefined.resize(out.values.size());
  out.values.resize(out.values.size() + count, 0);
  out.undefined.resize(out.values.size(), true);
  if (!out.tie_of.empty()) out.tie_of.resize(out.values.size(), Output::kNoTie);
}

// The lists that may be empty are either that or as long as the values.
Output finished(Output out) {
  if (!out.undefined.empty()) out.undefined.resize(out.values.size());
  if (out.ties.empty()) out.tie_of.clear();
  if (!out.ties.empty()) out.tie_of.resize(out.values.size(), Output::kNoTie);
  return out;
}

// Probabilities as a table of one row for each sequence.
Result<Array> table(const Task& task, std::string_view name) {
  Array rows = task.values(name);
  if (rows.rank() != 2)
    return fail(task.contradiction(std::string(name) + " has the shape " + shape_text(rows.shape) +
                                   ", not two dimensions"));
  return rows;
}

}  // namespace

Result<Expected> multinomial(Task& task) {
  const int64_t samples = task.param().integer("numSamples", 1);
  const int64_t seed = task.param().integer("randSeed", 0);
  constexpr int64_t kMostSamples = 64;
  if (samples < 1 || samples > kMostSamples)
    return fail(task.contradiction("numSamples " + std::to_string(samples) +
                                   " is not between 1 and " + std::to_string(kMostSamples)));
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const auto x = table(task, "x");
  if (!x) return fail(x.error());
  if (auto room = task.make_room(x->elements()); !room) return fail(room.error());
  GlibcRandom random(seed);
  std::vector<double> draws(static_cast<size_t>(samples));
  for (double& draw : draws) draw = random.next();
  Output out;
  out.shape = {x->shape[0], samples};
  for (size_t row = 0; row < x->rows(); ++row) {
    const auto values = x->row(row);
    if (has_nan(values)) {
      add_undefined(out, draws.size());
      continue;
    }
    const std::vector<double> sums = running_sums(values, task.dtype("x"));
    for (const double draw : draws) {
      const auto first =
          std::find_if(sums.begin(), sums.end(), [&](double sum) { return sum > draw; });
      const auto found = static_cast<double>(first == sums.end() ? 0 : first - sums.begin());
      std::vector<double> as_good;
      for (size_t i = 0; i < sums.size(); ++i) {
        const double before = i == 0 ? 0 : sums[i - 1];
        if (before <= draw + kSumTie && sums[i] > draw - kSumTie && values[i] > 0)
          as_good.push_back(static_cast<double>(i));
      }
      if (sums.back() <= draw + kSumTie) as_good.push_back(0);  // the answer where there is none
      as_good.push_back(found);
      add_value(out, found, std::move(as_good));
    }
  }
  return task.give({finished(std::move(out))});
}

namespace {

// What was picked of a row, and the places that are as good.
struct Pick {
  size_t place = 0;
  std::vector<size_t> others;
};

// One row of probabilities in descending order, of which only the first have a chance.
struct Sorted {
  std::vector<size_t> order;
  std::vector<double> values;
  std::vector<double> sums;  // running, of the values that have a chance
  double least = 0;          // of a value that has one

  bool has_chance(size_t place) const { return values[place] >= least && values[place] > 0; }
  // The last place whose sum is below a limit; the first where there is none.
  size_t last_below(double limit) const {
    const auto count = std::count_if(sums.begin(), sums.end(), [&](double s) { return s < limit; });
    return static_cast<size_t>(std::max<ptrdiff_t>(count, 1) - 1);
  }
};

// `kept` counts those that surely have a chance; with `by_value` all that are as large as the one
// after them have it, too.
Sorted sorted(std::span<const double> row, size_t kept, bool by_value, DType dtype) {
  Sorted out;
  out.order = falling_order(row);
  if (!by_value) out.order.resize(kept);
  for (const size_t place : out.order) out.values.push_back(row[place]);
  if (by_value && kept < row.size()) out.least = out.values[kept];
  std::vector<double> chances = out.values;
  for (double& value : chances)
    if (value < out.least) value = 0;
  out.sums = running_sums(chances, dtype);
  return out;
}

// The first place whose running sum passes a share of what is kept below `top_p`.
Pick by_sum(const Sorted& row, double top_p, double draw, bool beyond_equals) {
  const double limit = row.sums[row.last_below(top_p)] * draw;
  Pick pick;
  while (pick.place + 1 < row.sums.size() &&
         (row.sums[pick.place] < limit || (beyond_equals && row.sums[pick.place] == limit)))
    ++pick.place;
  const double low = row.sums[row.last_below(top_p - kSumTie)] * draw - kSumTie;
  const double high = row.sums[row.last_below(top_p + kSumTie)] * draw + kSumTie;
  for (size_t i = 0; i < row.sums.size(); ++i)
    if ((i == 0 ? 0 : row.sums[i - 1]) <= high && row.sums[i] >= low && row.has_chance(i))
      pick.others.push_back(i);
  return pick;
}

// The largest quotient of a probability and a random number, among those whose sums stay within
// `top_p`.
Pick by_quotient(const Sorted& row, double top_p, std::span<const double> divisors) {
  const auto quotient = [&](size_t place) { return row.values[place] / divisors[place]; };
  Pick pick;
  double best = 0, surely = 0;
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (!row.has_chance(i)) continue;
    if (row.sums[i] <= top_p && quotient(i) > best) {
      best = quotient(i);
      pick.place = i;
    }
    if (row.sums[i] <= top_p - kSumTie) surely = std::max(surely, quotient(i));
  }
  for (size_t i = 0; i < row.values.size(); ++i)
    if (row.has_chance(i) && row.sums[i] <= top_p + kSumTie &&
        quotient(i) >= (1 - kSumTie) * surely)
      pick.others.push_back(i);
  if (surely == 0) pick.others.push_back(0);  // of nothing but zeros the first
  return pick;
}

// How many of the first places count: one more than the last that is kept, for any limit that is
// as good as `top_p`.
size_t kept_count(const Sorted& row, double top_p, bool exponential) {
  if (!exponential) return row.last_below(top_p) + 1;
  size_t count = 1;
  while (count < row.sums.size() && row.sums[count] <= top_p && row.values[count] >= row.least)
    ++count;
  return count;
}

// ln(probability / sum of what is kept) of the first places.
void add_logprobs(Output& out, const Sorted& row, double top_p, bool exponential, size_t size) {
  constexpr double kLeftOut = -9999;
  const size_t kept = kept_count(row, top_p, exponential);
  const size_t fewest = kept_count(row, top_p - kSumTie, exponential);
  const size_t most = kept_count(row, top_p + kSumTie, exponential);
  const double total = row.sums[kept - 1];
  if (!(row.sums[fewest - 1] > 0)) {  // no probability at all
    add_undefined(out, size);
    out.slack.resize(out.values.size(), 0);
    return;
  }
  const double other_totals = std::log(row.sums[most - 1] / row.sums[fewest - 1]);
  for (size_t i = 0; i < size; ++i) {
    const double value = i < kept ? std::log(row.values[i] / total) : kLeftOut;
    out.values.push_back(value);
    constexpr double kUnits = 4;  // of the logarithm and the division
    out.slack.push_back(i < kept && std::isfinite(value)
                            ? other_totals + kSumTie / total +
                                  kMargin * kUnits * kFloat32Unit * (1 + std::abs(value))
                            : 0);
    if (i >= fewest && i < most) {
      out.undefined.resize(out.values.size() - 1);
      out.undefined.push_back(true);
    }
  }
}

// The numbers that go with each row, one for all or one for each.
Result<std::vector<double>> per_row(const Task& task, std::string_view name, size_t rows) {
  Array given = task.values(name);
  if (given.elements() != 1 && given.elements() != rows)
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(given.elements()) +
                                   " elements for " + std::to_string(rows) + " rows"));
  given.data.resize(rows, given.data[0]);
  return given.data;
}

struct SamplingMode {
  SamplingType type = SamplingType::kSingleTopk;
  bool exponential() const {
    return type == SamplingType::kExponential || type == SamplingType::kExponentialLogprobs;
  }
  bool logprobs() const {
    return type == SamplingType::kMultinomialLogprobs || type == SamplingType::kExponentialLogprobs;
  }
  std::vector<std::string_view> inputs() const {
    if (type == SamplingType::kSingleTopk) return {"probs", "topp"};
    if (type == SamplingType::kMultinomial) return {"probs", "topk", "topp"};
    return {"probs", "topk", "topp", exponential() ? "exp" : "rand"};
  }
};

// What each row's random number is.
Result<std::vector<double>> draws_of(Task& task, SamplingType type, size_t rows) {
  const std::vector<int64_t> seeds = task.param().integers("randSeeds", {});
  if (type == SamplingType::kMultinomialLogprobs) return per_row(task, "rand", rows);
  std::vector<double> draws(rows, 0);
  if (type == SamplingType::kSingleTopk) {
    GlibcRandom random(task.param().integer("randSeed", 0));
    for (double& draw : draws) draw = random.next();
  } else if (type == SamplingType::kMultinomial) {
    if (seeds.size() != rows)
      return fail(task.contradiction("there are " + std::to_string(seeds.size()) +
                                     " randSeeds for " + std::to_string(rows) + " rows"));
    for (size_t i = 0; i < rows; ++i) draws[i] = GlibcRandom(seeds[i]).next();
  }
  return draws;
}

}  // namespace

Result<Expected> topk_topp_sampling(Task& task) {
  const SamplingMode mode{task.param().choice("topkToppSamplingType", SamplingType::kSingleTopk)};
  const int64_t single_k = task.param().integer("topk", 100);
  const int64_t logprobs = task.param().integer("logProbsSize", 0);
  if (mode.type == SamplingType::kUndefined) return fail(task.no_golden("topkToppSamplingType -1"));
  if (auto given = task.takes(mode.inputs()); !given) return fail(given.error());
  const auto probs = table(task, "probs");
  if (!probs) return fail(probs.error());
  const size_t rows = probs->rows(), words = probs->row_elements();
  const bool single = mode.type == SamplingType::kSingleTopk;
  const auto top_p = per_row(task, "topp", rows);
  if (!top_p) return fail(top_p.error());
  const auto draws = draws_of(task, mode.type, rows);
  if (!draws) return fail(draws.error());
  auto top_k = indices(task, "topk", words + 1);
  if (!top_k) return fail(top_k.error());
  if (single && (single_k < 1 || static_cast<uint64_t>(single_k) > words))
    return fail(task.contradiction("topk " + std::to_string(single_k) +
                                   " is not between 1 and the " + std::to_string(words) +
                                   " columns of probs"));
  if (single) top_k->assign(1, static_cast<size_t>(single_k));
  if (top_k->size() == 1) top_k->resize(rows, top_k->front());
  if (top_k->size() != rows)
    return fail(task.contradiction("topk has " + std::to_string(top_k->size()) + " elements for " +
                                   std::to_string(rows) + " rows"));
  const Array divisors = task.values("exp");
  if (mode.exponential() && divisors.shape != probs->shape)
    return fail(task.contradiction("probs and exp have the shapes " + shape_text(probs->shape) +
                                   " and " + shape_text(divisors.shape)));
  if (mode.logprobs() && (logprobs < 0 || static_cast<uint64_t>(logprobs) > words))
    return fail(task.contradiction("logProbsSize " + std::to_string(logprobs) + " is beyond the " +
                                   std::to_string(words) + " columns of probs"));
  if (auto room = task.make_room(probs->elements(), 4); !room) return fail(room.error());
  Output picked, chances, logs;
  picked.shape = chances.shape = {probs->shape[0], 1};
  logs.shape = {probs->shape[0], logprobs};
  for (size_t i = 0; i < rows; ++i) {
    const auto row = probs->row(i);
    const bool random_nan = mode.exponential() ? has_nan(divisors.row(i)) : std::isnan((*draws)[i]);
    if (has_nan(row) || random_nan || std::isnan((*top_p)[i])) {
      add_undefined(picked, 1);
      add_undefined(chances, 1);
      if (mode.logprobs()) add_undefined(logs, static_cast<size_t>(logprobs));
      logs.slack.resize(logs.values.size(), 0);
      continue;
    }
    const Sorted order = sorted(row, (*top_k)[i], !single, task.dtype("probs"));
    const Pick pick = mode.exponential()
                          ? by_quotient(order, (*top_p)[i], divisors.row(i))
                          : by_sum(order, (*top_p)[i], (*draws)[i], /*beyond_equals=*/single);
    // Which of equal probabilities comes first is up to the sort, so all of them stand for each
    // other.
    std::vector<double> likely = {order.values[pick.place]};
    for (const size_t other : pick.others) likely.push_back(order.values[other]);
    std::sort(likely.begin(), likely.end());
    std::vector<double> places;
    for (size_t word = 0; word < words; ++word)
      if (std::binary_search(likely.begin(), likely.end(), row[word]))
        places.push_back(static_cast<double>(word));
    add_value(picked, static_cast<double>(order.order[pick.place]), std::move(places));
    add_value(chances, order.values[pick.place], std::move(likely));
    if (mode.logprobs())
      add_logprobs(logs, order, (*top_p)[i], mode.exponential(), static_cast<size_t>(logprobs));
  }
  std::vector<Output> outputs;
  outputs.push_back(finished(std::move(picked)));
  outputs.push_back(finished(std::move(chances)));
  if (mode.logprobs()) outputs.push_back(finished(std::move(logs)));
  return task.give(std::move(outputs));
}

}  // namespace ait::golden
