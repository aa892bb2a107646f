#include <nanobind/nanobind.h>

#include "errors.h"
#include "files.h"
#include "graph.h"
#include "measure.h"
#include "operand.h"
#include "recorder.h"
#include "row.h"
#include "rows.h"
#include "torch_recorder.h"

NB_MODULE(_native, module) {
  module.doc() =
      "Readers, writers and metrics of ait. Use ait_llm; this module's functions may change.";
  module.attr("__version__") = AIT_VERSION;
  ait::python::bind_errors(module);
  ait::python::bind_operand(module);
  ait::python::bind_files(module);
  ait::python::bind_graph(module);
  ait::python::bind_measure(module);
  ait::python::bind_row(module);
  ait::python::bind_rows(module);
  ait::python::bind_recorder(module);
  ait::python::bind_torch_recorder(module);
}
