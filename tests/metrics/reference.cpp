#include "reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/half.h"

namespace ait::metrics {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// long double on x86 holds every 64-bit integer exactly.
long double real_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool:
      return load<uint8_t>(at) != 0 ? 1 : 0;
    case DType::kInt8:
      return load<int8_t>(at);
    case DType::kInt16:
      return load<int16_t>(at);
    case DType::kUInt16:
      return load<uint16_t>(at);
    case DType::kInt32:
      return load<int32_t>(at);
    case DType::kUInt32:
      return load<uint32_t>(at);
    case DType::kInt64:
      return load<int64_t>(at);
    case DType::kUInt64:
      return load<uint64_t>(at);
    case DType::kFloat16:
      return fp16_to_float(load<uint16_t>(at));
    case DType::kBFloat16:
      return bf16_to_float(load<uint16_t>(at));
    case DType::kFloat32:
      return load<float>(at);
    case DType::kFloat64:
      return load<double>(at);
    case DType::kFloat8E4M3FN:
      return fp8_e4m3fn_to_float(load<uint8_t>(at));
    case DType::kFloat8E5M2:
      return fp8_e5m2_to_float(load<uint8_t>(at));
    case DType::kFloat8E4M3FNUZ:
      return fp8_e4m3fnuz_to_float(load<uint8_t>(at));
    case DType::kFloat8E5M2FNUZ:
      return fp8_e5m2fnuz_to_float(load<uint8_t>(at));
    case DType::kFloat8E8M0FNU:
      return fp8_e8m0fnu_to_float(load<uint8_t>(at));
    default:
      return load<uint8_t>(at);
  }
}

std::vector<long double> reals(const TensorView& view) {
  std::vector<std::byte> bytes(view.bytes() + 1);
  gather(view, 0, view.elements, bytes.data());
  DType dtype = view.dtype;
  size_t count = view.elements;
  if (dtype == DType::kComplex32) dtype = DType::kFloat16, count *= 2;
  if (dtype == DType::kComplex64) dtype = DType::kFloat32, count *= 2;
  if (dtype == DType::kComplex128) dtype = DType::kFloat64, count *= 2;
  std::vector<long double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = real_at(dtype, bytes.data() + i * size_bytes(dtype));
  return values;
}

void describe(const std::vector<long double>& values, Side& side, double* l1_norm) {
  long double sum = 0;
  long double squares = 0;
  long double magnitudes = 0;
  long double low = kInf;
  long double high = -kInf;
  side.elements = values.size();
  for (const long double v : values) {
    if (std::isnan(v)) {
      ++side.nan;
      continue;
    }
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    if (std::isinf(v)) {
      ++(v > 0 ? side.positive_inf : side.negative_inf);
    } else {
      squares += v * v;
      magnitudes += std::fabs(v);
    }
  }
  side.l2_norm = static_cast<double>(std::sqrt(squares));
  if (l1_norm != nullptr) *l1_norm = static_cast<double>(magnitudes);
  if (values.empty()) return;
  const bool nan = side.nan > 0;
  side.minimum = nan ? kNaN : static_cast<double>(low);
  side.maximum = nan ? kNaN : static_cast<double>(high);
  side.mean = nan ? kNaN : static_cast<double>(sum / static_cast<long double>(values.size()));
}

long double cosine_of(long double gg, long double gm, long double mm) {
  if (gg == 0 && mm == 0) return 1;
  if (gg == 0 || mm == 0) return 0;
  return std::clamp(gm / (std::sqrt(gg) * std::sqrt(mm)), -1.0L, 1.0L);
}

long double divergence(const std::vector<long double>& g, const std::vector<long double>& m) {
  if (g.empty()) return 0;
  const long double top_g = *std::max_element(g.begin(), g.end());
  const long double top_m = *std::max_element(m.begin(), m.end());
  long double zg = 0;
  long double zm = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    zg += std::exp(g[i] - top_g);
    zm += std::exp(m[i] - top_m);
  }
  long double kl = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const long double p = std::exp(g[i] - top_g) / zg;
    if (p > 0) kl += p * ((g[i] - top_g - std::log(zg)) - (m[i] - top_m - std::log(zm)));
  }
  return std::max(kl, 0.0L);
}

