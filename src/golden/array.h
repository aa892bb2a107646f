// Numbers with a shape, row-major, in double precision: what goldens compute with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace ait::golden {

struct Array {
  Shape shape;
  std::vector<double> data;

  size_t rank() const { return shape.size(); }
  size_t elements() const { return data.size(); }
  // Of a dimension counted from the front, or with a negative number from the back. 1 where there
  // is none.
  size_t dim(int index) const;

  // As rows of the last dimension; a tensor without dimensions is one row of one.
  size_t row_elements() const { return dim(-1); }
  size_t rows() const { return row_elements() == 0 ? 0 : elements() / row_elements(); }
  std::span<const double> row(size_t index) const {
    return std::span(data).subspan(index * row_elements(), row_elements());
  }
};

// So many zeros, in large pages where the system lends them: of many small ones the first touch
// takes longer than all that is done with the numbers.
std::vector<double> zeros(size_t count);
// The same room for numbers that are yet to come, in an empty vector.
void reserve_large(std::vector<double>& numbers, size_t count);

// All elements of a tensor of a real type, on several threads.
Array read_array(const TensorView& view);

// FRACTAL_NZ cuts the columns of a matrix into pieces of `width` (16, of int8 32) and stores piece
// after piece, each with all rows, which are filled up to a multiple of 16: [b, m, n] lies as
// [b, ceil(n / width), ceil16(m), width]. This gives [b, rows, columns] again, b left out where it
// is 1 and `stored` has four dimensions of which the first is 1.
Array from_fractal(const Array& stored, size_t rows, size_t columns);

inline constexpr size_t kFractalRows = 16;
inline size_t fractal_width(DType dtype) { return size_bytes(dtype) == 1 ? 32 : 16; }

// Where element (row, column) of one such matrix lies.
constexpr size_t fractal_offset(size_t row, size_t column, size_t stored_rows, size_t width) {
  return (column / width * stored_rows + row) * width + column % width;
}

// The places of numbers from the largest one to the smallest; of equal ones the first comes first,
// NaN after all others.
std::vector<size_t> falling_order(std::span<const double> numbers);

// The shape that both broadcast to by numpy's rules, or nothing.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);
Array broadcast_to(const Array& array, const Shape& shape);

}  // namespace ait::golden
