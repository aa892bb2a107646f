#include "metrics/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/base64.h"
#include "metrics/kernels.h"
#include "metrics/source.h"

namespace ait::metrics {
namespace {

constexpr std::string_view kVersion = "1:";

// The sum of squares of the projections of a vector d has the mean |d|^2 and a variance of at most
// 2 |d|^4 / 256 (docs/metrics.md); four standard deviations of it are this part of |d|^2.
constexpr double kSpread = 0.354;
// A projection is kept as float32, which moves it by this part of itself at most.
constexpr double kRounding = 0x1p-24;
constexpr double kNormRounding = 0x1p-20;

struct Grid {
  size_t rows;
  size_t columns;
};

Grid grid_of(DType dtype, std::span<const int64_t> shape, size_t elements) {
  const size_t parts = info(dtype).kind == DTypeKind::kComplex ? 2 : 1;
  const size_t columns = (shape.empty() ? 1 : static_cast<size_t>(shape.back())) * parts;
  return {columns == 0 ? 0 : elements * parts / columns, columns};
}

// How many neighbours make a group where there are `count` rows or columns.
size_t group_size(size_t count) {
  return std::max<size_t>(1, (count + Sketch::kMostGroups - 1) / Sketch::kMostGroups);
}

size_t groups(size_t count) {
  return count == 0 ? 0 : (count + group_size(count) - 1) / group_size(count);
}

// Squares by group of rows and of columns, while the elements pass in order.
class Norms {
 public:
  explicit Norms(Grid grid)
      : grid_(grid),
        row_group_(group_size(grid.rows)),
        column_group_(group_size(grid.columns)),
        rows_(groups(grid.rows)),
        columns_(groups(grid.columns)) {}

  void add(const double* values, size_t count) {
    while (count > 0) {
      // No further than the end of the row and of the group of columns.
      const size_t group_end =
          std::min((column_ / column_group_ + 1) * column_group_, grid_.columns);
      const size_t here = std::min(count, group_end - column_);
      double squares = 0;
      for (size_t i = 0; i < here; ++i) squares += values[i] * values[i];
      rows_[row_ / row_group_] += squares;
      columns_[column_ / column_group_] += squares;
      column_ += here;
      if (column_ == grid_.columns) {
        column_ = 0;
        ++row_;
      }
      values += here;
      count -= here;
    }
  }

  static std::vector<float> roots(const std::vector<double>& squares) {
    std::vector<float> out(squares.size());
    std::transform(squares.begin(), squares.end(), out.begin(),
                   [](double each) { return static_cast<float>(std::sqrt(each)); });
    return out;
  }
  std::vector<float> rows() const { return roots(rows_); }
  std::vector<float> columns() const { return roots(columns_); }

 private:
  Grid grid_;
  size_t row_group_;
  size_t column_group_;
  size_t row_ = 0;
  size_t column_ = 0;
  std::vector<double> rows_;
  std::vector<double> columns_;
};

void append(std::string& bytes, const float* numbers, size_t count) {
  bytes.append(reinterpret_cast<const char*>(numbers), count * sizeof(float));
}

void take(std::string_view& bytes, float* numbers, size_t count) {
  if (count == 0) return;  // memcpy wants an address even for no bytes
  std::memcpy(numbers, bytes.data(), count * sizeof(float));
  bytes.remove_prefix(count * sizeof(float));
}

double squares(const std::array<float, Sketch::kParts * Sketch::kBuckets>& projections) {
  double sum = 0;
  for (const double each : projections) sum += each * each;
  return sum / Sketch::kParts;
}

bool is_finite(const Sketch& sketch) {
  const auto all = [](const auto& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
  };
  return all(sketch.projections) && all(sketch.rows) && all(sketch.columns);
}

std::optional<Estimate::Group> worst_group(const std::vector<float>& golden,
                                           const std::vector<float>& actual, size_t count) {
  std::vector<float> sorted(golden);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  std::optional<Estimate::Group> worst;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double apart = std::fabs(double{golden[i]} - actual[i]);
    const double scale = std::max(golden[i], *middle);
    // Half a unit of float32 on both sides is no difference.
    if (apart <= 0x1p-22 * scale) continue;
    const double difference = scale > 0 ? apart / scale : kInfinity;
    const size_t size = group_size(count);
    if (!worst || difference > worst->difference)
      worst = {i * size, std::min((i + 1) * size, count) - 1, difference};
  }
  return worst;
}

}  // namespace

