// One tensor as the extension sees it: in a file's mapping, or in memory that NumPy or torch owns.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>

#include "tensor/tensor.h"

namespace ait::python {

// Unlike Tensor it may have negative strides, which NumPy has and files do not.
struct Operand {
  DType dtype;
  Shape shape;
  Strides strides;  // in elements
  const std::byte* data;
  size_t elements;
  bool byte_swapped;
  std::shared_ptr<const void> owner;  // of a file's bytes; nanobind keeps Python's memory alive

  explicit Operand(const Tensor& tensor);
  Operand(uintptr_t address, std::string_view dtype_name, Shape shape_of, Strides strides_of,
          bool swapped);

  TensorView view() const { return {dtype, shape, strides, data, elements, byte_swapped}; }
};

// Raises UnsupportedError for words that name no type.
DType dtype_named(std::string_view text);

void bind_operand(nanobind::module_& module);

}  // namespace ait::python
