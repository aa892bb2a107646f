#include "opcheck/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/rounding.h"
#include "metrics/elements.h"

namespace ait::opcheck {
namespace {

// Golden values no larger count as zero in relative errors.
constexpr double kZero = 0x1p-23;
constexpr double kSmallestNorm = 1e-8;

// The elements that are compared, golden and actual side by side.
struct Values {
  std::vector<double> golden;  // rounded to the type of the output
  std::vector<double> actual;
};

bool same_non_finite(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

// How far the worst element of one form is off, in bounds.
struct Distance {
  double of_bound = 0;
  size_t element = 0;
};

Distance distance_of(const golden::Output& expected, size_t form, const std::vector<double>& actual,
                     DType dtype) {
  const std::vector<double>& golden = form == 0 ? expected.values : expected.forms[form - 1].values;
  Distance worst;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!expected.undefined.empty() && expected.undefined[i]) continue;
    // A value beyond the largest of the type is infinite there, and both are right near the edge.
    const double g = golden[i];
    const double rounded = golden::round_to(dtype, g);
    if (actual[i] == g || actual[i] == rounded || same_non_finite(actual[i], rounded) ||
        golden::is_tied(expected, i, actual[i]))
      continue;
    const double bound = golden::bound(expected, i, dtype, form);
    const double error = std::abs(actual[i] - g);
    const double used = error <= bound ? error / bound
                        : bound > 0 && std::isfinite(error)
                            ? error / bound
                            : std::numeric_limits<double>::infinity();
    if (!(used <= worst.of_bound)) worst = {used, i};
  }
  return worst;
}

struct Errors {
  size_t passed = 0;
  double largest = 0;
};

void count(double error, bool passes, Errors& out) {
  if (passes) ++out.passed;
  if (std::isfinite(error)) out.largest = std::max(out.largest, error);
}

double percent(size_t part, size_t whole) {
  return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Of the elements that are finite on both sides; NaN where there are none.
double cosine(const Values& values) {
  double product = 0, golden = 0, actual = 0;
  size_t finite = 0;
  for (size_t i = 0; i < values.golden.size(); ++i) {
    const double g = values.golden[i], a = values.actual[i];
    if (!std::isfinite(g) || !std::isfinite(a)) continue;
    ++finite;
    product += g * a;
    golden += g * g;
    actual += a * a;
  }
  if (finite == 0) return std::numeric_limits<double>::quiet_NaN();
  if (golden == 0 && actual == 0) return 1;
  return product /
         (std::max(std::sqrt(golden), kSmallestNorm) * std::max(std::sqrt(actual), kSmallestNorm));
}

double log_sum_exp(const std::vector<double>& values, const std::vector<size_t>& places) {
  double highest = -std::numeric_limits<double>::infinity();
  for (const size_t i : places) highest = std::max(highest, values[i]);
  double sum = 0;
  for (const size_t i : places) sum += std::exp(values[i] - highest);
  return highest + std::log(sum);
}

// Of both as softmax over all elements.
double kl(const Values& values) {
  std::vector<size_t> finite;
  for (size_t i = 0; i < values.golden.size(); ++i)
    if (std::isfinite(values.golden[i]) && std::isfinite(values.actual[i])) finite.push_back(i);
  if (finite.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double golden = log_sum_exp(values.golden, finite);
  const double actual = log_sum_exp(values.actual, finite);
  double sum = 0;
  for (const size_t i : finite) {
    const double log_p = values.golden[i] - golden;
    sum += std::exp(log_p) * (log_p - (values.actual[i] - actual));
  }
  return std::max(0.0, sum);
}

// Which elements meet the standard, and what does not show in that.
void judge(const Values& values, const Standard& standard, const Metrics& metrics, CheckRow& row) {
  Errors relative, absolute;
  size_t mismatches = 0, beside_zero = 0;
  for (size_t i = 0; i < values.golden.size(); ++i) {
    const double g = values.golden[i], a = values.actual[i];
    if (!std::isfinite(g) || !std::isfinite(a)) {
      const bool same = same_non_finite(g, a);
      if (!same) ++mismatches;
      count(0, same, relative);
      count(0, same, absolute);
      continue;
    }
    const double difference = std::abs(a - g);
    const double error = std::abs(g) > kZero ? std::abs(a / g - 1) : 0;
    if (std::abs(g) <= kZero && std::abs(a) > standard.tolerance) ++beside_zero;
    count(error, standard.by_one ? difference <= 1 : error <= standard.tolerance, relative);
    count(difference, standard.by_one ? difference <= 1 : difference <= standard.tolerance,
          absolute);
  }
  const size_t elements = values.golden.size();
  row.relative_rate_percent = percent(relative.passed, elements);
  row.max_relative_error = relative.largest;
  if (metrics.absolute) {
    row.absolute_rate_percent = percent(absolute.passed, elements);
    row.max_absolute_error = absolute.largest;
  }
  if (mismatches > 0) row.reasons.push_back("nan/inf mismatch: " + std::to_string(mismatches));
  if (beside_zero > 0)
    row.reasons.push_back("nonzero where golden is zero: " + std::to_string(beside_zero));
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

// The elements that the golden speaks of.
std::vector<double> elements_of(const golden::Output& expected, const TensorView& actual) {
  std::vector<double> found;
  if (!expected.part) {
    metrics::read_elements(actual, 0, actual.elements, found);
    found.resize(actual.elements);
    return found;
  }
  const size_t count = expected.part->stretch_elements;
  std::vector<double> stretch;
  for (const size_t start : expected.part->starts) {
    metrics::read_elements(actual, start, count, stretch);
    found.insert(found.end(), stretch.begin(), stretch.begin() + static_cast<ptrdiff_t>(count));
  }
  return found;
}

// How many elements beside the part that is written have changed.
size_t changed_beside(const golden::Part& part, const TensorView& actual,
                      const TensorView& before) {
  constexpr size_t kBlock = size_t{1} << 16;
  std::vector<double> now, then;
  size_t changed = 0;
  size_t next = 0;
  const auto compare = [&](size_t first, size_t end) {
    for (; first < end; first += kBlock) {
      const size_t count = std::min(kBlock, end - first);
      metrics::read_elements(actual, first, count, now);
      metrics::read_elements(before, first, count, then);
      for (size_t i = 0; i < count; ++i)
        changed += now[i] != then[i] && !(std::isnan(now[i]) && std::isnan(then[i]));
    }
  };
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
  const std::vector<double> found = elements_of(expected, actual);
  // The form that it agrees with best is the one that its device gives.
  size_t form = 0;
  Distance distance = distance_of(expected, 0, found, actual.dtype);
  for (size_t other = 1; other <= expected.forms.size(); ++other)
    if (const Distance next = distance_of(expected, other, found, actual.dtype);
        next.of_bound < distance.of_bound) {
      distance = next;
      form = other;
    }
  const std::vector<double>& golden = form == 0 ? expected.values : expected.forms[form - 1].values;
  row.form = form == 0 ? expected.form : expected.forms[form - 1].name;
  row.of_bound = distance.of_bound;
  Values values;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!expected.undefined.empty() && expected.undefined[i]) continue;
    const bool tied = golden::is_tied(expected, i, found[i]);
    values.golden.push_back(tied ? found[i] : golden::round_to(actual.dtype, golden[i]));
    values.actual.push_back(found[i]);
  }
  if (distance.of_bound > 0) {
    row.worst_element = distance.element;
    row.worst_golden = golden[distance.element];
    row.worst_actual = found[distance.element];
  }
  if (metrics.cosine) row.cosine_similarity = cosine(values);
  if (metrics.kl) row.kl_divergence = kl(values);
  row.standard = standard_of(actual.dtype);
  if (!row.standard) {
    row.verdict = Verdict::kFailed;
    row.reasons.push_back(std::string(name(actual.dtype)) + " not supported!");
    return;
  }
  judge(values, *row.standard, metrics, row);
  row.verdict =
      *row.relative_rate_percent >= row.standard->rate_percent ? Verdict::kPass : Verdict::kFailed;
  if (!expected.part) return;
  if (!before) {
    row.reasons.emplace_back("input dumped after in-place write: only what it wrote was compared");
  } else if (const size_t changed = changed_beside(*expected.part, actual, before->view());
             changed > 0) {
    row.verdict = Verdict::kFailed;
    row.of_bound = std::numeric_limits<double>::infinity();
    row.reasons.push_back("changed beside what it writes: " + std::to_string(changed));
  }
}

}  // namespace ait::opcheck
