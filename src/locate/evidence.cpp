#include "locate/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "locate/value.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

// Elements that are looked at to find the rows that are hit, and those that hypotheses see.
constexpr size_t kLookedAt = size_t{1} << 20;
constexpr size_t kSampled = size_t{1} << 17;
constexpr size_t kFewestRows = 4;
constexpr size_t kMostRows = size_t{1} << 14;

// A part is hit where its error is this many times the noise, and not much less than the worst.
constexpr double kHitAboveNoise = 4;
constexpr double kHitOfWorst = 0.125;
// More than these parts of all are not a region. Of few experts one has half of the rows and more.
constexpr double kMostRowsHit = 0.75;
constexpr double kMostColumnsHit = 0.5;
// Beside a confined region the error is noise, or at most this part of the region's.
constexpr double kQuietAboveNoise = 1.5;
constexpr double kQuietOfRegion = 0.1;
// Single elements stray further from the usual error than rows do.
constexpr double kElementAboveNoise = 5;
constexpr size_t kFewestColumns = 8;

// A row's own norm, unless it is hardly anything beside the usual row.
constexpr double kSmallRow = 0.1;

// A sound model in double against a value that was rounded several times on its way.
constexpr double kModelRoundings = 8;
constexpr double kModelFloor = 5e-5;
constexpr double kModelAboveNoise = 2;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double root_mean_square(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Sets to 0 what is not finite on either side.
void drop_non_finite(std::span<double> golden, std::span<double> actual) {
  for (size_t i = 0; i < golden.size(); ++i)
    if (!std::isfinite(golden[i]) || !std::isfinite(actual[i])) golden[i] = actual[i] = 0;
}

// Those of `errors` that stand out while the rest is quiet; nothing where the damage is general.
std::vector<size_t> standing_out(std::span<const double> errors, double above, double of_worst,
                                 double most, double noise, double& outside) {
  const double worst = errors.empty() ? 0 : *std::ranges::max_element(errors);
  const double bar = std::max(above * noise, of_worst * worst);
  std::vector<size_t> hit;
  std::vector<double> inner;
  std::vector<double> outer;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] > bar) hit.push_back(i);
    (errors[i] > bar ? inner : outer).push_back(errors[i]);
  }
  outside = root_mean_square(outer);
  if (hit.empty() || static_cast<double>(hit.size()) > most * static_cast<double>(errors.size()))
    return {};
  if (outside > std::max(kQuietAboveNoise * noise, kQuietOfRegion * root_mean_square(inner)))
    return {};
  return hit;
}

void read_rows(const Tensor& tensor, std::span<const size_t> rows, size_t columns, Rows& out) {
  out.columns = columns;
  out.values.resize(rows.size() * columns);
  const TensorView view = tensor.view();
  for (size_t i = 0; i < rows.size(); ++i)
    metrics::read_elements(view, rows[i] * columns, columns, out.values.data() + i * columns);
}

std::string stretch_text(std::string_view one, std::string_view many,
                         const std::vector<size_t>& places) {
  if (places.size() == 1) return fmt::format("{} {}", one, places.front());
  if (places.back() - places.front() + 1 == places.size())
    return fmt::format("{} {} to {}", many, places.front(), places.back());
  constexpr size_t kNamed = 4;
  if (places.size() <= kNamed) return fmt::format("{} {}", many, fmt::join(places, ", "));
  return fmt::format("{} {}, … ({} of them)", many,
                     fmt::join(places.begin(), places.begin() + kNamed, ", "), places.size());
}

}  // namespace

double rounding_unit(DType dtype) {
  constexpr double kFloat32Sums = 0x1p-23;
  const double unit = unit_of(dtype);
  return unit > 0 ? std::max(unit, kFloat32Sums) : 0;
}

bool is_real(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::kInteger || kind == DTypeKind::kFloat;
}

std::vector<size_t> divisors(size_t number) {
  std::vector<size_t> out;
  for (size_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    out.push_back(d);
    if (d * d != number) out.push_back(number / d);
  }
  std::ranges::sort(out, std::greater());
  return out;
}

std::string short_number(double value) { return fmt::format("{:.3g}", value); }

