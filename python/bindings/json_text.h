// JSON for people to read: Python takes ten times as long for it, because it indents in Python code.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_json_text(nanobind::module_& module);

}  // namespace ait::python
