#include "compare/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace ait::compare {
namespace {

// The old tools' lower bound of a norm in the cosine.
constexpr double kOldNormClamp = 1e-8;

// Statistics in a file are off by this part of themselves at most: they are written as float32
// (2^-23, since the shortest text may lie half a unit from it), and the older tools' means and
// norms are sums in float32, whose errors are those of a handful of roundings when it is done in
// pairs.
constexpr double kWrittenRounding = 0x1p-20;

void add_reason(Row& row, std::string_view sentence) {
  if (!row.reason.empty()) row.reason += ' ';
  row.reason += sentence;
}

// `who` is the column that names the path: the old tools said it so.
std::string unreadable_reason(std::string_view who, const Error& error) {
  std::error_code ignored;
  if (error.path().empty() || std::filesystem::is_regular_file(error.path(), ignored))
    return error.text();
  return std::string(who) + ": " + printable(error.path(), 4096) + " is not a file.";
}

Side describe(const Result<Content>& content) {
  Side side;
  if (!content) return side;
  side.dtype = content->dtype;
  side.shape = content->shape;
  side.statistics = content->statistics;
  if (!content->tensor)
    side.kept = content->statistics ? capture::Kept::kStatistics : capture::Kept::kDescription;
  return side;
}

Shape without_ones(const Shape& shape) {
  Shape out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out),
               [](int64_t size) { return size != 1; });
  return out;
}

bool is_complex(const Tensor& tensor) { return info(tensor.dtype()).kind == DTypeKind::kComplex; }

metrics::Request request_for(const Options& options) {
  metrics::Request request;
  request.rows = options.rows;
  request.profile = options.profile;
  request.threads = options.threads;
  request.stop = options.stop;
  if (options.compat != MetricCompat::kOwn) {
    request.mask_absolute = true;
    request.non_finite = metrics::NonFinite::kWithhold;
  }
  return request;
}

void restore_old_values(metrics::Comparison& c, MetricCompat compat) {
  for (const double norm : {c.golden.l2_norm, c.actual.l2_norm})
    if (norm > 0) c.cosine_similarity *= norm / std::max(norm, kOldNormClamp);
  if (c.golden.l2_norm <= metrics::kMaskEpsilon) c.relative_euclidean_distance = 0;
  if (compat == MetricCompat::kAit) c.relative_euclidean_distance *= c.relative_euclidean_distance;
}

// The reason why two readable tensors cannot be held against each other, or nothing.
std::string_view obstacle(const Tensor& golden, const Tensor& actual) {
  if (golden.elements() != actual.elements()) return reasons::kShape;
  if (golden.elements() == 0) return reasons::kEmpty;
  if (is_complex(golden) != is_complex(actual)) return reasons::kComplexAgainstReal;
  return {};
}

void compare_elements(Row& row, const Tensor& golden, const Tensor& actual, const Options& options,
                      const std::vector<bool>* padding) {
  metrics::Request request = request_for(options);
  request.padding = padding;
  auto comparison = metrics::compare(golden.view(), actual.view(), request);
  if (!comparison) {
    add_reason(row, comparison.error().text());
    return;
  }
  row.golden.statistics = comparison->golden;
  row.actual.statistics = comparison->actual;
  row.comparison = *comparison;
  const bool own = options.compat == MetricCompat::kOwn;
  if (own && without_ones(golden.shape()) != without_ones(actual.shape()))
    add_reason(row, reasons::kFlattened);
  if (!own && metrics_of(row) != nullptr) restore_old_values(*row.comparison, options.compat);
}

std::string_view reason_for(capture::Kept kept, bool is_golden) {
  if (kept == capture::Kept::kStatistics)
    return is_golden ? reasons::kGoldenStatistics : reasons::kActualStatistics;
  return is_golden ? reasons::kGoldenDescription : reasons::kActualDescription;
}

bool all_finite(const metrics::Side& side) {
  return std::isfinite(side.maximum) && std::isfinite(side.minimum) && std::isfinite(side.mean) &&
         std::isfinite(side.l2_norm);
}

// Two tensors whose norms, means or extremes are this far apart are themselves at least as far
// apart: | |g| - |m| | <= |g - m| (triangle inequality), sqrt(n) |mean(g) - mean(m)| <= |g - m|
// (Cauchy-Schwarz), and maxima and minima cannot differ by more than the largest difference of two
// elements, which is no larger than |g - m|. Relative to |g|. What the numbers may be off by for
// being rounded is taken off: extremes and sqrt(n) times the mean are no larger than the norm.
// Nothing where data are not all finite: their norm leaves out elements that the other side may
// have, so that it bounds nothing.
std::optional<double> smallest_distance(const Row& row, const Content& golden_content,
                                        const Content& actual_content) {
  const metrics::Side& golden = *row.golden.statistics;
  const metrics::Side& actual = *row.actual.statistics;
  if (!all_finite(golden) || !all_finite(actual)) return std::nullopt;
  const double golden_part = golden_content.tensor ? 0 : kWrittenRounding * golden.l2_norm;
  const double actual_part = actual_content.tensor ? 0 : kWrittenRounding * actual.l2_norm;
  const double rounding = golden_content.rounding + actual_content.rounding;
  const auto apart_by = [&](double g, double m, double weight) {
    return (std::abs(g - m) - rounding) * weight - golden_part - actual_part;
  };
  const double apart = std::max(
      {0.0, apart_by(golden.l2_norm, actual.l2_norm, 1),
       apart_by(golden.mean, actual.mean, std::sqrt(static_cast<double>(golden.elements))),
       apart_by(golden.maximum, actual.maximum, 1), apart_by(golden.minimum, actual.minimum, 1)});
  if (apart == 0) return 0;
  const double scale = golden.l2_norm + golden_part + golden_content.rounding;
  return scale > 0 ? std::optional(apart / scale) : std::nullopt;
}