std::optional<std::vector<double>> solve(std::vector<double> matrix, std::vector<double> right) {
  constexpr double kDependent = 1e-9;
  const size_t k = right.size();
  std::vector<double> diagonal(k);
  for (size_t i = 0; i < k; ++i) diagonal[i] = matrix[i * k + i];
  for (size_t i = 0; i < k; ++i) {
    const double pivot = matrix[i * k + i];
    if (!(pivot > kDependent * diagonal[i])) return std::nullopt;
    for (size_t r = i + 1; r < k; ++r) {
      const double factor = matrix[r * k + i] / pivot;
      for (size_t c = i; c < k; ++c) matrix[r * k + c] -= factor * matrix[i * k + c];
      right[r] -= factor * right[i];
    }
  }
  for (size_t i = k; i-- > 0;) {
    for (size_t c = i + 1; c < k; ++c) right[i] -= matrix[i * k + c] * right[c];
    right[i] /= matrix[i * k + i];
  }
  return right;
}

Evidence::Evidence(const CauseCase& fault) : fault_(&fault) {
  const Tensor& golden = fault.golden;
  if (!is_real(golden.dtype()) || !is_real(fault.actual.dtype())) return;
  if (golden.elements() == 0 || golden.elements() != fault.actual.elements()) return;
  columns_ = golden.shape().empty() ? 1 : static_cast<size_t>(golden.shape().back());
  row_count_ = golden.elements() / columns_;
  noise_ =
      std::max({fault.noise, rounding_unit(golden.dtype()), rounding_unit(fault.actual.dtype())});
  model_noise_ = std::max({kModelRoundings * rounding_unit(golden.dtype()), kModelFloor,
                           kModelAboveNoise * fault.noise});
  look_at_rows();
  if (sample_.empty()) return;
  read_rows(golden, sample_, columns_, golden_);
  read_rows(fault.actual, sample_, columns_, actual_);
  drop_non_finite(golden_.values, actual_.values);
  look_at_columns();
  read_sources();
  usable_ = true;
}

// Which rows are hit, and from these, or from all where none stand out, the sample: the worst and
// as many that are evenly spread.
void Evidence::look_at_rows() {
  const size_t step =
      std::max<size_t>({1, row_count_ * columns_ / kLookedAt, row_count_ / kMostRows});
  std::vector<size_t>& seen = region_.seen;
  for (size_t row = 0; row < row_count_; ++row) {
    const bool wanted = row % step == 0 || fault_->worst_row == row;
    const bool padded = row < fault_->padding.size() && fault_->padding[row];
    if (wanted && !padded) seen.push_back(row);
  }
  std::vector<double> norms;
  std::vector<double>& errors = region_.row_errors;
  std::vector<double> golden;
  std::vector<double> actual;
  for (const size_t row : seen) {
    metrics::read_elements(fault_->golden.view(), row * columns_, columns_, golden);
    metrics::read_elements(fault_->actual.view(), row * columns_, columns_, actual);
    double norm = 0;
    double error = 0;
    for (size_t c = 0; c < columns_; ++c) {
      if (!std::isfinite(golden[c]) || !std::isfinite(actual[c])) continue;
      norm += golden[c] * golden[c];
      error += (actual[c] - golden[c]) * (actual[c] - golden[c]);
    }
    norms.push_back(std::sqrt(norm));
    errors.push_back(std::sqrt(error));
  }
  const double small = kSmallRow * median(norms);
  for (size_t i = 0; i < seen.size(); ++i) {
    const double norm = std::max(norms[i], small);
    errors[i] = norm > 0 ? errors[i] / norm : 0;
  }

  const auto hit =
      standing_out(errors, kHitAboveNoise, kHitOfWorst, kMostRowsHit, noise_, region_.outside);
  region_.rows_confined = !hit.empty();
  std::vector<size_t> from = hit;
  if (hit.empty()) {
    from.resize(seen.size());
    std::iota(from.begin(), from.end(), size_t{0});
  }
  for (const size_t i : from) region_.rows.push_back(seen[i]);

  const size_t wanted = std::min(from.size(), std::max(kFewestRows, kSampled / columns_));
  std::vector<size_t> worst = from;
  std::ranges::stable_sort(worst, [&](size_t a, size_t b) { return errors[a] > errors[b]; });
  for (size_t i = 0; i < (wanted + 1) / 2; ++i) sample_.push_back(seen[worst[i]]);
  for (size_t i = 0; i < wanted; ++i) sample_.push_back(seen[from[i * from.size() / wanted]]);
  std::ranges::sort(sample_);
  sample_.erase(std::ranges::unique(sample_).begin(), sample_.end());
}

