// compare/row.h for Python: the facts of one row, and the columns that the reports make of them.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

// Needs what bind_measure() binds.
void bind_row(nanobind::module_& module);

}  // namespace ait::python
