// Everything that is measured of two tensors, in one pass over their bytes.
//
//   metrics::Request request;  // the seven metrics of the reports; NaN and Inf are left out
//   auto compared = metrics::compare(golden.view(), actual.view(), request);
//   if (!compared) return fail(compared.error());  // kUsage: the numbers of elements differ
//   return compared->cosine_similarity > 0.999;
//
// tests/metrics/example_test.cpp runs this example.
//
// Element i of one tensor is held against element i of the other in row-major order; shapes are the
// caller's business (compare/measure.h). Sums are in double with a fixed reduction order, so that
// the answer does not depend on the thread count. Formulas and their derivation: docs/metrics.md.
// Thread-safe.
//
// This is the main header of `metrics`; elements.h gives out single elements as doubles. A new metric is a sum in
// PairBlock (block.h) that both pair kernels fill and PairTotal (compare.cpp) adds up, a member of
// Comparison that PairComparison::finish sets, the same by a plain loop in
// tests/metrics/reference.cpp, and its formula in docs/metrics.md; then a column and a Python
// property that show it. Where in a tensor the error is, is the business of profile.h.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace ait::metrics {

// Golden values no larger than this count as zero in the masked relative error (the old tools'
// float32 epsilon).
inline constexpr double kMaskEpsilon = 0x1p-23;

// How |m - g| is related to g for max_relative_error, mean_relative_error and the pass counts.
enum class RelativeError : uint8_t {
  kMasked,  // |m/g - 1| where |g| > relative_epsilon, else 0           (reports of compare)
  kPlain,   // |m - g| / |g|; 0/0 is 0, x/0 is Inf                      (opcheck)
  kDamped,  // |m - g| / (|g| + relative_epsilon)                       (API pre-check)
};

// What a position counts for when either side is NaN or infinite there.
enum class NonFinite : uint8_t {
  kSkip,      // it is counted and left out of every metric
  kWithhold,  // one such position and no metric is given (the old tools)
};

inline constexpr size_t kMaxThresholds = 4;

struct Request {
  RelativeError relative = RelativeError::kMasked;
  double relative_epsilon = kMaskEpsilon;
  bool mask_absolute = false;  // absolute errors count 0 where |g| <= relative_epsilon (old tools)
  NonFinite non_finite = NonFinite::kSkip;
  bool kl = true;
  bool rows = false;  // also the worst row and KL row by row; a row is the last dimension of golden
  bool profile = false;  // also where in the tensor the error is
  // One flag for each row of golden: it does not count in the profile. Null, or another number: all
  // do.
  const std::vector<bool>* padding = nullptr;
  // Elements whose relative error is below thresholds[k] are counted in Comparison::passes[k].
  std::array<double, kMaxThresholds> thresholds{};
  size_t threshold_count = 0;
  size_t threads = 1;                       // 0: all cores
  const std::atomic<bool>* stop = nullptr;  // once it is true, compare() fails with kInterrupted
};

// Values of one tensor alone. minimum, maximum and mean are NaN where the tensor holds a NaN, and 0
// where it has no elements.
struct Side {
  size_t elements = 0;
  size_t nan = 0;
  size_t positive_inf = 0;
  size_t negative_inf = 0;
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double l2_norm = 0;  // over the finite elements

  size_t inf() const { return positive_inf + negative_inf; }
  size_t non_finite() const { return nan + inf(); }
};

struct Statistics : Side {
  double l1_norm = 0;  // over the finite elements
};

struct RowFinding {
  size_t rows = 0;
  size_t worst_row = 0;  // the one with the lowest cosine, the first of equals
  double worst_row_cosine = 1;
  double kl_mean = 0;  // of KL taken row by row, where Request::kl
  double kl_max = 0;
};

// How the error is spread over a tensor, so that damage to a part of it is seen. A row is the last
// dimension of golden, a column the same place in all rows. Rows of padding do not count, nor do
// those without a position that is finite on both sides, which all sums are over.
//
// The error of a row is |m - g| over |g| of that row, or over a tenth of the usual |g| of a row
// where that is more; of a column over |g| of that column, or over the usual |g| of a column where
// that is more. It is infinite where all of golden is 0 and m is not. What is usual is the lower
// median, good to a thousandth: of |g| that of the rows or columns that are not all zero, and of
// more than 256 that of 256, spread evenly. The worst row is that of all rows.
struct ErrorProfile {
  double error = 0;      // |m - g| over |g| of all rows that count
  size_t rows = 0;       // that count; where none does, all errors are 0
  size_t worst_row = 0;  // counted with padding; the first of those that are as bad, to a millionth
  double worst_row_error = 0;
  double usual_row_error = 0;
  size_t columns = 0;
  size_t column_rows = 0;  // rows that columns were looked at in, evenly spread where not all
  size_t worst_column = 0;
  double worst_column_error = 0;
  double usual_column_error = 0;
  // Of the parts of complex numbers; bool and packed types do not saturate.
  size_t saturated = 0;  // values of mine that are the end of their type's range, or infinite
  size_t flushed = 0;    // values of mine that are 0 where golden's are not, both finite

  bool operator==(const ErrorProfile&) const = default;
};

struct Comparison {
  size_t elements = 0;
  size_t compared = 0;     // positions finite on both sides
  bool identical = false;  // no value differs; NaN equals NaN
  bool withheld = false;   // NonFinite::kWithhold, and a value was not finite: the metrics are NaN

  double cosine_similarity = 0;
  double max_relative_error = 0;
  double mean_relative_error = 0;
  double max_absolute_error = 0;
  double mean_absolute_error = 0;
  double kl_divergence = 0;
  double relative_euclidean_distance = 0;  // Inf where golden is all zero and actual is not

  // Positions whose values differ (NaN equals NaN); exact for every integer type.
  size_t differing = 0;
  // Those of them where |g| <= relative_epsilon, which the masked relative error does not see.
  size_t zero_golden_mismatch = 0;
  bool non_finite_agree = true;  // NaN, +Inf and -Inf stand at the same positions on both sides
  size_t worst_index = 0;        // flat index of the largest absolute error, the first of equals
  double worst_golden = 0;
  double worst_actual = 0;
  bool golden_zero = false;  // every compared element of that side is 0
  bool actual_zero = false;
  std::array<size_t, kMaxThresholds> passes{};

  Side golden;
  Side actual;
  std::optional<RowFinding> row;
  std::optional<ErrorProfile> profile;  // where Request::profile, and the two differ
};

// Complex tensors are compared as twice as many reals; packed 4-bit types byte for byte as unsigned
// integers.
Result<Comparison> compare(const TensorView& golden, const TensorView& actual,
                           const Request& request);

Statistics statistics(const TensorView& tensor, size_t threads = 1);

// The vector instruction sets this CPU can run, best first, and the one in use ("AVX3", "AVX2",
// "SSE4", …).
std::vector<std::string> simd_targets();
std::string simd_target();
// For tests and benchmarks: use only this one from now on, or the best again with an empty name.
// False if unknown. Not thread-safe.
bool force_simd_target(std::string_view name);

// Counts of finite values in `bins` equal steps from minimum to maximum; empty where there is no
// finite value.
std::vector<size_t> histogram(const TensorView& tensor, const Statistics& of, size_t bins);

}  // namespace ait::metrics
