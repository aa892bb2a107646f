// Writing in the background for dump_data and the torch hooks: one or several writers of
// record/writer.h, jobs whose bytes lie in page-locked memory that a device copies into
// (lent_memory.h), counts (account.h), and the mapping file of capture/manual_mapping.h
// (pending_mappings.h).
#pragma once

#include <nanobind/nanobind.h>

namespace ait::python {

void bind_recorder(nanobind::module_& module);

}  // namespace ait::python
