#include "compare/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/node_paths.h"
#include "metrics/bound.h"
#include "record/crc32.h"

namespace ait::compare {
namespace {

// The old tools' lower bound of a norm in the cosine.
constexpr double kOldNormClamp = 1e-8;

void add_reason(Row& row, std::string_view sentence) {
  if (!row.reason.empty()) row.reason += ' ';
  row.reason += sentence;
}

// `who` is the column that names the path: the old tools said it so.
std::string unreadable_reason(std::string_view who, const Error& error) {
  std::error_code ignored;
  const auto where = local_path(error.path());
  if (!where && where.error().code() != ErrorCode::kNotFound) return where.error().text();
  if (error.path().empty() || (where && std::filesystem::is_regular_file(*where, ignored)))
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

std::optional<double> smallest_distance(const Row& row, const Content& golden,
                                        const Content& actual) {
  const auto written = [](const Content& content) {
    return content.tensor ? 0.0 : std::max(metrics::kWrittenRounding, content.rounding_of_type);
  };
  return metrics::distance_at_least({*row.golden.statistics, written(golden), golden.rounding},
                                    {*row.actual.statistics, written(actual), actual.rounding});
}

std::string at_least_text(double distance) {
  char text[96];
  std::snprintf(text, sizeof text, "the relative euclidean distance is at least %.3g.", distance);
  return text;
}

std::optional<metrics::Sketch> sketch_of(const Content& content) {
  return content.tensor ? metrics::sketch(content.tensor->view()) : content.sketch;
}

// Nothing unless what was kept of a side has a sketch.
std::optional<metrics::Estimate> estimate(const Row& row, const Content& golden,
                                          const Content& actual) {
  if (!golden.sketch && !actual.sketch) return std::nullopt;
  if (row.golden.has_non_finite() || row.actual.has_non_finite()) return std::nullopt;
  const auto of_golden = sketch_of(golden);
  const auto of_actual = sketch_of(actual);
  if (!of_golden || !of_actual) return std::nullopt;
  return metrics::estimate(*of_golden, row.golden.statistics->l2_norm, *of_actual,
                           row.actual.statistics->l2_norm);
}

std::string group_text(const char* what, const std::optional<metrics::Estimate::Group>& group) {
  if (!group) return {};
  std::string out = std::string(" The norms differ most in ") + what;
  if (group->first == group->last) return out + " " + std::to_string(group->first) + ".";
  return out + "s " + std::to_string(group->first) + " to " + std::to_string(group->last) + ".";
}

std::string estimate_text(const metrics::Estimate& estimate) {
  char text[256];
  std::snprintf(text, sizeof text,
                "by the sketches the relative euclidean distance is about %.3g (%.3g to %.3g), the "
                "cosine about %.6g (%.6g to %.6g).",
                estimate.distance.value, estimate.distance.least, estimate.distance.most,
                estimate.cosine.value, estimate.cosine.least, estimate.cosine.most);
  return text + group_text("row", estimate.row) + group_text("column", estimate.column);
}

bool is_complex(const Content& content) { return info(content.dtype).kind == DTypeKind::kComplex; }

// Whether a CRC-32, in eight hexadecimal digits, is that of the elements in row-major order. Some
// tools take it of bfloat16 widened to float32.
bool has_checksum(const TensorView& view, const std::string& checksum) {
  constexpr size_t kStretchElements = size_t{1} << 16;
  std::vector<std::byte> stretch;
  std::vector<std::byte> wide;
  uint32_t crc = 0;
  uint32_t wide_crc = 0;
  const bool can_widen = view.dtype == DType::kBFloat16;
  for (size_t first = 0; first < view.elements; first += kStretchElements) {
    const size_t count = std::min(kStretchElements, view.elements - first);
    stretch.resize(count * size_bytes(view.dtype));
    gather(view, first, count, stretch.data());
    crc = record::crc32(stretch.data(), stretch.size(), crc);
    if (!can_widen) continue;
    wide.assign(count * sizeof(float), std::byte{0});
    for (size_t i = 0; i < count; ++i)
      std::copy_n(stretch.data() + 2 * i, 2, wide.data() + sizeof(float) * i + 2);
    wide_crc = record::crc32(wide.data(), wide.size(), wide_crc);
  }
  const auto is = [&](uint32_t value) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", value);
    return checksum == text;
  };
  return is(crc) || (can_widen && is(wide_crc));
}

// Nothing where they cannot be told: a side has no checksum, or they are of different kinds. Tools
// write CRC-32, which can be computed of data, MD5, or sums of their own.
std::optional<bool> have_same_checksum(const Content& golden, const Content& actual) {
  constexpr size_t kCrcDigits = 8;
  if (golden.dtype != actual.dtype) return std::nullopt;
  for (const auto& [whole, other] : {std::pair(&golden, &actual), std::pair(&actual, &golden)})
    if (whole->tensor && other->checksum.size() == kCrcDigits)
      return has_checksum(whole->tensor->view(), other->checksum);
  if (golden.checksum.empty() || golden.checksum.size() != actual.checksum.size())
    return std::nullopt;
  return golden.checksum == actual.checksum;
}

// At least one side has no data.
void compare_what_was_kept(Row& row, const Content& golden, const Content& actual) {
  if (count_elements(golden.shape) != count_elements(actual.shape)) {
    add_reason(row, reasons::kShape);
  } else if (is_complex(golden) != is_complex(actual)) {
    add_reason(row, reasons::kComplexAgainstReal);
  } else if (row.golden.statistics && row.actual.statistics) {
    row.distance_at_least = smallest_distance(row, golden, actual);
    row.estimate = estimate(row, golden, actual);
  }
  if (row.estimate)
    row.distance_at_least =
        std::max(row.distance_at_least.value_or(0), row.estimate->distance.least);
  if (!golden.tensor) add_reason(row, reason_for(row.golden.kept, true));
  if (!actual.tensor) add_reason(row, reason_for(row.actual.kept, false));
  if (row.estimate) {
    add_reason(row, estimate_text(*row.estimate));
  } else if (row.distance_at_least) {
    add_reason(row, at_least_text(*row.distance_at_least));
  }
  if (count_elements(golden.shape) != count_elements(actual.shape)) return;
  const auto same = have_same_checksum(golden, actual);
  if (same) add_reason(row, *same ? reasons::kSameChecksum : reasons::kOtherChecksum);
  if (!same || !*same) return;
  metrics::Comparison& comparison = row.comparison.emplace();
  comparison.elements = count_elements(golden.shape).value_or(0);
  comparison.identical = true;
  if (row.golden.statistics) comparison.golden = *row.golden.statistics;
  if (row.actual.statistics) comparison.actual = *row.actual.statistics;
}

}  // namespace

Content::Content(const formats::Description& description)
    : dtype(description.dtype), shape(description.shape), checksum(description.checksum) {
  if (!description.statistics) return;
  rounding = description.statistics->rounding;
  rounding_of_type = description.statistics->rounding_of_type;
  metrics::Side& side = statistics.emplace();
  side.elements = count_elements(shape).value_or(0) * (is_complex(*this) ? 2 : 1);
  side.maximum = description.statistics->maximum;
  side.minimum = description.statistics->minimum;
  side.mean = description.statistics->mean;
  side.l2_norm = description.statistics->l2_norm;
  side.nan = description.statistics->nan.value_or(0);
  // Nobody says of which sign they are.
  side.positive_inf = description.statistics->inf.value_or(0);
  sketch = metrics::parse_sketch(description.statistics->sketch, dtype, shape);
}

bool Side::has_non_finite() const {
  if (!statistics) return false;
  if (kept == capture::Kept::kBytes) return statistics->non_finite() > 0;
  // Some tools look at a NaN only where it gets into a sum.
  return statistics->non_finite() > 0 || !std::isfinite(statistics->maximum) ||
         !std::isfinite(statistics->minimum) || !std::isfinite(statistics->mean);
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
