// Writing for the torch hooks: several writers of record/writer.h at once, and jobs whose bytes lie
// in page-locked memory that a device copies into.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_torch_recorder(nanobind::module_& module);

}  // namespace ait::python
