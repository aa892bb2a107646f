// The extension ait_llm._native: one file pair for each of the libraries that Python sees (files.h,
// measure.h, …), each with a bind_x() that is called here. A new one is such a pair, its line
// below, and its types in ait_llm/_native.pyi; tests/python/ holds the examples. Errors leave as
// exceptions (errors.h), tensors are Operands (operand.h).
#include <nanobind/nanobind.h>

#include "api_check.h"
#include "ear.h"
#include "errors.h"
#include "files.h"
#include "fused/tap.h"
#include "golden.h"
#include "graph.h"
#include "json_text.h"
#include "measure.h"
#include "object_file.h"
#include "operand.h"
#include "recorder.h"
#include "row.h"
#include "rows.h"
#include "trigger.h"

NB_MODULE(_native, module) {
  // What a host still holds when it ends, torch's compiler for example, is no leak to be told of on
  // its stderr.
  nanobind::set_leak_warnings(false);
  module.doc() =
      "Readers, writers and metrics of ait. Use ait_llm; this module's functions may change.";
  module.attr("__version__") = AIT_VERSION;
  ait::python::bind_errors(module);
  ait::python::bind_operand(module);
  ait::python::bind_files(module);
  ait::python::bind_golden(module);
  ait::python::bind_graph(module);
  ait::python::bind_json_text(module);
  ait::python::bind_measure(module);
  ait::python::bind_row(module);
  ait::python::bind_rows(module);
  ait::python::bind_recorder(module);
  ait::python::bind_object_file(module);
  ait::python::bind_ear(module);
  ait::python::fused::bind_fused(module);
  ait::python::bind_trigger(module);
  ait::python::bind_api_check(module);
}