void Evidence::look_at_columns() {
  std::vector<double> norms(columns_);
  std::vector<double> errors(columns_);
  for (size_t i = 0; i < sample_.size(); ++i)
    for (size_t c = 0; c < columns_; ++c) {
      const double g = golden_[i][c];
      const double d = actual_[i][c] - g;
      norms[c] += g * g;
      errors[c] += d * d;
    }
  for (double& norm : norms) norm = std::sqrt(norm);
  const double all = root_mean_square(norms);
  const double usual = median(norms);
  for (size_t c = 0; c < columns_; ++c) {
    const double norm = std::max(norms[c], usual);
    errors[c] = norm > 0 ? std::sqrt(errors[c]) / norm : 0;
  }

  std::vector<size_t>& columns = region_.columns;
  double outside = 0;
  if (columns_ >= kFewestColumns)
    columns =
        standing_out(errors, kElementAboveNoise, sample_.size() >= kFewestRows ? kHitOfWorst : 0,
                     kMostColumnsHit, noise_, outside);
  region_.columns_confined = !columns.empty();
  if (columns.empty()) {
    columns.resize(columns_);
    std::iota(columns.begin(), columns.end(), size_t{0});
  } else {
    region_.outside = std::max(region_.outside, outside);
    // Columns of a stretch that happen to be right belong to it.
    const size_t width = columns.back() - columns.front() + 1;
    if (columns.size() * 2 >= width && width * 2 <= columns_) {
      const size_t first = columns.front();
      columns.resize(width);
      std::iota(columns.begin(), columns.end(), first);
    }
  }

  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < sample_.size(); ++i)
    for (const size_t c : columns) {
      const double d = actual_[i][c] - golden_[i][c];
      error += d * d;
      norm += golden_[i][c] * golden_[i][c];
    }
  error_ = norm > 0 ? std::sqrt(error / norm) : 0;
  // Noise is related to the whole; where the part is small beside it, it weighs more there.
  const double hit = std::sqrt(norm / static_cast<double>(columns.size()));
  if (hit > 0) noise_ *= std::max(1.0, all / hit);
}

void Evidence::read_sources() {
  for (const CauseInput& input : fault_->inputs) {
    const size_t elements = input.golden.elements();
    if (!is_real(input.golden.dtype()) || !is_real(input.actual.dtype())) continue;
    if (elements == 0 || elements != input.actual.elements() || elements % row_count_ != 0)
      continue;
    Source source;
    source.input = &input;
    read_rows(input.golden, sample_, elements / row_count_, source.golden);
    read_rows(input.actual, sample_, elements / row_count_, source.actual);
    drop_non_finite(source.golden.values, source.actual.values);
    sources_.push_back(std::move(source));
  }
}

std::vector<size_t> Evidence::spread_rows(size_t elements) const {
  constexpr size_t kMost = 64;
  const size_t wanted =
      std::min({row_count_, kMost, std::max(2 * kFewestRows, elements / columns_)});
  std::vector<size_t> rows;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t row = i * row_count_ / wanted;
    if (row >= fault_->padding.size() || !fault_->padding[row]) rows.push_back(row);
  }
  return rows;
}

Rows Evidence::rows_of(const Tensor& tensor, std::span<const size_t> rows) const {
  Rows out;
  read_rows(tensor, rows, tensor.elements() / row_count_, out);
  for (double& value : out.values)
    if (!std::isfinite(value)) value = 0;
  return out;
}

std::string Evidence::where() const {
  std::string out;
  if (region_.rows_confined) out = " in " + stretch_text("row", "rows", region_.rows);
  if (region_.columns_confined)
    out += (out.empty() ? " in " : ", ") + stretch_text("column", "columns", region_.columns);
  return out;
}

void Evidence::add(std::vector<Candidate>& out, Proof proof, std::string name,
                   const std::string& what, const Fit& fit) const {
  Candidate candidate;
  candidate.proof = proof;
  candidate.cause.name = std::move(name);
  candidate.cause.text =
      fmt::format("my equals golden after {}{} (error falls from {} to {})", what, where(),
                  short_number(fit.error), short_number(fit.residual));
  candidate.cause.error = fit.error;
  candidate.cause.residual_error = fit.residual;
  out.push_back(std::move(candidate));
}

}  // namespace ait::locate
