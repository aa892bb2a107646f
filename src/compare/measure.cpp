#include "compare/measure.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

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
  if (error.path().empty() || std::filesystem::is_regular_file(error.path(), ignored))
    return error.text();
  return std::string(who) + ": " + printable(error.path(), 4096) + " is not a file.";
}

Side describe(const Result<Tensor>& tensor) {
  Side side;
  if (tensor) {
    side.dtype = tensor->dtype();
    side.shape = tensor->shape();
  }
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

void compare_elements(Row& row, const Tensor& golden, const Tensor& actual,
                      const Options& options) {
  auto comparison = metrics::compare(golden.view(), actual.view(), request_for(options));
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

}  // namespace

const metrics::Comparison* metrics_of(const Row& row) {
  if (!row.comparison || row.comparison->withheld || row.comparison->compared == 0) return nullptr;
  return &*row.comparison;
}

Row measure(const Result<Tensor>& golden, const Result<Tensor>& actual, const Options& options) {
  Row row;
  row.golden = describe(golden);
  row.actual = describe(actual);
  if (!golden) add_reason(row, unreadable_reason("golden_data_path", golden.error()));
  if (!actual) add_reason(row, unreadable_reason("my_data_path", actual.error()));
  if (golden && actual) {
    const std::string_view why_not = obstacle(*golden, *actual);
    if (why_not.empty()) {
      compare_elements(row, *golden, *actual, options);
    } else {
      add_reason(row, why_not);
    }
  }
  if (golden && !row.golden.statistics)
    row.golden.statistics = metrics::statistics(golden->view(), options.threads);
  if (actual && !row.actual.statistics)
    row.actual.statistics = metrics::statistics(actual->view(), options.threads);

  const auto non_finite = [](const Side& side) {
    return side.statistics && side.statistics->non_finite() > 0;
  };
  if (non_finite(row.golden)) add_reason(row, reasons::kGoldenNonFinite);
  if (non_finite(row.actual)) add_reason(row, reasons::kActualNonFinite);
  const metrics::Comparison* c = metrics_of(row);
  if (c == nullptr) return row;

  // The old reports have no such sentence, and compatibility is there to be held against them.
  if (options.compat == MetricCompat::kOwn && c->golden_zero != c->actual_zero)
    add_reason(row, c->golden_zero ? reasons::kGoldenZero : reasons::kActualZero);
  if (is_complex(*golden)) add_reason(row, reasons::kComplex);
  return row;
}

}  // namespace ait::compare
