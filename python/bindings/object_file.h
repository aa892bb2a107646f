// A JSON object in a file that grows by members (record/object_file.h).
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_object_file(nanobind::module_& module);

}  // namespace ait::python
