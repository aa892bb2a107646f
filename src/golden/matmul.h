// What the linear operations share: weights in each of their layouts, scales in each of their
// types, and products with what float32 sums may be off.
#pragma once

#include <optional>

#include "golden/product.h"
#include "golden/task.h"

namespace ait::golden {

// Matrices of `depth` x `columns`, one after another: in memory, or still in the tensor.
struct Weight {
  std::vector<double> data;
  std::optional<TensorView> stored;  // where `data` is empty
  size_t count = 1;
  size_t depth = 0;
  size_t columns = 0;
  bool turned = false;  // each lies as [columns, depth]

  // Of this weight as long as it lives.
  Matrix matrix(size_t index) const;
  // Of one in memory.
  double& at(size_t index, size_t row, size_t column) {
    return data[index * depth * columns + (turned ? column * depth + row : row * columns + column)];
  }
};

// A weight, named "~weight" to the task, of two or three dimensions, or stored as FRACTAL_NZ, which
// its format says or that it has four. It must be `depth` deep. `columns` are those that other tensors ask for: what is stored
// may have been filled up beyond them.
Result<Weight> read_weight(Task& task, std::string_view name, bool turned, size_t depth,
                           std::optional<size_t> columns);

// The same weight in memory.
Result<Weight> in_memory(Task& task, const Weight& weight);

// The size of the last dimension of the output that was recorded.
std::optional<size_t> recorded_columns(const Task& task);

// Scales of float32, which devices take packed into (u)int64, too: as the low 32 bits.
struct Scales {
  std::vector<double> values;
  // The same with the 13 lowest bits of the significand cleared, which the unit that dequantises
  // products does not read. Empty where that changes nothing.
  std::vector<double> cut;
};
Scales read_scales(const Task& task, std::string_view name);
inline constexpr std::string_view kWholeScales = "scales in float32";
inline constexpr std::string_view kCutScales = "scales cut to 19 bits";

// x times weight, as rows of the output.
struct Product {
  Shape shape;
  size_t rows = 0;
  size_t columns = 0;
  size_t depth = 0;
  std::vector<double> values;
  std::vector<double> slack;
  size_t batches = 1;
  bool interleaved = false;  // the rows of all batches in turns, not batch after batch

  size_t batch_of(size_t row) const { return interleaved ? row % batches : row / (rows / batches); }
};

Output output_of(Product product);

struct ProductMode {
  bool turn_x = false;   // x lies as [k, m]
  bool ein_sum = false;  // x lies as [m, batch, k]
  bool exact = false;    // sums of integers
};

// How deep x is, if it has the two dimensions or more that a product needs.
Result<size_t> depth_of(const Task& task, const Array& x, const ProductMode& mode);
Result<Product> product_of(Task& task, const Array& x, const Weight& weight,
                           const ProductMode& mode);

// Numbers for each column, or for each of each batch; or, where that is allowed, one for all.
class Channels {
 public:
  static Result<Channels> over(const Task& task, std::string_view name, std::vector<double> numbers,
                               const Product& product, bool one_for_all = false);
  // Of a row, or 0 where there are none.
  double at(const Product& product, size_t row, size_t column) const {
    if (numbers_.empty()) return 0;
    if (numbers_.size() == 1) return numbers_[0];
    const bool shared = numbers_.size() == product.columns;
    return numbers_[(shared ? 0 : product.batch_of(row) * product.columns) + column];
  }

 private:
  std::vector<double> numbers_;
};

// (product + bias) * scale * scale of the row, in float32. `rows` may be empty.
void dequantise(Product& product, const Channels& bias, const Channels& scale,
                const std::vector<double>& rows);

}  // namespace ait::golden
