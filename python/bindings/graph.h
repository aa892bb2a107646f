// graph/onnx.h for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_graph(nanobind::module_& module);

}  // namespace ait::python