long double lower_median(std::vector<long double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

struct Errors {
  double worst = 0;
  size_t worst_index = 0;
  double usual = 0;
};

// |d| over |g|, or over `share` of the usual |g| where that is more.
Errors errors_of(const std::vector<long double>& dd, const std::vector<long double>& gg,
                 long double share) {
  std::vector<long double> live;
  for (const long double g : gg)
    if (g > 0) live.push_back(std::sqrt(g));
  const long double least = share * lower_median(live);
  std::vector<long double> errors;
  Errors out;
  for (size_t i = 0; i < dd.size(); ++i) {
    const long double below = std::max(std::sqrt(gg[i]), least);
    errors.push_back(dd[i] == 0 ? 0 : std::sqrt(dd[i]) / below);
    if (errors[i] > errors[out.worst_index] * (1 + 1e-5L)) out.worst_index = i;
  }
  if (errors.empty()) return out;
  out.worst = static_cast<double>(*std::max_element(errors.begin(), errors.end()));
  out.usual = static_cast<double>(lower_median(errors));
  return out;
}

}  // namespace

ErrorProfile reference_profile(const TensorView& golden_view, const TensorView& actual_view,
                               const std::vector<bool>* padding) {
  const auto golden = reals(golden_view);
  const auto actual = reals(actual_view);
  const size_t parts = info(golden_view.dtype).kind == DTypeKind::kComplex ? 2 : 1;
  const size_t columns =
      parts * (golden_view.shape.empty() ? 1 : static_cast<size_t>(golden_view.shape.back()));
  std::vector<long double> row_dd, row_gg, column_dd(columns), column_gg(columns);
  std::vector<size_t> rows;
  long double dd = 0;
  long double gg = 0;
  ErrorProfile out;
  for (size_t row = 0; row < golden.size() / columns; ++row) {
    if (padding != nullptr && (*padding)[row]) continue;
    long double sum_d = 0;
    long double sum_g = 0;
    bool counts = false;
    for (size_t column = 0; column < columns; ++column) {
      const long double g = golden[row * columns + column];
      const long double m = actual[row * columns + column];
      if (!std::isfinite(g) || !std::isfinite(m)) continue;
      counts = true;
      sum_d += (m - g) * (m - g);
      sum_g += g * g;
      column_dd[column] += (m - g) * (m - g);
      column_gg[column] += g * g;
      out.flushed += m == 0 && g != 0 ? 1 : 0;
    }
    if (!counts) continue;
    rows.push_back(row);
    row_dd.push_back(sum_d);
    row_gg.push_back(sum_g);
    dd += sum_d;
    gg += sum_g;
  }
  out.rows = rows.size();
  if (rows.empty()) return out;
  out.error = static_cast<double>(dd == 0 ? 0 : std::sqrt(dd / gg));
  const Errors of_rows = errors_of(row_dd, row_gg, 0.1L);
  out.worst_row = rows[of_rows.worst_index];
  out.worst_row_error = of_rows.worst;
  out.usual_row_error = of_rows.usual;
  const Errors of_columns = errors_of(column_dd, column_gg, 1);
  out.columns = columns;
  out.column_rows = rows.size();
  out.worst_column = of_columns.worst_index;
  out.worst_column_error = of_columns.worst;
  out.usual_column_error = of_columns.usual;
  return out;
}

Statistics reference_statistics(const TensorView& tensor) {
  Statistics out;
  describe(reals(tensor), out, &out.l1_norm);
  return out;
}