Sketch sketch(const TensorView& tensor) {
  const Source source(tensor);
  std::vector<std::byte> scratch(Source::kScratchBytes);
  std::vector<double> values(kBlockElements);
  ProjectionSums sums{};
  const Grid grid = grid_of(tensor.dtype, tensor.shape, tensor.elements);
  Norms norms(grid);
  for (size_t first = 0; first < source.elements(); first += kBlockElements) {
    const size_t count = std::min(kBlockElements, source.elements() - first);
    decode_f64(source.dtype(), source.block(first, count, scratch.data()), count, values.data());
    for (size_t i = 0; i < count; ++i)
      if (!std::isfinite(values[i])) values[i] = 0;
    norms.add(values.data(), count);
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(count), values.end(), 0.0);
    const size_t lines = (count + Sketch::kBuckets - 1) / Sketch::kBuckets;
    add_projections(values.data(), first / Sketch::kBuckets, lines, sums);
  }
  Sketch out;
  for (size_t part = 0; part < Sketch::kParts; ++part)
    for (size_t i = 0; i < Sketch::kBuckets; ++i)
      out.projections[part * Sketch::kBuckets + i] =
          static_cast<float>(sums[part][i] + sums[part][Sketch::kBuckets + i]);
  out.row_count = grid.rows;
  out.column_count = grid.columns;
  out.rows = norms.rows();
  out.columns = norms.columns();
  return out;
}

std::string sketch_text(const Sketch& sketch) {
  std::string bytes;
  append(bytes, sketch.projections.data(), sketch.projections.size());
  append(bytes, sketch.rows.data(), sketch.rows.size());
  append(bytes, sketch.columns.data(), sketch.columns.size());
  return std::string(kVersion) + to_base64(bytes);
}

std::optional<Sketch> parse_sketch(std::string_view text, DType dtype, const Shape& shape) {
  const auto elements = count_elements(shape);
  if (!text.starts_with(kVersion) || !elements) return std::nullopt;
  const auto bytes = from_base64(text.substr(kVersion.size()));
  const Grid grid = grid_of(dtype, shape, *elements);
  Sketch out;
  out.row_count = grid.rows;
  out.column_count = grid.columns;
  out.rows.resize(groups(grid.rows));
  out.columns.resize(groups(grid.columns));
  const size_t numbers = out.projections.size() + out.rows.size() + out.columns.size();
  if (!bytes || bytes->size() != numbers * sizeof(float)) return std::nullopt;
  std::string_view rest = *bytes;
  take(rest, out.projections.data(), out.projections.size());
  take(rest, out.rows.data(), out.rows.size());
  take(rest, out.columns.data(), out.columns.size());
  return is_finite(out) ? std::optional(out) : std::nullopt;
}

std::optional<Estimate> estimate(const Sketch& golden, double golden_norm, const Sketch& actual,
                                 double actual_norm) {
  if (golden.row_count != actual.row_count || golden.column_count != actual.column_count ||
      !is_finite(golden) || !is_finite(actual) || !std::isfinite(golden_norm) ||
      !std::isfinite(actual_norm) || golden_norm <= 0)
    return std::nullopt;
  auto difference = golden.projections;
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= actual.projections[i];
  const double dd = squares(difference);
  const double rounding =
      kRounding * (std::sqrt(squares(golden.projections)) + std::sqrt(squares(actual.projections)));
  const double apart = std::sqrt(dd);
  // No two vectors are nearer than their norms are apart, or farther than these add up to.
  const double farthest = golden_norm + actual_norm;
  const double nearest =
      std::max(0.0, std::fabs(golden_norm - actual_norm) - kNormRounding * farthest);
  const double least = std::clamp((apart - rounding) / std::sqrt(1 + kSpread), 0.0, farthest);
  const double most = std::min((apart + rounding) / std::sqrt(1 - kSpread), farthest);
  Estimate out;
  out.distance = {std::clamp(apart, nearest, farthest) / golden_norm,
                  std::max(least, std::min(nearest, most)) / golden_norm, most / golden_norm};
  const auto cosine = [&](double distance) {
    const double d = distance * golden_norm;
    if (actual_norm == 0) return 0.0;
    const double value = (golden_norm * golden_norm + actual_norm * actual_norm - d * d) /
                         (2 * golden_norm * actual_norm);
    return std::clamp(value, -1.0, 1.0);
  };
  out.cosine = {cosine(out.distance.value), cosine(out.distance.most), cosine(out.distance.least)};
  out.row = worst_group(golden.rows, actual.rows, golden.row_count);
  out.column = worst_group(golden.columns, actual.columns, golden.column_count);
  return out;
}

}  // namespace ait::metrics
