// The pre-check of torch's functions: drawn inputs, judged outputs, and the lines of its reports.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_api_check(nanobind::module_& module);

}  // namespace ait::python
