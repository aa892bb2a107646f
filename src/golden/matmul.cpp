#include "golden/matmul.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/parallel.h"
#include "golden/product_slack.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

bool fills(size_t stored, size_t wanted, size_t multiple) {
  return stored >= wanted && stored - wanted < multiple && stored % multiple == 0;
}

Result<Weight> read_fractal(Task& task, std::string_view name, bool turned, size_t depth,
                            std::optional<size_t> columns) {
  const DType type = task.dtype(name);
  const size_t width = fractal_width(type);
  if (type != DType::kInt8 && !is_half(type))
    return fail(task.no_golden(std::string(name) + " of type " + std::string(ait::name(type)) +
                               " in FRACTAL_NZ"));
  if (auto room = task.make_room(task.tensor(name).elements()); !room) return fail(room.error());
  Array stored = task.values(name);
  // Some callers leave out the first of the four dimensions.
  if (turned && stored.rank() == 3 && stored.dim(-1) == width && stored.dim(-1) != depth)
    stored.shape.insert(stored.shape.begin(), 1);
  if (stored.rank() == 2 || stored.rank() == 3) {
    // The dimensions of the matrix in place of those of the storage. What was recorded is as many
    // elements, so with rows or columns that were filled up its end is missing.
    const size_t rows = stored.dim(-2);
    if (rows % kFractalRows != 0 || stored.dim(-1) % width != 0)
      return fail(task.no_golden(std::string(name) + " of shape " + shape_text(stored.shape) +
                                 " is in FRACTAL_NZ without the dimensions of its storage, so its "
                                 "end was not recorded"));
    const auto pieces = static_cast<int64_t>(stored.dim(-1) / width);
    const auto count = static_cast<int64_t>(stored.rank() == 3 ? stored.dim(0) : 1);
    stored.shape = {count, pieces, static_cast<int64_t>(rows), static_cast<int64_t>(width)};
  }
  if (stored.rank() != 4)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(stored.shape) +
                                   " is not a weight in FRACTAL_NZ"));
  if (stored.dim(-1) != width)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(stored.shape) +
                                   " has not the " + std::to_string(width) +
                                   " columns in each piece that FRACTAL_NZ has"));
  const size_t stored_rows = stored.dim(-2);
  const size_t stored_columns = stored.dim(-3) * width;
  Weight weight;
  weight.count = stored.dim(0);
  weight.depth = depth;
  weight.turned = turned;
  weight.columns = columns.value_or(turned ? stored_rows : stored_columns);
  if (!columns)
    task.note(std::string(name) + " is in FRACTAL_NZ; all " + std::to_string(weight.columns) +
              " columns that are stored were taken");
  const size_t rows = turned ? weight.columns : depth;
  const size_t wide = turned ? depth : weight.columns;
  if (!fills(stored_rows, rows, kFractalRows) || !fills(stored_columns, wide, width))
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(stored.shape) +
                                   " in FRACTAL_NZ does not hold " + std::to_string(rows) + " x " +
                                   std::to_string(wide)));
  if (auto room = task.make_room(stored.elements()); !room) return fail(room.error());
  weight.data = from_fractal(stored, rows, wide).data;
  return weight;
}

float from_bits(uint64_t packed, uint32_t mask) {
  return std::bit_cast<float>(static_cast<uint32_t>(packed) & mask);
}

}  // namespace

Matrix Weight::matrix(size_t index) const {
  const size_t first = index * depth * columns;
  Matrix m = turned ? row_major(nullptr, columns, depth) : row_major(nullptr, depth, columns);
  if (stored) {
    m.stored = &*stored;
    m.first = first;
  } else {
    m.data = data.data() + first;
  }
  return turned ? transposed(m) : m;
}

Result<Weight> read_weight(Task& task, std::string_view name, bool turned, size_t depth,
                           std::optional<size_t> columns) {
  if (task.fractal(name) || task.shape(name).size() == 4)
    return read_fractal(task, name, turned, depth, columns);
  const Shape& shape = task.shape(name);
  const size_t rank = shape.size();
  if (rank != 2 && rank != 3)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " has neither two nor three dimensions"));
  if (static_cast<size_t>(shape[rank - (turned ? 1 : 2)]) != depth)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " does not go with x, whose rows have " + std::to_string(depth) +
                                   " numbers"));
  Weight weight;
  weight.count = rank == 3 ? static_cast<size_t>(shape[0]) : 1;
  weight.depth = depth;
  weight.columns = static_cast<size_t>(shape[rank - (turned ? 2 : 1)]);
  weight.turned = turned;
  weight.stored = task.tensor(name).view();
  // The plain loops read numbers in memory, and so is better read what is scattered.
  if (task.limits().reference_loops || !weight.stored->plain()) return in_memory(task, weight);
  return weight;
}

Result<Weight> in_memory(Task& task, const Weight& weight) {
  Weight out = weight;
  const size_t elements = weight.stored ? weight.stored->elements : weight.data.size();
  if (auto room = task.make_room(elements); !room) return fail(room.error());
  if (weight.stored) out.data = read_array(*weight.stored).data;
  out.stored.reset();
  return out;
}

std::optional<size_t> recorded_columns(const Task& task) {
  const Recorded* output = task.recorded(0);
  if (output == nullptr || output->shape.empty() || output->shape.back() <= 0) return std::nullopt;
  return static_cast<size_t>(output->shape.back());
}

