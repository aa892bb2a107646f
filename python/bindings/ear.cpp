#include "ear.h"

#include <cstdint>
#include <unordered_set>

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ait::python {
namespace {

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// All of it is used with the interpreter's lock held.
class Ear {
 public:
  Ear(nb::handle function, nb::handle begin, nb::handle end)
      : function_(function), begin_(begin), end_(end) {
    if (!PyFunction_Check(function.ptr())) throw nb::type_error("an Ear is put to a function");
    if (put != nullptr) throw nb::value_error("there is an Ear in this process already");
    original = reinterpret_cast<PyFunctionObject*>(function.ptr())->vectorcall;
    put = this;
    let_call(&call);
  }
  ~Ear() {
    let_call(original);
    put = nullptr;
  }
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  void add(uintptr_t subject) { subjects_.insert(subject); }
  void discard(uintptr_t subject) { subjects_.erase(subject); }
  bool hears_outermost() const { return outermost_; }
  void hear_outermost(bool on) { outermost_ = on; }

 private:
  void let_call(vectorcallfunc caller) {
    const nb::object alive = function_();
    if (alive.is_none()) return;
    auto* function = reinterpret_cast<PyFunctionObject*>(alive.ptr());
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall(function, caller);
#else
    function->vectorcall = caller;
#endif
  }

  // Stands in for what calls the function. `args` are the subject and the other arguments.
  static PyObject* call(PyObject* function, PyObject* const* args, size_t flags,
                        PyObject* names) noexcept {
    const bool outermost = put != nullptr && put->outermost_ && !inside;
    const bool heard = put != nullptr && PyVectorcall_NARGS(flags) > 0 &&
                       (outermost || put->subjects_.contains(reinterpret_cast<uintptr_t>(args[0])));
    if (!heard || interpreter_ends()) return original(function, args, flags, names);
    if (outermost) inside = true;
    PyObject* output = put->tell(function, args, flags, names, outermost);
    if (outermost) inside = false;
    return output;
  }

  PyObject* tell(PyObject* function, PyObject* const* args, size_t flags, PyObject* names,
                 bool outermost) noexcept {
    try {
      const nb::object begun = begin(args, flags, names, outermost);
      nb::object output = nb::steal(original(function, args, flags, names));
      if (output.is_valid()) {
        if (!begun.is_none()) end_()(begun, output, false);
        return output.release().ptr();
      }
      nb::python_error error;
      if (!begun.is_none()) end_()(begun, nb::none(), true);
      error.restore();
    } catch (nb::python_error& error) {  // of ours, as when the program is interrupted just now
      error.restore();
    } catch (...) {
      PyErr_NoMemory();
    }
    return nullptr;
  }

  // Holds the arguments no longer than it has to: somebody may count who does.
  nb::object begin(PyObject* const* args, size_t flags, PyObject* names, bool outermost) {
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    nb::list positional;
    for (size_t i = 1; i < count; ++i) positional.append(nb::handle(args[i]));
    nb::dict named;
    for (size_t i = 0; names != nullptr && i < nb::len(names); ++i)
      named[nb::handle(PyTuple_GET_ITEM(names, i))] = nb::handle(args[count + i]);
    return begin_()(nb::handle(args[0]), nb::tuple(positional), named, outermost);
  }

  // The function has room for a pointer to `call`, and for nothing that would say whose.
  static inline Ear* put = nullptr;
  static inline vectorcallfunc original = nullptr;
  static inline thread_local bool inside = false;  // a call that was heard of as outermost

  // Functions of modules that the Ear may belong to: neither is to keep the other.
  nb::weakref function_;
  nb::weakref begin_;
  nb::weakref end_;
  std::unordered_set<uintptr_t> subjects_;
  bool outermost_ = false;
};

}  // namespace

void bind_ear(nb::module_& module) {
  nb::class_<Ear>(module, "Ear")
      .def(nb::init<nb::handle, nb::handle, nb::handle>(), "function"_a, "begin"_a, "end"_a)
      .def("add", &Ear::add, "subject"_a)
      .def("discard", &Ear::discard, "subject"_a)
      .def_prop_rw("outermost", &Ear::hears_outermost, &Ear::hear_outermost);
}

}  // namespace ait::python
