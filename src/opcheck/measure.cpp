#include "opcheck/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "golden/rounder.h"
#include "metrics/elements.h"

namespace ait::opcheck {
namespace {

// Golden values no larger count as zero in relative errors.
constexpr double kZero = 0x1p-23;
constexpr double kSmallestNorm = 1e-8;

// So many elements are looked at together.
constexpr size_t kBlock = 2048;

bool same_non_finite(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

// An output and its golden, element by element. Of an output of which only a part is written these
// are the elements of that part.
class Pair {
 public:
  Pair(const golden::Output& expected, const TensorView& actual)
      : expected_(expected), actual_(actual), rounder_(actual.dtype) {}

  size_t elements() const { return expected_.values.size(); }
  const std::vector<double>& golden(size_t form) const {
    return form == 0 ? expected_.values : expected_.forms[form - 1].values;
  }
  // Whether the definition leaves this element open.
  bool is_open(size_t i) const { return has_open() && expected_.undefined[i]; }
  bool has_open() const { return !expected_.undefined.empty(); }

  void read(size_t first, size_t count, double* out) const {
    if (!expected_.part) return metrics::read_elements(actual_, first, count, out);
    const size_t stretch = expected_.part->stretch_elements;
    while (count > 0) {
      const size_t inside = first % stretch;
      const size_t some = std::min(count, stretch - inside);
      metrics::read_elements(actual_, expected_.part->starts[first / stretch] + inside, some, out);
      first += some;
      count -= some;
      out += some;
    }
  }

  // Some elements side by side.
  struct Block {
    size_t first;
    size_t count;
    double actual[kBlock];
    double golden[kBlock];  // rounded to the type of the output; actual where that is as good
  };
  size_t blocks() const { return (elements() + kBlock - 1) / kBlock; }
  void read_block(size_t index, size_t form, Block& block) const {
    block.first = index * kBlock;
    block.count = std::min(kBlock, elements() - block.first);
    read(block.first, block.count, block.actual);
    rounder_.round(golden(form).data() + block.first, block.count, block.golden);
    if (expected_.tie_of.empty()) return;
    for (size_t i = 0; i < block.count; ++i)
      if (golden::is_tied(expected_, block.first + i, block.actual[i]))
        block.golden[i] = block.actual[i];
  }

  // How far an element is off, in bounds.
  double share_of_bound(size_t form, size_t i, double actual) const {
    const double value = golden(form)[i];
    // A value beyond the largest of the type is infinite there, and both are right near the edge.
    if (actual == value || same_non_finite(actual, rounder_.round(value))) return 0;
    const double bound = expected_.slack.empty() ? 0 : rounder_.bound(value, expected_.slack[i]);
    const double error = std::abs(actual - value);
    return bound > 0 && std::isfinite(error) ? error / bound
                                             : std::numeric_limits<double>::infinity();
  }

 private:
  const golden::Output& expected_;
  const TensorView& actual_;
  golden::Rounder rounder_;
};

struct Errors {
  size_t passed = 0;
  double largest = 0;

  void add(double error, bool passes) {
    passed += passes ? 1 : 0;
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  void add(const Errors& other) {
    passed += other.passed;
    largest = std::max(largest, other.largest);
  }
};

// What one form of the golden says of an output.
struct Outcome {
  double of_bound = 0;  // of the worst element, how far it is off in bounds
  size_t worst = 0;
  size_t elements = 0;
  Errors relative, absolute;
  size_t mismatches = 0;   // one side is not finite
  size_t beside_zero = 0;  // where the golden value is zero

  void add(const Outcome& next) {
    if (!(next.of_bound <= of_bound)) {
      of_bound = next.of_bound;
      worst = next.worst;
    }
    elements += next.elements;
    relative.add(next.relative);
    absolute.add(next.absolute);
    mismatches += next.mismatches;
    beside_zero += next.beside_zero;
  }
};

// Which elements meet the standard, and what does not show in that.
void judge(double golden, double actual, const Standard& standard, Outcome& out) {
  if (!std::isfinite(golden) || !std::isfinite(actual)) {
    const bool same = same_non_finite(golden, actual);
    if (!same) ++out.mismatches;
    out.relative.add(0, same);
    out.absolute.add(0, same);
    return;
  }
  const double difference = std::abs(actual - golden);
  const bool is_zero = std::abs(golden) <= kZero;
  const double error = is_zero ? 0 : std::abs(actual / golden - 1);
  if (is_zero && std::abs(actual) > standard.tolerance) ++out.beside_zero;
  out.relative.add(error, standard.by_one ? difference <= 1 : error <= standard.tolerance);
  out.absolute.add(difference, difference <= (standard.by_one ? 1 : standard.tolerance));
}

Outcome outcome_of(const Pair& pair, size_t form, const Standard& standard) {
  std::vector<Outcome> parts(pair.blocks());
  parallel_for(parts.size(), 0, [&](size_t index) {
    Pair::Block block;
    pair.read_block(index, form, block);
    Outcome& out = parts[index];
    size_t same = 0;
    const auto look_at = [&](size_t i) {
      if (pair.is_open(block.first + i)) return;
      ++out.elements;
      judge(block.golden[i], block.actual[i], standard, out);
      if (block.actual[i] == block.golden[i]) return;
      const double used = pair.share_of_bound(form, block.first + i, block.actual[i]);
      if (used <= out.of_bound) return;
      out.of_bound = used;
      out.worst = block.first + i;
    };
    // Most elements are what they should be: several of them at a time are done with.
    constexpr size_t kRun = 16;
    for (size_t first = 0; first < block.count; first += kRun) {
      const size_t last = std::min(first + kRun, block.count);
      size_t equal = 0;
      for (size_t i = first; i < last; ++i) equal += block.actual[i] == block.golden[i] ? 1 : 0;
      if (equal == last - first && !pair.has_open())
        same += equal;
      else
        for (size_t i = first; i < last; ++i) look_at(i);
    }
    out.elements += same;
    out.relative.passed += same;
    out.absolute.passed += same;
  });
  Outcome whole;
  for (const Outcome& part : parts) whole.add(part);
  return whole;
}

double percent(size_t part, size_t whole) {
  return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Calls body(golden, actual) for the elements that are finite on both sides; says how many.
template <typename Body>
size_t for_each_finite(const Pair& pair, size_t form, const Body& body) {
  size_t finite = 0;
  Pair::Block block;
  for (size_t index = 0; index < pair.blocks(); ++index) {
    pair.read_block(index, form, block);
    for (size_t i = 0; i < block.count; ++i) {
      const double golden = block.golden[i], actual = block.actual[i];
      if (pair.is_open(block.first + i) || !std::isfinite(golden) || !std::isfinite(actual))
        continue;
      ++finite;
      body(golden, actual);
    }
  }
  return finite;
}

// Of the elements that are finite on both sides; NaN where there are none.
double cosine(const Pair& pair, size_t form) {
  double product = 0, golden = 0, actual = 0;
  const size_t finite = for_each_finite(pair, form, [&](double g, double a) {
    product += g * a;
    golden += g * g;
    actual += a * a;
  });
  if (finite == 0) return std::numeric_limits<double>::quiet_NaN();
  if (golden == 0 && actual == 0) return 1;
  return product /
         (std::max(std::sqrt(golden), kSmallestNorm) * std::max(std::sqrt(actual), kSmallestNorm));
}

// Of both as softmax over all elements.
double kl(const Pair& pair, size_t form) {
  double golden_highest = -std::numeric_limits<double>::infinity();
  double actual_highest = golden_highest;
  const size_t finite = for_each_finite(pair, form, [&](double g, double a) {
    golden_highest = std::max(golden_highest, g);
    actual_highest = std::max(actual_highest, a);
  });
  if (finite == 0) return std::numeric_limits<double>::quiet_NaN();
  double golden_sum = 0, actual_sum = 0;
  for_each_finite(pair, form, [&](double g, double a) {
    golden_sum += std::exp(g - golden_highest);
    actual_sum += std::exp(a - actual_highest);
  });
  const double golden = golden_highest + std::log(golden_sum);
  const double actual = actual_highest + std::log(actual_sum);
  double sum = 0;
  for_each_finite(pair, form, [&](double g, double a) {
    const double log_p = g - golden;
    sum += std::exp(log_p) * (log_p - (a - actual));
  });
  return std::max(0.0, sum);
}

void put_into_row(const Outcome& outcome, const Standard& standard, const Metrics& metrics,
                  CheckRow& row) {
  row.relative_rate_percent = percent(outcome.relative.passed, outcome.elements);
  row.max_relative_error = outcome.relative.largest;
  if (metrics.absolute) {
    row.absolute_rate_percent = percent(outcome.absolute.passed, outcome.elements);
    row.max_absolute_error = outcome.absolute.largest;
  }
  if (outcome.mismatches > 0)
    row.reasons.push_back("nan/inf mismatch: " + std::to_string(outcome.mismatches));
  if (outcome.beside_zero > 0)
    row.reasons.push_back("nonzero where golden is zero: " + std::to_string(outcome.beside_zero));
  row.verdict =
      *row.relative_rate_percent >= standard.rate_percent ? Verdict::kPass : Verdict::kFailed;
}

}  // namespace

std::optional<Standard> standard_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kInt64:
    case DType::kUInt64:
      return Standard{0.0001, 99.99};
    case DType::kFloat16:
      return Standard{0.001, 99.9};
    case DType::kBFloat16:
      return Standard{0.004, 99.6};
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt16:
      return Standard{1, 99.9, true};
    case DType::kUInt8:
      return Standard{1, 99, true};
    case DType::kBool:
      return Standard{0.0001, 100};
    default:
      return std::nullopt;
  }
}

namespace {

// How many elements beside the part that is written have changed.
size_t changed_beside(const golden::Part& part, const TensorView& actual,
                      const TensorView& before) {
  const size_t size = size_bytes(actual.dtype);
  const bool have_bytes = actual.plain() && before.plain() && actual.dtype == before.dtype;
  size_t changed = 0;
  const auto compare = [&](size_t first, size_t end) {
    double now[kBlock], then[kBlock];
    for (; first < end; first += kBlock) {
      const size_t count = std::min(kBlock, end - first);
      if (have_bytes &&
          std::memcmp(actual.data + first * size, before.data + first * size, count * size) == 0)
        continue;
      metrics::read_elements(actual, first, count, now);
      metrics::read_elements(before, first, count, then);
      for (size_t i = 0; i < count; ++i)
        changed += now[i] != then[i] && !(std::isnan(now[i]) && std::isnan(then[i]));
    }
  };
  size_t next = 0;
  for (const size_t start : part.starts) {
    compare(next, start);
    next = start + part.stretch_elements;
  }
  compare(next, actual.elements);
  return changed;
}

}  // namespace

void measure(const golden::Output& expected, const TensorView& actual,
             const std::optional<Tensor>& before, const Metrics& metrics, CheckRow& row) {
  const Pair pair(expected, actual);
  row.standard = standard_of(actual.dtype);
  const Standard standard = row.standard.value_or(Standard());
  // The form that it agrees with best is the one that its device gives.
  size_t form = 0;
  Outcome outcome = outcome_of(pair, 0, standard);
  for (size_t other = 1; other <= expected.forms.size(); ++other)
    if (const Outcome next = outcome_of(pair, other, standard); next.of_bound < outcome.of_bound) {
      outcome = next;
      form = other;
    }
  row.form = form == 0 ? expected.form : expected.forms[form - 1].name;
  row.of_bound = outcome.of_bound;
  if (outcome.of_bound > 0) {
    row.worst_element = outcome.worst;
    row.worst_golden = pair.golden(form)[outcome.worst];
    pair.read(outcome.worst, 1, &row.worst_actual);
  }
  if (metrics.cosine) row.cosine_similarity = cosine(pair, form);
  if (metrics.kl) row.kl_divergence = kl(pair, form);
  if (!row.standard) {
    row.verdict = Verdict::kFailed;
    row.reasons.push_back(std::string(name(actual.dtype)) + " not supported!");
    return;
  }
  put_into_row(outcome, standard, metrics, row);
  if (!expected.part) return;
  if (!before) {
    row.reasons.emplace_back("input dumped after in-place write: only what it wrote was compared");
  } else if (const size_t changed = changed_beside(*expected.part, actual, before->view());
             changed > 0) {
    row.verdict = Verdict::kFailed;
    row.of_bound = std::numeric_limits<double>::infinity();
    row.reasons.push_back("changed outside of what it writes: " + std::to_string(changed));
  }
}

}  // namespace ait::opcheck
