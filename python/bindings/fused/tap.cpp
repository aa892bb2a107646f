#include "fused/tap.h"

namespace nb = nanobind;

namespace ait::python::fused {

Tap::Tap(nb::object recording, nb::object module, Subject subject, nb::list functions,
         nb::list flags)
    : recording_(std::move(recording)),
      module_(nb::steal(PyWeakref_NewRef(module.ptr(), nullptr))),
      subject_(std::make_shared<const Subject>(std::move(subject))) {
  if (!module_.is_valid()) throw nb::python_error();
  for (const nb::handle function : functions) functions_.push_back(nb::borrow(function));
  for (const nb::handle flag : flags)
    flags_.emplace_back(nb::borrow(nb::object(flag[0])), nb::borrow(nb::object(flag[1])));
}

bool Tap::is_quiet() const {
  for (const nb::object& function : functions_) {
    PyObject* answer = PyObject_CallNoArgs(function.ptr());
    if (answer == nullptr) return PyErr_Clear(), false;
    const bool nothing =
        answer == Py_None || (PyLong_CheckExact(answer) && PyObject_IsTrue(answer) == 0);
    Py_DECREF(answer);
    if (!nothing) return false;
  }
  for (const auto& [names, key] : flags_) {
    PyObject* value = PyDict_GetItemWithError(names.ptr(), key.ptr());
    if (value == nullptr) PyErr_Clear();
    if (value != nullptr && value != Py_False) return false;
  }
  return true;
}

bool Tap::hear(PyObject* function, PyObject* const* args, size_t flags, PyObject* names,
               vectorcallfunc original, PyObject*& output) noexcept {
  if (busy) return output = original(function, args, flags, names), true;
  try {
    Recording& recording = *nb::inst_ptr<Recording>(recording_);
    const auto round_object = recording.current();
    if (recording.closed() || !round_object || referent(module_.ptr()) != args[0] || !is_quiet())
      return false;
    RoundTable& round = *nb::inst_ptr<RoundTable>(*round_object);
    const uint32_t call = round.table->begin_call(subject_);
    recording.arguments(round, call, args + 1, static_cast<size_t>(PyVectorcall_NARGS(flags)) - 1,
                        names);
    output = original(function, args, flags, names);
    if (output == nullptr || recording.closed()) return true;
    try {
      recording.output(round, call, output);
    } catch (...) {
      Py_CLEAR(output);
      throw;
    }
    round.table->end_call(call);
  } catch (nb::python_error& error) {  // of somebody who interrupts the program just now
    error.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
  return true;
}

}  // namespace ait::python::fused
