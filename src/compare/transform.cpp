#include "compare/transform.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "metrics/elements.h"

namespace ait::compare {
namespace {

using match::Fit;
using match::Join;
using match::RowChoice;
using match::Transform;

// Elements converted at once when sums are formed.
constexpr size_t kStretchElements = 65536;

Error unfit(const Tensor& tensor, const std::string& why) {
  return Error(ErrorCode::kUsage) << "a shape of " << shape_text(tensor.shape()) << " " << why
                                  << ".";
}

// Another shape over the elements of a plain tensor.
Result<Tensor> restrided(const Tensor& tensor, Shape shape, Strides strides, uint64_t offset) {
  const TensorView view = tensor.view();
  const std::span<const std::byte> bytes(view.data, view.bytes());
  return Tensor::strided(tensor.owner(), bytes, tensor.dtype(), std::move(shape),
                         std::move(strides), offset);
}

// [heads, tokens, size] or [batch, heads, tokens, size] with tokens before heads. More dimensions
// than that hold the same where the others are ones: [batch, heads, 1, tokens, size].
Result<Tensor> tokens_first(const Tensor& given) {
  constexpr size_t kMostDimensions = 4;
  auto tensor = in_row_major_order(given);
  if (!tensor) return tensor;
  Shape shape = tensor->shape();
  for (size_t i = shape.size(); i-- > 0 && shape.size() > kMostDimensions;)
    if (shape[i] == 1 && i + 1 < shape.size())
      shape.erase(shape.begin() + static_cast<ptrdiff_t>(i));
  if (shape.size() < 3 || shape.size() > kMostDimensions)
    return fail(unfit(given, "cannot be rearranged by heads"));
  Strides strides = row_major_strides(shape);
  const size_t last = shape.size() - 1;
  std::swap(shape[last - 2], shape[last - 1]);
  std::swap(strides[last - 2], strides[last - 1]);
  return restrided(*tensor, std::move(shape), std::move(strides), 0);
}

Result<Tensor> columns(const Tensor& given, const Transform& transform) {
  const int64_t wide = transform.columns;
  const int64_t period = transform.period > 0 ? transform.period : wide;
  if (wide <= 0 || transform.taken <= 0 || period <= 0 || transform.first < 0 ||
      wide % period != 0 || transform.first > period - transform.taken ||
      given.elements() % static_cast<size_t>(wide) != 0)
    return fail(unfit(given, "cannot be divided into rows of " + std::to_string(wide)));
  auto tensor = in_row_major_order(given);
  if (!tensor) return tensor;
  const auto rows = static_cast<int64_t>(given.elements()) / wide;
  Shape shape = {rows, transform.taken};
  Strides strides = {wide, 1};
  if (period != wide) {
    shape.insert(shape.begin() + 1, wide / period);
    strides.insert(strides.begin() + 1, period);
  }
  return restrided(*tensor, std::move(shape), std::move(strides),
                   static_cast<uint64_t>(transform.first));
}

// Of several tensors that are to be joined: as a matrix.
struct Matrix {
  size_t rows;
  size_t columns;
};

// Rows are the same in all parts; the last dimension is the width unless the transform says one.
Matrix matrix_of(const Tensor& tensor, int64_t columns) {
  const size_t width = columns > 0 ? static_cast<size_t>(columns)
                       : tensor.shape().empty()
                           ? 1
                           : static_cast<size_t>(std::max<int64_t>(tensor.shape().back(), 1));
  return {tensor.elements() / width, width};
}

Result<Tensor> side_by_side(std::span<const Tensor> parts, int64_t width) {
  const size_t size = size_bytes(parts[0].dtype());
  size_t columns = 0;
  const size_t rows = matrix_of(parts[0], width).rows;
  for (const Tensor& part : parts) {
    const Matrix matrix = matrix_of(part, width);
    if (part.dtype() != parts[0].dtype() || matrix.rows != rows ||
        matrix.rows * matrix.columns != part.elements())
      return fail(unfit(part, "does not fit beside " + shape_text(parts[0].shape())));
    columns += matrix.columns;
  }
  const auto bytes = checked_mul(rows, columns);
  if (!bytes || !checked_mul(*bytes, size)) return fail(unfit(parts[0], "is too large to join"));
  auto file = MappedFile::temporary(*bytes * size, [&](std::span<std::byte> out) -> Result<void> {
    size_t at = 0;
    for (const Tensor& part : parts) {
      const size_t width_here = matrix_of(part, width).columns;
      const TensorView view = part.view();
      for (size_t row = 0; row < rows; ++row)
        gather(view, row * width_here, width_here, out.data() + (row * columns + at) * size);
      at += width_here;
    }
    return {};
  });
  if (!file) return fail(file.error());
  return Tensor::contiguous(*file, (*file)->bytes(), parts[0].dtype(),
                            {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
}

// In double, kept as float32: partial results of fp16 add up on a device in no better precision.
Result<Tensor> sum(std::span<const Tensor> parts) {
  const size_t elements = parts[0].elements();
  for (const Tensor& part : parts) {
    if (part.elements() != elements || info(part.dtype()).kind == DTypeKind::kComplex ||
        info(part.dtype()).kind == DTypeKind::kPacked)
      return fail(unfit(part, "cannot be added to " + shape_text(parts[0].shape())));
  }
  if (!checked_mul(elements, sizeof(float))) return fail(unfit(parts[0], "is too large to add"));
  auto file = MappedFile::temporary(
      elements * sizeof(float), [&](std::span<std::byte> out) -> Result<void> {
        std::vector<double> total(std::min(kStretchElements, elements));
        std::vector<double> values;
        for (size_t first = 0; first < elements; first += kStretchElements) {
          const size_t count = std::min(kStretchElements, elements - first);
          std::fill_n(total.begin(), count, 0.0);
          for (const Tensor& part : parts) {
            metrics::read_elements(part.view(), first, count, values);
            for (size_t i = 0; i < count; ++i) total[i] += values[i];
          }
          for (size_t i = 0; i < count; ++i) {
            const auto value = static_cast<float>(total[i]);
            std::memcpy(out.data() + (first + i) * sizeof value, &value, sizeof value);
          }
        }
        return {};
      });
  if (!file) return fail(file.error());
  return Tensor::contiguous(*file, (*file)->bytes(), DType::kFloat32, parts[0].shape());
}

// Of a row of one part.
int64_t width_of(const Transform& transform) {
  if (transform.taken == 0) return transform.columns;
  return transform.period > 0 ? transform.columns / transform.period * transform.taken
                              : transform.taken;
}

Result<Tensor> one(const Tensor& part, const Transform& transform) {
  Result<Tensor> tensor = part;
  if (transform.heads_first) tensor = tokens_first(*tensor);
  if (tensor && transform.taken > 0) tensor = columns(*tensor, transform);
  return tensor;
}

size_t rows_of(const Tensor& tensor) {
  return tensor.shape().empty() ? 1 : static_cast<size_t>(tensor.shape()[0]);
}

// [1, 7, 16] and [14, 16] have rows of the same width, and the one's go into the other's twice.
bool may_repeat(const Tensor& smaller, const Tensor& larger) {
  return !smaller.shape().empty() && !larger.shape().empty() && smaller.elements() > 0 &&
         smaller.shape().back() == larger.shape().back() &&
         larger.elements() % smaller.elements() == 0;
}

// The smaller as [times, …] with a stride of 0.
bool repeat(Tensor& smaller, const Tensor& larger) {
  if (!may_repeat(smaller, larger)) return false;
  auto tensor = in_row_major_order(smaller);
  if (!tensor) return false;
  Shape shape = tensor->shape();
  Strides strides = tensor->strides();
  shape.insert(shape.begin(), static_cast<int64_t>(larger.elements() / smaller.elements()));
  strides.insert(strides.begin(), 0);
  auto repeated = restrided(*tensor, std::move(shape), std::move(strides), 0);
  if (!repeated) return false;
  smaller = std::move(*repeated);
  return true;
}

// Cuts the larger tensor into stretches of rows, as many as the smaller has rows, and keeps the last
// row of each. What ranks gathered may have its rows in pieces, [1, 2, 151]: the wider of the last
// dimensions is that of a row.
bool last_rows(Tensor& larger, const Tensor& smaller) {
  if (larger.shape().empty() || smaller.shape().empty()) return false;
  const auto width = static_cast<size_t>(std::max(larger.shape().back(), smaller.shape().back()));
  if (width == 0 || smaller.elements() == 0 || smaller.elements() % width != 0 ||
      larger.elements() % smaller.elements() != 0)
    return false;
  auto tensor = in_row_major_order(larger);
  if (!tensor) return false;
  const size_t step = larger.elements() / smaller.elements();
  const size_t rows = smaller.elements() / width;
  auto picked = restrided(*tensor, {static_cast<int64_t>(rows), static_cast<int64_t>(width)},
                          {static_cast<int64_t>(step * width), 1}, (step - 1) * width);
  if (!picked) return false;
  larger = std::move(*picked);
  return true;
}

// Whether the first dimensions multiply to so many rows.
bool has_rows(const Tensor& tensor, size_t rows) {
  size_t so_far = 1;
  for (const int64_t size : tensor.shape()) {
    if (so_far == rows) break;
    so_far *= static_cast<size_t>(size);
  }
  return so_far == rows;
}

// Some of a tensor's `count` rows, in another order. False where it cannot be.
bool pick_rows(Tensor& tensor, size_t count, const std::vector<uint32_t>& rows) {
  if (rows.empty()) return true;
  const size_t width = tensor.elements() / count;
  const size_t row_bytes = width * size_bytes(tensor.dtype());
  auto file =
      MappedFile::temporary(rows.size() * row_bytes, [&](std::span<std::byte> out) -> Result<void> {
        for (size_t i = 0; i < rows.size(); ++i)
          gather(tensor.view(), rows[i] * width, width, out.data() + i * row_bytes);
        return {};
      });
  if (!file) return false;
  auto picked =
      Tensor::contiguous(*file, (*file)->bytes(), tensor.dtype(),
                         {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)});
  if (!picked) return false;
  tensor = std::move(*picked);
  return true;
}

// The rows of both sides that correspond. A side that has only the last row of each sequence goes
// with those of the other.
bool fit_rows(Tensor& golden, const RowChoice& golden_rows, Tensor& actual,
              const RowChoice& actual_rows) {
  // As wide as the other, so that a shape which can be cut in two ways is cut in the right one.
  const auto same_width = [&](size_t golden_count, size_t actual_count) {
    return golden_count > 0 && actual_count > 0 && has_rows(golden, golden_count) &&
           has_rows(actual, actual_count) &&
           golden.elements() / golden_count == actual.elements() / actual_count;
  };
  if (same_width(golden_rows.count, actual_rows.count))
    return pick_rows(golden, golden_rows.count, golden_rows.rows) &&
           pick_rows(actual, actual_rows.count, actual_rows.rows);
  if (same_width(golden_rows.count, actual_rows.last.size()))
    return pick_rows(golden, golden_rows.count, golden_rows.last);
  if (same_width(golden_rows.last.size(), actual_rows.count))
    return pick_rows(actual, actual_rows.count, actual_rows.last);
  return false;
}

}  // namespace

Result<Tensor> transformed(std::span<const Tensor> parts, const Transform& transform) {
  std::vector<Tensor> ready;
  for (const Tensor& part : parts) {
    auto tensor = one(part, transform);
    if (!tensor) return tensor;
    ready.push_back(std::move(*tensor));
  }
  if (ready.empty()) return fail(Error(ErrorCode::kUsage) << "there is nothing to compare.");
  if (ready.size() == 1) return std::move(ready.front());
  switch (transform.join) {
    case Join::kColumns:
      return side_by_side(ready, width_of(transform));
    case Join::kSum:
      return sum(ready);
    case Join::kNone:
      break;
  }
  return std::move(ready.front());
}

Result<Tensor> dequantised(std::span<const Tensor> parts) {
  const Tensor& weight = parts[0];
  if (info(weight.dtype()).kind != DTypeKind::kInteger) return weight;
  const size_t rows = rows_of(weight);
  const size_t columns = rows > 0 ? weight.elements() / rows : 0;
  // How many elements of the weight share a number of this part.
  const auto shared_by = [&](const Tensor& part) -> size_t {
    const size_t count = part.elements();
    if (count == 1) return std::max<size_t>(weight.elements(), 1);
    const bool fits = rows > 0 && count > 0 && count % rows == 0 && columns % (count / rows) == 0;
    return fits ? columns / (count / rows) : 0;
  };
  std::vector<std::vector<double>> numbers;
  std::vector<size_t> shared;
  for (const Tensor& part : parts.subspan(1)) {
    shared.push_back(shared_by(part));
    const DTypeKind kind = info(part.dtype()).kind;
    if (shared.back() == 0 || kind == DTypeKind::kComplex || kind == DTypeKind::kPacked)
      return fail(unfit(part, "is not a scale or offset for " + shape_text(weight.shape())));
    metrics::read_elements(part.view(), 0, part.elements(), numbers.emplace_back());
  }
  if (!checked_mul(weight.elements(), sizeof(float)))
    return fail(unfit(weight, "is too large to de-quantise"));
  auto file = MappedFile::temporary(
      weight.elements() * sizeof(float), [&](std::span<std::byte> out) -> Result<void> {
        std::vector<double> values;
        for (size_t first = 0; first < weight.elements(); first += kStretchElements) {
          const size_t count = std::min(kStretchElements, weight.elements() - first);
          metrics::read_elements(weight.view(), first, count, values);
          for (size_t i = 0; i < count; ++i) {
            const double offset = numbers.size() > 1 ? numbers[1][(first + i) / shared[1]] : 0;
            const auto value =
                static_cast<float>((values[i] - offset) * numbers[0][(first + i) / shared[0]]);
            std::memcpy(out.data() + (first + i) * sizeof value, &value, sizeof value);
          }
        }
        return {};
      });
  if (!file) return fail(file.error());
  return Tensor::contiguous(*file, (*file)->bytes(), DType::kFloat32, weight.shape());
}

std::string fit(Tensor& golden, Tensor& actual, Fit how, const RowChoice* golden_rows,
                const RowChoice* actual_rows) {
  if (golden_rows != nullptr && actual_rows != nullptr) {
    // What holds for all sequences is first given to each of them.
    if (how == Fit::kRepeat && !has_rows(golden, golden_rows->count)) repeat(golden, actual);
    if (how == Fit::kRepeat && !has_rows(actual, actual_rows->count)) repeat(actual, golden);
    if (fit_rows(golden, *golden_rows, actual, *actual_rows))
      return "the rows that correspond are compared.";
  }
  if (golden.elements() == actual.elements() || how == Fit::kNone) return {};
  const bool golden_smaller = golden.elements() < actual.elements();
  Tensor& smaller = golden_smaller ? golden : actual;
  Tensor& larger = golden_smaller ? actual : golden;
  const std::string who = golden_smaller ? "golden" : "my";
  if (how == Fit::kRepeat && repeat(smaller, larger)) return who + " data is repeated.";
  if (how == Fit::kLastRows && last_rows(larger, smaller))
    return "only the last row of each sequence is compared.";
  return {};
}

}  // namespace ait::compare
