// Hears of the calls of a Python function without being seen by whoever calls it or is called.
//
// Every Python function holds a pointer to the C function that runs it, which the interpreter lets
// extensions replace (PyFunction_SetVectorcall). The function stays the same object with the same
// code, its class the same class, and no frame of ours is on Python's stack while it runs.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_ear(nanobind::module_& module);

}  // namespace ait::python