std::string at_least_text(double distance) {
  char text[96];
  std::snprintf(text, sizeof text, "the relative euclidean distance is at least %.3g.", distance);
  return text;
}

bool is_complex(const Content& content) { return info(content.dtype).kind == DTypeKind::kComplex; }

// At least one side has no data.
void compare_what_was_kept(Row& row, const Content& golden, const Content& actual) {
  if (count_elements(golden.shape) != count_elements(actual.shape)) {
    add_reason(row, reasons::kShape);
  } else if (is_complex(golden) != is_complex(actual)) {
    add_reason(row, reasons::kComplexAgainstReal);
  } else if (row.golden.statistics && row.actual.statistics) {
    row.distance_at_least = smallest_distance(row, golden, actual);
  }
  if (!golden.tensor) add_reason(row, reason_for(row.golden.kept, true));
  if (!actual.tensor) add_reason(row, reason_for(row.actual.kept, false));
  if (row.distance_at_least) add_reason(row, at_least_text(*row.distance_at_least));
}

}  // namespace

Content::Content(const formats::Description& description)
    : dtype(description.dtype), shape(description.shape) {
  if (!description.statistics) return;
  rounding = description.statistics->rounding;
  metrics::Side& side = statistics.emplace();
  side.elements = count_elements(shape).value_or(0) * (is_complex(*this) ? 2 : 1);
  side.maximum = description.statistics->maximum;
  side.minimum = description.statistics->minimum;
  side.mean = description.statistics->mean;
  side.l2_norm = description.statistics->l2_norm;
}

bool Side::has_non_finite() const {
  if (!statistics) return false;
  if (kept == capture::Kept::kBytes) return statistics->non_finite() > 0;
  // Some tools look at a NaN only where it gets into a sum.
  return !std::isfinite(statistics->maximum) || !std::isfinite(statistics->minimum) ||
         !std::isfinite(statistics->mean);
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kNoise:
      return "noise";
    case Verdict::kSuspicious:
      return "suspicious";
    case Verdict::kFault:
      return "fault";
    case Verdict::kBroken:
      return "broken";
  }
  return "";
}

const metrics::Comparison* metrics_of(const Row& row) {
  if (!row.comparison || row.comparison->withheld || row.comparison->compared == 0) return nullptr;
  return &*row.comparison;
}

Row measure(const Result<Content>& golden, const Result<Content>& actual, const Options& options,
            const std::vector<bool>* padding) {
  Row row;
  row.golden = describe(golden);
  row.actual = describe(actual);
  if (!golden) add_reason(row, unreadable_reason("golden_data_path", golden.error()));
  if (!actual) add_reason(row, unreadable_reason("my_data_path", actual.error()));
  const bool both_data = golden && actual && golden->tensor && actual->tensor;
  if (both_data) {
    const std::string_view why_not = obstacle(*golden->tensor, *actual->tensor);
    if (why_not.empty()) {
      compare_elements(row, *golden->tensor, *actual->tensor, options, padding);
    } else {
      add_reason(row, why_not);
    }
  }
  if (golden && golden->tensor && !row.golden.statistics)
    row.golden.statistics = metrics::statistics(golden->tensor->view(), options.threads);
  if (actual && actual->tensor && !row.actual.statistics)
    row.actual.statistics = metrics::statistics(actual->tensor->view(), options.threads);
  if (golden && actual && !both_data) compare_what_was_kept(row, *golden, *actual);

  if (row.golden.has_non_finite()) add_reason(row, reasons::kGoldenNonFinite);
  if (row.actual.has_non_finite()) add_reason(row, reasons::kActualNonFinite);
  const metrics::Comparison* c = metrics_of(row);
  if (c == nullptr) return row;

  // The old reports have no such sentence, and compatibility is there to be held against them.
  if (options.compat == MetricCompat::kOwn && c->golden_zero != c->actual_zero)
    add_reason(row, c->golden_zero ? reasons::kGoldenZero : reasons::kActualZero);
  if (is_complex(*golden->tensor)) add_reason(row, reasons::kComplex);
  return row;
}

}  // namespace ait::compare
