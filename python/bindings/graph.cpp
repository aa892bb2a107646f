#include "graph.h"

#include <cstdint>
#include <string>

#include "errors.h"
#include "graph/onnx.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

// The path that was written, and what was wrong with the table of operations, if anything was.
nb::tuple convert(const nb::bytes& json_path, int64_t level) {
  const std::string path(json_path.c_str(), json_path.size());
  const auto file = [&] {
    const nb::gil_scoped_release unlocked;
    return value_or_raise(graph::convert_to_onnx(path, level));
  }();
  return nb::make_tuple(nb::bytes(file.path.data(), file.path.size()),
                        file.table_problem ? decoded(file.table_problem->text()) : nb::none());
}

}  // namespace

void bind_graph(nb::module_& module) {
  module.def("atb_json_to_onnx", &convert, "json_path"_a, "level"_a);
}

}  // namespace ait::python
