#include "operand.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "errors.h"
#include "tensor/half.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

size_t elements_of(const Shape& shape) {
  if (const auto elements = count_elements(shape)) return *elements;
  throw Raised{Error(ErrorCode::kUsage) << "the shape " << shape_text(shape) << " is impossible"};
}

// The tuple of a shape or of strides.
nb::tuple tuple_of(const std::vector<int64_t>& values) { return nb::tuple(nb::cast(values)); }

template <typename Bits>
void widen_with(const TensorView& view, float (*decode)(Bits), float* out) {
  constexpr size_t kBlock = 4096;
  std::array<Bits, kBlock> block;
  for (size_t first = 0; first < view.elements; first += kBlock) {
    const size_t count = std::min(kBlock, view.elements - first);
    gather(view, first, count, reinterpret_cast<std::byte*>(block.data()));
    out = std::transform(block.begin(), block.begin() + static_cast<ptrdiff_t>(count), out, decode);
  }
}

// Values as float32, for the types that NumPy has no name for. Writes `elements` floats at
// `address`.
void widen(const Operand& operand, uintptr_t address) {
  const nb::gil_scoped_release unlocked;
  const TensorView view = operand.view();
  auto* out = reinterpret_cast<float*>(address);
  switch (view.dtype) {
    case DType::kBFloat16:
      return widen_with(view, bf16_to_float, out);
    case DType::kFloat8E4M3FN:
      return widen_with(view, fp8_e4m3fn_to_float, out);
    case DType::kFloat8E5M2:
      return widen_with(view, fp8_e5m2_to_float, out);
    case DType::kFloat8E4M3FNUZ:
      return widen_with(view, fp8_e4m3fnuz_to_float, out);
    case DType::kFloat8E5M2FNUZ:
      return widen_with(view, fp8_e5m2fnuz_to_float, out);
    case DType::kFloat8E8M0FNU:
      return widen_with(view, fp8_e8m0fnu_to_float, out);
    default:
      break;
  }
  throw Raised{Error(ErrorCode::kUnsupported)
               << "float32 cannot stand for " << name(view.dtype) << "; take the bits instead"};
}

}  // namespace

DType dtype_named(std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  throw Raised{Error(ErrorCode::kUnsupported)
               << "the element type " << printable(text) << " is not known to ait"};
}

Operand::Operand(const Tensor& tensor)
    : dtype(tensor.dtype()),
      shape(tensor.shape()),
      strides(tensor.strides()),
      data(tensor.view().data),
      elements(tensor.elements()),
      byte_swapped(tensor.view().byte_swapped),
      owner(tensor.owner()) {}

Operand::Operand(uintptr_t address, std::string_view dtype_name, Shape shape_of, Strides strides_of,
                 bool swapped)
    : dtype(dtype_named(dtype_name)),
      shape(std::move(shape_of)),
      strides(std::move(strides_of)),
      data(reinterpret_cast<const std::byte*>(address)),
      elements(elements_of(shape)),
      byte_swapped(swapped) {
  if (strides.size() != shape.size())
    throw Raised{Error(ErrorCode::kUsage) << "a tensor needs as many strides as it has dimensions"};
}

void bind_operand(nb::module_& module) {
  nb::class_<Operand>(module, "Operand")
      // `owner` is whatever Python object holds the memory at `address`; it lives as long as the
      // operand.
      .def_static(
          "over",
          [](const nb::handle&, uintptr_t address, std::string_view dtype, Shape shape,
             Strides strides, bool byte_swapped) {
            return Operand(address, dtype, std::move(shape), std::move(strides), byte_swapped);
          },
          "owner"_a, "address"_a, "dtype"_a, "shape"_a, "strides"_a, "byte_swapped"_a,
          nb::keep_alive<0, 1>())
      .def_prop_ro("dtype", [](const Operand& self) { return name(self.dtype); })
      .def_prop_ro("itemsize", [](const Operand& self) { return size_bytes(self.dtype); })
      .def_prop_ro("shape", [](const Operand& self) { return tuple_of(self.shape); })
      .def_prop_ro("strides", [](const Operand& self) { return tuple_of(self.strides); })
      .def_prop_ro("address",
                   [](const Operand& self) { return reinterpret_cast<uintptr_t>(self.data); })
      .def_ro("elements", &Operand::elements)
      .def_ro("byte_swapped", &Operand::byte_swapped);
  module.def("widen", &widen, "operand"_a, "address"_a);
  std::vector<std::string> names;
  names.reserve(kDTypeCount);
  for (size_t i = 0; i < kDTypeCount; ++i) names.emplace_back(name(static_cast<DType>(i)));
  module.attr("dtypes") = nb::tuple(nb::cast(names));
}

}  // namespace ait::python
