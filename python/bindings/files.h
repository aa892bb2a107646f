// formats/registry.h and formats/write.h for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_files(nanobind::module_& module);

}  // namespace ait::python
