// The conditions of register_hook(when=…), and of which rounds tensors are kept.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_trigger(nanobind::module_& module);

}  // namespace ait::python
