// match/pair_paths.h, compare/row_stream.h and compare/row_store.h for Python: the rows of two runs
// as they are measured, and the rows of a report that is there already.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

// Needs what bind_row() binds.
void bind_rows(nanobind::module_& module);

}  // namespace ait::python