Comparison reference_compare(const TensorView& golden_view, const TensorView& actual_view,
                             const Request& request) {
  const auto golden = reals(golden_view);
  const auto actual = reals(actual_view);
  Comparison out;
  describe(golden, out.golden, nullptr);
  describe(actual, out.actual, nullptr);
  out.elements = golden.size();
  const bool complex = info(golden_view.dtype).kind == DTypeKind::kComplex;
  const size_t row_length = std::max<size_t>(
      1, (golden_view.shape.empty() ? 1 : static_cast<size_t>(golden_view.shape.back())) *
             (complex ? 2 : 1));
  std::vector<long double> g;
  std::vector<long double> m;
  long double gg = 0, gm = 0, mm = 0, dd = 0, absolute = 0, relative = 0, max_absolute = -1,
              max_relative = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const long double a = golden[i];
    const long double b = actual[i];
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool agree = a == b || (std::isnan(a) && std::isnan(b));
      out.non_finite_agree &= agree;
      out.differing += agree ? 0 : 1;
      continue;
    }
    g.push_back(a);
    m.push_back(b);
    const long double error = std::fabs(b - a);
    const bool live = std::fabs(a) > request.relative_epsilon;
    const long double counted = request.mask_absolute && !live ? 0 : error;
    long double r = 0;
    switch (request.relative) {
      case RelativeError::kMasked:
        r = live ? std::fabs(b / a - 1) : 0;
        break;
      case RelativeError::kPlain:
        r = error == 0 ? 0 : error / std::fabs(a);
        break;
      case RelativeError::kDamped:
        r = error / (std::fabs(a) + request.relative_epsilon);
        break;
    }
    gg += a * a;
    gm += a * b;
    mm += b * b;
    dd += error * error;
    absolute += counted;
    relative += r;
    max_relative = std::max(max_relative, r);
    out.differing += error != 0 ? 1 : 0;
    out.zero_golden_mismatch += !live && error != 0 ? 1 : 0;
    for (size_t k = 0; k < request.threshold_count; ++k)
      out.passes[k] += r < request.thresholds[k] ? 1 : 0;
    if (counted > max_absolute) {
      max_absolute = counted;
      out.worst_index = counted > 0 ? i : 0;
    }
  }
  out.identical = out.differing == 0;
  out.compared = g.size();
  const auto n = static_cast<long double>(g.size());
  out.cosine_similarity = static_cast<double>(cosine_of(gg, gm, mm));
  out.max_absolute_error = static_cast<double>(std::max(max_absolute, 0.0L));
  out.mean_absolute_error = static_cast<double>(absolute / n);
  out.max_relative_error = static_cast<double>(max_relative);
  out.mean_relative_error = static_cast<double>(relative / n);
  out.relative_euclidean_distance = static_cast<double>(dd == 0   ? 0
                                                        : gg == 0 ? kInf
                                                                  : std::sqrt(dd) / std::sqrt(gg));
  out.kl_divergence = static_cast<double>(divergence(g, m));
  if (request.rows) {
    RowFinding rows;
    long double kl_sum = 0;
    for (size_t first = 0; first < golden.size(); first += row_length, ++rows.rows) {
      std::vector<long double> row_g;
      std::vector<long double> row_m;
      long double rgg = 0, rgm = 0, rmm = 0;
      for (size_t i = first; i < first + row_length; ++i) {
        if (!std::isfinite(golden[i]) || !std::isfinite(actual[i])) continue;
        row_g.push_back(golden[i]);
        row_m.push_back(actual[i]);
        rgg += golden[i] * golden[i];
        rgm += golden[i] * actual[i];
        rmm += actual[i] * actual[i];
      }
      const auto similarity = static_cast<double>(cosine_of(rgg, rgm, rmm));
      if (rows.rows == 0 || similarity < rows.worst_row_cosine - 1e-14) {
        rows.worst_row = rows.rows;
        rows.worst_row_cosine = similarity;
      }
      const long double kl = divergence(row_g, row_m);
      kl_sum += kl;
      rows.kl_max = std::max(rows.kl_max, static_cast<double>(kl));
    }
    if (rows.rows > 0)
      rows.kl_mean = static_cast<double>(kl_sum / static_cast<long double>(rows.rows));
    out.row = rows;
  }
  return out;
}

}  // namespace ait::metrics
