// Goldens of single operations (golden/golden.h) for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_golden(nanobind::module_& module);

}  // namespace ait::python
