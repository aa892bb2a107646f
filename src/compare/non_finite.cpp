#include "compare/non_finite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "metrics/elements.h"

namespace ait::compare {
namespace {

constexpr size_t kStretchElements = 65536;

// The type of the parts of a complex type; nothing for others.
std::optional<DType> part_type(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kFloat16;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

// Elements [first, first + count) as reals; returns how many these are.
size_t read_reals(const TensorView& view, size_t first, size_t count, std::vector<double>& out) {
  const auto part = part_type(view.dtype);
  if (!part) {
    metrics::read_elements(view, first, count, out);
    return count;
  }
  std::vector<std::byte> bytes(count * size_bytes(view.dtype));
  gather(view, first, count, bytes.data());
  const size_t reals = 2 * count;
  const std::array<int64_t, 1> shape = {static_cast<int64_t>(reals)};
  const std::array<int64_t, 1> strides = {1};
  metrics::read_elements({*part, shape, strides, bytes.data(), reals}, 0, reals, out);
  return reals;
}

bool has_statistics(const Side& side) { return side.kept == capture::Kept::kStatistics; }

}  // namespace

bool non_finite_differ(const Row& row) {
  if (row.comparison) return !row.comparison->non_finite_agree;
  const auto& golden = row.golden.statistics;
  const auto& actual = row.actual.statistics;
  return golden && actual && golden->elements == actual->elements &&
         (has_statistics(row.golden) || has_statistics(row.actual)) &&
         row.golden.has_non_finite() != row.actual.has_non_finite();
}

std::string non_finite_counts(const Row& row) {
  const auto count = [](const Side& side) {
    if (side.kept == capture::Kept::kBytes && side.statistics)
      return std::to_string(side.statistics->non_finite());
    return std::string(side.has_non_finite() ? "some" : "none");
  };
  return "golden: " + count(row.golden) + ", my side: " + count(row.actual);
}

NonFiniteDifference find_non_finite_difference(const Tensor& golden, const Tensor& actual) {
  NonFiniteDifference out;
  std::vector<double> g;
  std::vector<double> m;
  const size_t parts = part_type(golden.dtype()) ? 2 : 1;
  for (size_t first = 0; first < golden.elements(); first += kStretchElements) {
    const size_t count = std::min(kStretchElements, golden.elements() - first);
    const size_t reals = read_reals(golden.view(), first, count, g);
    read_reals(actual.view(), first, count, m);
    for (size_t i = 0; i < reals; ++i) {
      const bool finite = std::isfinite(g[i]) && std::isfinite(m[i]);
      if (finite || g[i] == m[i] || (std::isnan(g[i]) && std::isnan(m[i]))) continue;
      if (out.count++ == 0) out = {1, first * parts + i, g[i], m[i]};
    }
  }
  return out;
}

}  // namespace ait::compare
