// record/writer.h and the mapping file of capture/manual_mapping.h for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_recorder(nanobind::module_& module);

}  // namespace ait::python
