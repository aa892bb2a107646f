#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "fused/device.h"
#include "fused/table_writer.h"
#include "fused/tap.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python::fused {
namespace {

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

std::shared_ptr<const Subject> subject_of(std::string name, std::string type, std::string folder) {
  return std::make_shared<const Subject>(
      Subject{std::move(name), std::move(type), std::move(folder)});
}

// Adds what makes a module and those below it the same ones as before. False if they are kept in another way than torch's.
bool add_modules(PyObject* module, PyObject* key, uint64_t& print, size_t depth) {
  constexpr size_t kMaxDepth = 1000;
  const auto mix = [&](uint64_t value) {
    print = (print ^ value) * 0x9e3779b97f4a7c15U + (print >> 29U);
  };
  mix(reinterpret_cast<uintptr_t>(module));
  mix(reinterpret_cast<uintptr_t>(Py_TYPE(module)));
  const nb::object names = nb::steal(PyObject_GenericGetDict(module, nullptr));
  if (!names.is_valid() || !PyDict_Check(names.ptr()) || depth == kMaxDepth)
    return PyErr_Clear(), false;
  PyObject* parts = PyDict_GetItemWithError(names.ptr(), key);
  if (parts == nullptr || !PyDict_Check(parts)) return PyErr_Clear(), false;
  PyObject* name = nullptr;
  PyObject* part = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(parts, &at, &name, &part) != 0) {
    mix(static_cast<uint64_t>(PyObject_Hash(name)));
    if (part != Py_None && !add_modules(part, key, print, depth + 1)) return false;
  }
  mix(depth);
  return true;
}

std::optional<uint64_t> print_of_modules(nb::handle model) {
  uint64_t print = 1;
  const nb::str key("_modules");
  if (!add_modules(model.ptr(), key.ptr(), print, 0)) return std::nullopt;
  return print;
}

void bind_table(nb::module_& module) {
  nb::class_<RoundTable>(module, "RoundTable")
      .def(
          "__init__",
          [](RoundTable* self, uint64_t number, bool captured, bool sketches) {
            new (self) RoundTable{std::make_shared<Table>(number, captured, sketches), {}};
          },
          "number"_a, "captured"_a = false, "sketches"_a = false)
      .def_prop_ro("number", [](const RoundTable& self) { return self.table->number(); })
      .def(
          "begin_call",
          [](RoundTable& self, std::string name, std::string type, std::string folder) {
            const uint32_t call = self.table->begin_call(
                subject_of(std::move(name), std::move(type), std::move(folder)));
            return std::pair(call, self.table->place_of(call));
          },
          "name"_a, "type_name"_a, "folder"_a)
      .def(
          "begin_function",
          [](RoundTable& self, std::string name, std::string type, std::string place) {
            return self.table->begin_function(
                subject_of(std::move(name), std::move(type), std::move(place)));
          },
          "name"_a, "type_name"_a, "place"_a)
      .def(
          "end_call", [](RoundTable& self, uint32_t call) { self.table->end_call(call); }, "call"_a)
      .def(
          "set",
          [](RoundTable& self, uint32_t row, double high, double low, double mean, double norm) {
            self.table->set(row, {high, low, mean, norm, 0, 0, 0, kDoneWithoutCounts});
          },
          "row"_a, "maximum"_a, "minimum"_a, "mean"_a, "l2_norm"_a)
      .def(
          "append_replay",
          [](RoundTable& self, const RoundTable& captured, uintptr_t stream) {
            const Status status =
                self.table->append_replay(*captured.table, reinterpret_cast<Stream>(stream));
            if (status != 0) self.table->note_failure(status);
          },
          "captured"_a, "stream"_a)
      .def("forget_tensors", [](RoundTable& self) { self.known.clear(); })
      .def("calls", [](const RoundTable& self) { return self.table->calls(); })
      .def("ended", [](const RoundTable& self) { return self.table->ended(); })
      .def_prop_ro("ended_print", [](const RoundTable& self) { return self.table->ended_print(); })
      .def_prop_ro("module_calls",
                   [](const RoundTable& self) { return self.table->module_calls(); })
      .def("take_unstored",
           [](RoundTable& self) {
             std::vector<std::tuple<std::string, uint64_t, std::string>> out;
             for (const auto& [reason, each] : self.table->take_unstored())
               out.emplace_back(reason, each.count, each.first);
             return out;
           })
      .def("ways",
           [](const RoundTable& self) {
             const auto ways = self.table->ways();
             const auto at = [&](Way way) { return ways[static_cast<size_t>(way)]; };
             return std::map<std::string, uint64_t>{{"cpu", at(Way::kCpu)},
                                                    {"kernel", at(Way::kKernel)},
                                                    {"torch", at(Way::kTorch)},
                                                    {"same_as_another", self.table->again()},
                                                    {"sketches", self.table->sketches()}};
           })
      .def("failure",
           [](const RoundTable& self) -> std::optional<std::string> {
             const Status status = self.table->failure();
             return status == 0 ? std::nullopt : std::optional(error_text(status));
           })
      .def("wait",
           [](RoundTable& self) {
             self.table->mark_end();
             const nb::gil_scoped_release unlocked;
             self.table->wait();
           })
      .def("rows", [](const RoundTable& self) {
        nb::list out;
        for (const auto& [file, result] : self.table->lines())
          out.append(
              result == nullptr
                  ? nb::make_tuple(file, nb::none(), nb::none(), nb::none(), nb::none(), 0, 0)
                  : nb::make_tuple(file, result->maximum, result->minimum, result->mean,
                                   result->l2_norm, result->nan, result->inf));
        return out;
      });
  nb::class_<TableWriter>(module, "TableWriter")
      .def(nb::init<>())
      .def(
          "submit",
          [](TableWriter& self, RoundTable& round, std::shared_ptr<Account> account,
             const nb::bytes& folder, bool per_module) {
            if (!round.table->has_grown()) return;
            round.table->mark_end();
            std::shared_ptr<Table> table = round.table;
            std::string path = text_of(folder);
            const nb::gil_scoped_release unlocked;
            self.submit(std::move(table), std::move(account), std::move(path), per_module);
          },
          "table"_a, "account"_a, "folder"_a, "per_module"_a)
      .def("flush", &TableWriter::flush, nb::call_guard<nb::gil_scoped_release>());
}

