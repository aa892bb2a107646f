// metrics/compare.h for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_measure(nanobind::module_& module);

}  // namespace ait::python
