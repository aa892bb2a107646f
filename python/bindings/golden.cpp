#include "golden.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "golden/golden.h"
#include "golden/rounding.h"
#include "operand.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using WrittenPart = std::pair<size_t, std::vector<size_t>>;      // elements of a stretch, starts
using InputList = std::vector<std::pair<const Operand*, bool>>;  // and whether it is fractal

// The tensor of an operand, whose memory its caller keeps.
Tensor tensor_of(const Operand& operand) {
  const TensorView view = operand.view();
  if (!view.plain()) return value_or_raise(gathered(view));
  return value_or_raise(
      Tensor::contiguous(nullptr, {view.data, view.bytes()}, operand.dtype, operand.shape));
}

golden::GivenList given(const InputList& inputs) {
  golden::GivenList list;
  list.reserve(inputs.size());
  for (const auto& [operand, fractal] : inputs) {
    if (operand == nullptr)
      list.emplace_back();
    else
      list.emplace_back(golden::Given{tensor_of(*operand), fractal});
  }
  return list;
}

nb::bytes bytes_of(const std::vector<double>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(double));
}

std::vector<double> bounds_of(const golden::Output& output, std::string_view dtype, size_t form) {
  const DType type = dtype_named(dtype);
  std::vector<double> bounds(output.values.size());
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = golden::bound(output, i, type, form);
  return bounds;
}

golden::Expected run(std::string_view type, std::string_view param, const InputList& inputs,
                     const std::vector<std::pair<std::string, Shape>>& outputs,
                     const std::vector<InputList>& ranks, size_t memory_bytes, size_t threads,
                     bool reference_loops) {
  golden::Operation operation;
  operation.type = type;
  operation.param = param;
  operation.inputs = given(inputs);
  for (const auto& [dtype, shape] : outputs)
    operation.outputs.push_back({dtype_named(dtype), shape});
  for (const InputList& rank : ranks) operation.ranks.push_back(given(rank));
  const nb::gil_scoped_release unlocked;
  return value_or_raise(golden::compute(operation, {memory_bytes, threads, reference_loops}));
}

double rounded(std::string_view dtype, double value) {
  return golden::round_to(dtype_named(dtype), value);
}

}  // namespace

void bind_golden(nb::module_& module) {
  nb::class_<golden::Form>(module, "GoldenForm")
      .def_ro("name", &golden::Form::name)
      .def("values", [](const golden::Form& form) { return bytes_of(form.values); });
  nb::class_<golden::Output>(module, "GoldenOutput")
      .def_ro("shape", &golden::Output::shape)
      .def_ro("form", &golden::Output::form)
      .def_ro("forms", &golden::Output::forms)
      .def_ro("undefined", &golden::Output::undefined)
      .def_ro("written_input", &golden::Output::written_input)
      .def_prop_ro("part",
                   [](const golden::Output& output) -> std::optional<WrittenPart> {
                     if (!output.part) return std::nullopt;
                     return WrittenPart{output.part->stretch_elements, output.part->starts};
                   })
      .def_ro("ties", &golden::Output::ties)
      .def_prop_ro("tie_of",
                   [](const golden::Output& output) {
                     std::vector<std::pair<size_t, size_t>> tied;
                     for (size_t i = 0; i < output.tie_of.size(); ++i)
                       if (output.tie_of[i] != golden::Output::kNoTie)
                         tied.emplace_back(i, output.tie_of[i]);
                     return tied;
                   })
      .def("values", [](const golden::Output& output) { return bytes_of(output.values); })
      .def(
          "bounds",
          [](const golden::Output& output, std::string_view dtype, size_t form) {
            if (form > output.forms.size())
              throw Raised{Error(ErrorCode::kUsage) << "there is no such form"};
            return bytes_of(bounds_of(output, dtype, form));
          },
          "dtype"_a, "form"_a);
  nb::class_<golden::Expected>(module, "Golden")
      .def_ro("outputs", &golden::Expected::outputs)
      .def_ro("notes", &golden::Expected::notes);
  module.def("run_golden", &run, "type"_a, "param"_a, "inputs"_a, "outputs"_a, "ranks"_a,
             "memory_bytes"_a, "threads"_a, "reference_loops"_a);
  module.def("golden_types", [] {
    std::vector<std::string> types;
    for (const std::string_view type : golden::known_types()) types.emplace_back(type);
    return types;
  });
  module.def("changed_inputs", &golden::changed_inputs, "type"_a, "param"_a);
  module.def("round_to", &rounded, "dtype"_a, "value"_a);
}

}  // namespace ait::python
