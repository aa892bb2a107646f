// JSON for people to read: Python writes it fast only when it may leave out every space.
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_json_text(nanobind::module_& module);

}  // namespace ait::python
