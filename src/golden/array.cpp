#include "golden/array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/parallel.h"
#include "metrics/elements.h"

namespace ait::golden {

size_t Array::dim(int index) const {
  const int count = static_cast<int>(shape.size());
  const int place = index < 0 ? index + count : index;
  return place < 0 || place >= count ? 1 : static_cast<size_t>(shape[static_cast<size_t>(place)]);
}

void reserve_large(std::vector<double>& numbers, size_t count) {
  numbers.reserve(count);
#ifdef MADV_HUGEPAGE
  constexpr size_t kPage = size_t{2} << 20;
  void* first = numbers.data();
  size_t bytes = count * sizeof(double);
  // Where it is refused nothing is lost but time.
  if (std::align(kPage, kPage, first, bytes) != nullptr)
    ::madvise(first, bytes / kPage * kPage, MADV_HUGEPAGE);
#endif
}

std::vector<double> zeros(size_t count) {
  std::vector<double> out;
  reserve_large(out, count);
  out.resize(count);
  return out;
}

Array read_array(const TensorView& view) {
  Array array;
  array.shape.assign(view.shape.begin(), view.shape.end());
  array.data = zeros(view.elements);
  // So many at a time stay in the cache on their way.
  constexpr size_t kAtOnce = 8192;
  parallel_for((view.elements + kAtOnce - 1) / kAtOnce, 0, [&](size_t part) {
    const size_t first = part * kAtOnce;
    const size_t count = std::min(kAtOnce, view.elements - first);
    metrics::read_elements(view, first, count, array.data.data() + first);
  });
  return array;
}

Array from_fractal(const Array& stored, size_t rows, size_t columns) {
  const size_t width = stored.dim(-1);
  const size_t stored_rows = stored.dim(-2);
  const size_t one = stored.dim(-3) * stored_rows * width;
  const size_t count = one == 0 ? 0 : stored.elements() / one;
  Array out;
  if (count != 1) out.shape.push_back(static_cast<int64_t>(count));
  out.shape.push_back(static_cast<int64_t>(rows));
  out.shape.push_back(static_cast<int64_t>(columns));
  out.data.reserve(count * rows * columns);
  for (size_t matrix = 0; matrix < count; ++matrix)
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        out.data.push_back(
            stored.data[matrix * one + fractal_offset(row, column, stored_rows, width)]);
  return out;
}

std::vector<size_t> falling_order(std::span<const double> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    const double a = numbers[left], b = numbers[right];
    if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
    return a > b || (!(a < b) && left < right);
  });
  return order;
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t back = 1; back <= out.size(); ++back) {
    const int64_t left = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t right = back <= b.size() ? b[b.size() - back] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    out[out.size() - back] = left == 1 ? right : left;
  }
  return out;
}

Array broadcast_to(const Array& array, const Shape& shape) {
  if (array.shape == shape) return array;
  Array out;
  out.shape = shape;
  size_t elements = 1;
  for (const int64_t dim : shape) elements *= static_cast<size_t>(dim);
  out.data.resize(elements);
  // Steps of the source for one step of each dimension of the result.
  std::vector<size_t> steps(shape.size(), 0);
  size_t step = 1;
  for (size_t back = 1; back <= array.rank(); ++back) {
    const auto dim = static_cast<size_t>(array.shape[array.rank() - back]);
    steps[shape.size() - back] = dim == 1 ? 0 : step;
    step *= dim;
  }
  std::vector<size_t> place(shape.size(), 0);
  size_t from = 0;
  for (double& value : out.data) {
    value = array.data[from];
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += steps[axis];
      if (++place[axis] < static_cast<size_t>(shape[axis])) break;
      from -= steps[axis] * static_cast<size_t>(shape[axis]);
      place[axis] = 0;
    }
  }
  return out;
}

}  // namespace ait::golden
