#include "api_check.h"

#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "api_check/output.h"
#include "api_check/random.h"
#include "base/text_file.h"
#include "errors.h"
#include "operand.h"
#include "record/atomic_file.h"
#include "report/csv.h"
#include "tables/api_check.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using api_check::ApiResult;
using api_check::Direction;
using api_check::Output;

// A csv that grows by whole lines, so that a run that is cut short leaves all finished ones. Its
// lines end as those of the old tool.
class CsvLines {
 public:
  CsvLines(const nb::bytes& path, bool is_new)
      : path_(path.c_str(), path.size()),
        file_(record::open_regular_file(path_.c_str(),
                                        O_WRONLY | O_APPEND | (is_new ? O_CREAT | O_EXCL : 0))) {
    if (file_.get() < 0) throw Raised{unwritable(path_, "open the file", errno)};
  }

  void append(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells)
      line += (line.empty() ? "" : ",") + report::csv_cell(cell);
    line += "\r\n";
    const auto status = record::append_line(file_.get(), line.data(), line.size());
    if (!status.ok()) throw Raised{unwritable(path_, status.step, status.error_number)};
  }

 private:
  std::string path_;
  Descriptor file_;
};

Output judge_tensors(const std::string& function, bool backward, const Operand& bench,
                     const Operand& device, bool raw_bench, const Operand* moved) {
  const nb::gil_scoped_release unlocked;
  std::optional<TensorView> moved_view;
  if (moved != nullptr) moved_view = moved->view();
  return api_check::judge_tensors(
      {function, backward ? Direction::kBackward : Direction::kForward}, bench.view(),
      device.view(), {.raw_bench = raw_bench, .moved = moved_view ? &*moved_view : nullptr});
}

// Of tensors whose types it `fills`: else it says that it cannot. `address` is where the elements go.
template <typename Bound>
void bind_draw(nb::module_& module, const char* name, bool (*fills)(DType),
               void (*draw)(const api_check::Stream&, DType, Bound, Bound, size_t, void*)) {
  module.def(
      name,
      [=](uintptr_t address, std::string_view dtype, size_t elements, Bound low, Bound high,
          uint64_t seed, const std::string& key, uint32_t tensor) {
        const DType type = dtype_named(dtype);
        if (!fills(type)) return false;
        const nb::gil_scoped_release unlocked;
        draw({seed, key, tensor}, type, low, high, elements, reinterpret_cast<void*>(address));
        return true;
      },
      "address"_a, "dtype"_a, "elements"_a, "low"_a, "high"_a, "seed"_a, "key"_a, "tensor"_a);
}

void bind_drawing(nb::module_& module) {
  bind_draw(module, "draw_reals", api_check::is_real, api_check::draw_reals);
  bind_draw(module, "draw_either", api_check::is_real, api_check::draw_either);
  bind_draw(module, "draw_integers", api_check::is_integer, api_check::draw_integers);
  module.def(
      "move_reals",
      [](uintptr_t address, std::string_view dtype, size_t elements, double size, uint64_t seed,
         uint32_t tensor) {
        const nb::gil_scoped_release unlocked;
        api_check::move_reals({seed, "", tensor}, dtype_named(dtype), size, elements,
                              reinterpret_cast<void*>(address));
      },
      "address"_a, "dtype"_a, "elements"_a, "size"_a, "seed"_a, "tensor"_a);
  module.def(
      "draw_mask",
      [](uintptr_t address, size_t elements, size_t true_count, uint64_t seed,
         const std::string& key, uint32_t tensor) {
        const nb::gil_scoped_release unlocked;
        api_check::draw_mask({seed, key, tensor}, true_count, elements,
                             reinterpret_cast<void*>(address));
      },
      "address"_a, "elements"_a, "true_count"_a, "seed"_a, "key"_a, "tensor"_a);
}

void bind_judging(nb::module_& module) {
  nb::class_<Output>(module, "ApiOutput")
      .def_rw("name", &Output::name)
      .def_ro("passes", &Output::passes)
      .def_rw("within", &Output::within)
      .def_ro("wants_moved", &Output::wants_moved)
      .def_rw("message", &Output::message)
      .def_prop_ro("roundings", [](const Output& self) { return self.difference.roundings; })
      .def_prop_ro("typical", [](const Output& self) { return self.difference.typical; })
      .def_ro("limit", &Output::limit)
      .def("texts", &tables::api_output_texts);
  module.def("judge_tensors", &judge_tensors, "function"_a, "backward"_a, "bench"_a, "device"_a,
             "raw_bench"_a, "moved"_a.none());
  module.def("judge_values", &api_check::judge_values, "type"_a, "equal"_a, "message"_a);
  module.def("judge_mismatch", &api_check::mismatch, "bench_type"_a, "device_type"_a, "message"_a);
  module.def(
      "judge_dropout",
      [](double p, bool scaled, size_t groups, const Operand& input, const Operand& bench,
         const Operand& device) {
        const nb::gil_scoped_release unlocked;
        return api_check::judge_dropout({p, scaled, groups}, input.view(), bench.view(),
                                        device.view());
      },
      "p"_a, "scaled"_a, "groups"_a, "input"_a, "bench"_a, "device"_a);
}

}  // namespace

void bind_api_check(nb::module_& module) {
  bind_drawing(module);
  bind_judging(module);
  nb::class_<CsvLines>(module, "CsvLines")
      .def(nb::init<const nb::bytes&, bool>(), "path"_a, "is_new"_a)
      .def("append", &CsvLines::append, "cells"_a);
  module.def("api_result_header",
             [] { return report::column_names(tables::api_result_columns()); });
  module.def("api_output_header",
             [] { return report::column_names(tables::api_output_columns()); });
  module.def("api_overflow_header",
             [] { return report::column_names(tables::api_overflow_columns()); });
  module.def(
      "api_overflow_texts",
      [](std::string name, std::string verdict, std::string on_cpu, std::string on_device,
         std::string raised, std::string high, std::string low, std::string message) {
        const api_check::OverflowResult result{
            std::move(name),   std::move(verdict), std::move(on_cpu), std::move(on_device),
            std::move(raised), std::move(high),    std::move(low),    std::move(message)};
        return report::column_texts(tables::api_overflow_columns(), result);
      },
      "name"_a, "verdict"_a, "on_cpu"_a, "on_device"_a, "raised"_a, "high"_a, "low"_a, "message"_a);
  module.def(
      "api_result_texts",
      [](std::string name, std::string forward, std::string backward, std::string message,
         std::string forward_within, std::string backward_within) {
        const ApiResult result{std::move(name),           std::move(forward),
                               std::move(backward),       std::move(message),
                               std::move(forward_within), std::move(backward_within)};
        return report::column_texts(tables::api_result_columns(), result);
      },
      "name"_a, "forward"_a, "backward"_a, "message"_a, "forward_within"_a, "backward_within"_a);
}

}  // namespace ait::python