void bind_recording(nb::module_& module) {
  nb::class_<Recording>(module, "Recording")
      .def(
          "__init__",
          [](Recording* self, int parts, nb::object kind, nb::object leaves, nb::object name,
             nb::object plain, nb::object elsewhere, nb::object trouble, nb::object copied) {
            new (self) Recording(static_cast<Recording::Parts>(parts),
                                 {kind, leaves, name, plain, elsewhere, trouble, copied});
          },
          "parts"_a, "kind"_a, "leaves"_a, "name"_a, "plain"_a, "elsewhere"_a, "trouble"_a,
          "copied"_a.none() = nb::none())
      .def("close", &Recording::close)
      .def(
          "set_current",
          [](Recording& self, nb::object round) { self.set_current(std::move(round)); },
          "table"_a.none())
      .def(
          "arguments",
          [](Recording& self, RoundTable& round, uint32_t call, nb::tuple args, nb::dict kwargs) {
            self.arguments(round, call, std::move(args), std::move(kwargs));
          },
          "table"_a, "call"_a, "args"_a, "kwargs"_a)
      .def(
          "output",
          [](Recording& self, RoundTable& round, uint32_t call, nb::handle value) {
            self.output(round, call, value.ptr());
          },
          "table"_a, "call"_a, "value"_a.none())
      .def(
          "tensor",
          [](Recording& self, RoundTable& round, uint32_t call, const std::string& stem,
             nb::handle tensor) { self.tensor(round, call, stem, tensor.ptr()); },
          "table"_a, "call"_a, "stem"_a, "tensor"_a);
  nb::class_<Tap>(module, "NativeTap")
      .def(
          "__init__",
          [](Tap* self, nb::object recording, nb::object subject, std::string name,
             std::string type, std::string folder, nb::list functions, nb::list flags) {
            new (self) Tap(std::move(recording), std::move(subject),
                           {std::move(name), std::move(type), std::move(folder)},
                           std::move(functions), std::move(flags));
          },
          "recording"_a, "module"_a, "name"_a, "type_name"_a, "folder"_a, "functions"_a, "flags"_a);
}

}  // namespace

void bind_fused(nb::module_& module) {
  bind_table(module);
  bind_recording(module);
  module.def("print_of_modules", &print_of_modules, "model"_a);
  module.def("busy", [] { return busy; });
  module.def("set_busy", [](bool now) { busy = now; }, "now"_a);
  module.def(
      "set_torch",
      [](nb::dict types, nb::tuple plain, nb::object tensor_base, nb::object raw_stream,
         nb::object inference_mode, nb::object exchange) {
        Torch::set(std::move(types), std::move(plain), std::move(tensor_base),
                   std::move(raw_stream), std::move(inference_mode), std::move(exchange));
      },
      "types"_a, "plain"_a, "tensor_base"_a, "raw_stream"_a.none(), "inference_mode"_a.none(),
      "exchange"_a.none() = nb::none());
  module.def("open_cuda_driver", &open_driver, "library"_a);
  module.def(
      "load_kernel",
      [](int device, const nb::bytes& image) { return Device::load(device, text_of(image)); },
      "device"_a, "image"_a);
  module.def(
      "capture_on",
      [](uintptr_t stream) {
        return driver() == nullptr ? uint64_t{0} : capture_on(reinterpret_cast<Stream>(stream));
      },
      "stream"_a);
  module.def("has_kernel", [](int device) { return Device::at(device) != nullptr; }, "device"_a);
}

}  // namespace ait::python::fused