Scales read_scales(const Task& task, std::string_view name) {
  Scales scales;
  const DType dtype = task.dtype(name);
  if (dtype != DType::kInt64 && dtype != DType::kUInt64) {
    scales.values = task.values(name).data;
    return scales;
  }
  const TensorView view = task.tensor(name).view();
  std::vector<uint64_t> packed(view.elements);
  gather(view, 0, view.elements, std::as_writable_bytes(std::span(packed)).data());
  constexpr uint32_t kAll = 0xffffffff;
  constexpr uint32_t kRead = 0xffffe000;
  for (const uint64_t bits : packed) {
    scales.values.push_back(from_bits(bits, kAll));
    scales.cut.push_back(from_bits(bits, kRead));
  }
  if (scales.cut == scales.values) scales.cut.clear();
  return scales;
}

Result<size_t> depth_of(const Task& task, const Array& x, const ProductMode& mode) {
  if (mode.ein_sum ? x.rank() != 3 : x.rank() < 2)
    return fail(task.contradiction("x of shape " + shape_text(x.shape) + " has not " +
                                   (mode.ein_sum ? "three dimensions" : "two dimensions or more")));
  return x.dim(mode.turn_x ? -2 : -1);
}

Result<Product> product_of(Task& task, const Array& x, const Weight& weight,
                           const ProductMode& mode) {
  Product out;
  out.depth = weight.depth;
  out.columns = weight.columns;
  out.interleaved = mode.ein_sum;
  out.shape = x.shape;
  out.shape.back() = static_cast<int64_t>(weight.columns);
  if (mode.turn_x) out.shape[x.rank() - 2] = x.shape.back();
  const size_t rows = mode.ein_sum ? x.dim(0) : x.dim(mode.turn_x ? -1 : -2);  // of a batch
  out.rows = x.elements() / weight.depth;
  out.batches = out.rows / rows;
  if (weight.count != 1 && weight.count != out.batches)
    return fail(task.contradiction("x of shape " + shape_text(x.shape) + " and a weight of " +
                                   std::to_string(weight.count) + " matrices do not go together"));
  const auto elements = count_elements(out.shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(2 * *elements); !room) return fail(room.error());
  out.values = zeros(*elements);
  out.slack = zeros(*elements);

  const size_t depth = weight.depth;
  const size_t columns = weight.columns;
  // One weight for all is one product, where the rows of x lie one after another.
  const bool at_once = weight.count == 1 && !mode.turn_x;
  const size_t products = at_once ? 1 : out.batches;
  const size_t height = at_once ? out.rows : rows;
  std::vector<double> part(mode.ein_sum && !at_once ? height * columns : 0);
  std::vector<double> column_norms;
  for (size_t i = 0; i < products; ++i) {
    const double* first = x.data.data() + i * (mode.ein_sum ? depth : rows * depth);
    const size_t step = mode.ein_sum && !at_once ? out.batches * depth : depth;
    const Matrix a = mode.turn_x ? transposed(row_major(first, depth, rows))
                                 : Matrix{first, height, depth, step, 1};
    const size_t index = weight.count == 1 ? 0 : i;
    const Matrix b = weight.matrix(index);
    double* result = part.empty() ? out.values.data() + i * height * columns : part.data();
    const bool new_norms = !mode.exact && (i == 0 || weight.count != 1);
    task.multiply(a, b, result, new_norms ? &column_norms : nullptr);
    const auto place = [&](size_t row) {  // in the output
      return part.empty() ? i * height + row : row * out.batches + i;
    };
    if (!part.empty())
      for (size_t row = 0; row < height; ++row)
        std::copy_n(part.data() + row * columns, columns, out.values.data() + place(row) * columns);
    if (mode.exact) continue;
    const ProductSlack slack(a, b, column_norms);
    parallel_for(height, 0, [&](size_t row) {
      const size_t first_out = place(row) * columns;
      for (size_t column = 0; column < columns; ++column)
        out.slack[first_out + column] = slack.at(row, column, out.values[first_out + column]);
    });
  }
  return out;
}

Output output_of(Product product) {
  Output out = exact_output(std::move(product.shape), std::move(product.values));
  out.slack = std::move(product.slack);
  return out;
}

Result<Channels> Channels::over(const Task& task, std::string_view name,
                                std::vector<double> numbers, const Product& product,
                                bool one_for_all) {
  const size_t count = numbers.size();
  if (count > 0 && count != product.columns && count != product.batches * product.columns &&
      !(one_for_all && count == 1))
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(count) +
                                   " elements, not one for each of " +
                                   std::to_string(product.columns) + " columns"));
  Channels channels;
  channels.numbers_ = std::move(numbers);
  return channels;
}

void dequantise(Product& product, const Channels& bias, const Channels& scale,
                const std::vector<double>& rows) {
  // The sum to float32, and two products.
  constexpr double kRoundings = 3;
  for (size_t row = 0; row < product.rows; ++row)
    for (size_t column = 0; column < product.columns; ++column) {
      const size_t i = row * product.columns + column;
      double& value = product.values[i];
      value = (value + bias.at(product, row, column)) * scale.at(product, row, column);
      if (!rows.empty()) value *= rows[row % rows.size()];
      product.slack[i] = kMargin * kRoundings * kFloat32Unit * std::abs(value);
    }
}

}  // namespace ait::golden
