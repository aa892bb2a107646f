#include "files.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "formats/registry.h"
#include "formats/write.h"
#include "operand.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

std::optional<formats::RawLayout> raw_layout(const std::optional<std::string>& dtype,
                                             const std::optional<Shape>& shape) {
  if (!dtype) {
    if (shape)
      throw Raised{Error(ErrorCode::kUsage)
                   << "a shape is only taken together with a dtype, for raw bytes"};
    return std::nullopt;
  }
  return formats::RawLayout{dtype_named(*dtype), shape};
}

Operand load_one(const nb::bytes& path, const std::string& name,
                 const std::optional<std::string>& dtype, const std::optional<Shape>& shape) {
  const std::string file = path_of(path);
  const auto raw = raw_layout(dtype, shape);
  const nb::gil_scoped_release unlocked;
  return Operand(value_or_raise(formats::load_single(file, name, raw)));
}

std::vector<std::pair<std::string, Operand>> open_all(
    const std::string& path, const std::optional<formats::RawLayout>& raw) {
  const nb::gil_scoped_release unlocked;
  const auto file = value_or_raise(formats::open_tensor_file(path, raw));
  std::vector<std::pair<std::string, Operand>> tensors;
  tensors.reserve(file->size());
  for (size_t i = 0; i < file->size(); ++i)
    tensors.emplace_back(file->name(i), Operand(value_or_raise(file->load(i))));
  return tensors;
}

// Every tensor of a file with its name; a bare tensor's name is empty.
nb::list load_all(const nb::bytes& path, const std::optional<std::string>& dtype,
                  const std::optional<Shape>& shape) {
  nb::list named;
  for (auto& [name, operand] : open_all(path_of(path), raw_layout(dtype, shape)))
    named.append(nb::make_tuple(decoded(name), std::move(operand)));
  return named;
}

// Files know no negative strides: such an array is brought into order first.
Tensor tensor_of(const Operand& operand) {
  const TensorView view = operand.view();
  if (std::any_of(operand.strides.begin(), operand.strides.end(), [](int64_t s) { return s < 0; }))
    return value_or_raise(gathered(view));
  size_t reach = view.elements > 0 ? 1 : 0;
  for (size_t d = 0; d < operand.shape.size() && view.elements > 0; ++d)
    reach += static_cast<size_t>((operand.shape[d] - 1) * operand.strides[d]);
  auto tensor =
      value_or_raise(Tensor::strided(operand.owner, {view.data, reach * size_bytes(view.dtype)},
                                     view.dtype, operand.shape, operand.strides, 0));
  return tensor.set_byte_swapped(view.byte_swapped);
}

void save(const nb::bytes& path, const std::vector<std::pair<std::string, Operand>>& tensors) {
  const std::string file = path_of(path);
  const nb::gil_scoped_release unlocked;
  const auto format = formats::file_format_of(file);
  if (!format)
    throw Raised{Error(ErrorCode::kUsage, file)
                 << "the name must end in .bin, .npy, .npz, .pt, .pth or .safetensors"};
  std::vector<formats::NamedTensor> named;
  named.reserve(tensors.size());
  for (const auto& [name, operand] : tensors) named.push_back({name, tensor_of(operand)});
  value_or_raise(formats::write_tensor_file(file, named, *format));
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("load_one", &load_one, "path"_a, "name"_a, "dtype"_a.none(), "shape"_a.none());
  module.def("load_all", &load_all, "path"_a, "dtype"_a.none(), "shape"_a.none());
  module.def("save", &save, "path"_a, "tensors"_a);
}

}  // namespace ait::python
