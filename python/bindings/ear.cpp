#include "ear.h"

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fused/tap.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ait::python {
namespace {

#if defined(Py_LIMITED_API)

// The stable interface has none of these. Every CPython since 3.12 does, and a later one that lacks
// one is told of when an Ear is put, not when the module is imported.
template <typename Function>
Function of_python(const char* name, const char* later_name = nullptr) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && later_name != nullptr) found = dlsym(RTLD_DEFAULT, later_name);
  if (found == nullptr) {
    const std::string text = std::string("this version of Python has no ") + name +
                             ", which recording needs; record with an older one";
    throw nb::import_error(text.c_str());
  }
  return reinterpret_cast<Function>(found);
}

bool interpreter_ends() {
  static const auto ask = of_python<int (*)()>("_Py_IsFinalizing", "Py_IsFinalizing");
  return ask() != 0;
}

bool is_function(nb::handle object) {
  return object.type().is(nb::module_::import_("types").attr("FunctionType"));
}

vectorcallfunc caller_of(PyObject* function) {
  return of_python<vectorcallfunc (*)(PyObject*)>("PyVectorcall_Function")(function);
}

void set_caller(PyObject* function, vectorcallfunc caller) {
  of_python<void (*)(PyObject*, vectorcallfunc)>("PyFunction_SetVectorcall")(function, caller);
}

#else

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

bool is_function(nb::handle object) { return PyFunction_Check(object.ptr()); }

vectorcallfunc caller_of(PyObject* function) {
  return reinterpret_cast<PyFunctionObject*>(function)->vectorcall;
}

void set_caller(PyObject* function, vectorcallfunc caller) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(object, caller);
#else
  object->vectorcall = caller;
#endif
}

#endif

// All of it is used with the interpreter's lock held.
class Ear {
 public:
  Ear(nb::handle function, nb::handle begin, nb::handle end)
      : function_(function), begin_(begin), end_(end) {
    if (!is_function(function)) throw nb::type_error("an Ear is put to a function");
    if (at(function.ptr()) != nullptr)
      throw nb::value_error("there is an Ear at this function already");
    key_ = function.ptr();
    interpreter_ends();  // can be asked, or this is where it fails
    original_ = caller_of(function.ptr());
    ordinary = original_;
    ears.push_back(this);
    let_call(&call);
  }
  ~Ear() {
    let_call(original_);
    std::erase(ears, this);
  }
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  // With a tap that hears of the subject's calls by itself, where it can.
  void add(uintptr_t subject, nb::object tap) { subjects_[subject] = std::move(tap); }
  void discard(uintptr_t subject) { subjects_.erase(subject); }
  bool hears_everything() const { return everything_; }
  void hear_everything(bool on) { everything_ = on; }
  bool hears_outermost() const { return outermost_; }
  void hear_outermost(bool on) { outermost_ = on; }

 private:
  void let_call(vectorcallfunc caller) {
    const nb::object alive = function_();
    if (alive.is_none()) return;
    set_caller(alive.ptr(), caller);
  }

  // Stands in for what calls the function. `args` are the subject and the other arguments.
  static PyObject* call(PyObject* function, PyObject* const* args, size_t flags,
                        PyObject* names) noexcept {
    Ear* put = at(function);
    if (put == nullptr) return ordinary(function, args, flags, names);
    const vectorcallfunc original = put->original_;
    if (PyVectorcall_NARGS(flags) == 0 || interpreter_ends())
      return original(function, args, flags, names);
    const bool outermost = put->outermost_ && !inside;
    const auto found = put->subjects_.find(reinterpret_cast<uintptr_t>(args[0]));
    const bool is_subject = found != put->subjects_.end();
    if (!outermost && !is_subject && !put->everything_)
      return original(function, args, flags, names);
    if (!outermost && is_subject && !found->second.is_none()) {
      const nb::object tap = found->second;  // the call may end the listening
      PyObject* output = nullptr;
      if (nb::inst_ptr<fused::Tap>(tap)->hear(function, args, flags, names, original, output))
        return output;
    }
    if (outermost) inside = true;
    PyObject* output = put->tell(function, args, flags, names, outermost);
    if (outermost) inside = false;
    return output;
  }

  PyObject* tell(PyObject* function, PyObject* const* args, size_t flags, PyObject* names,
                 bool outermost) noexcept {
    try {
      const nb::object begun = begin(args, flags, names, outermost);
      nb::object output = nb::steal(original_(function, args, flags, names));
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
      named[nb::handle(PyTuple_GetItem(names, static_cast<Py_ssize_t>(i)))] =
          nb::handle(args[count + i]);
    return begin_()(nb::handle(args[0]), nb::tuple(positional), named, outermost);
  }

  // The function has room for a pointer to `call`, and for nothing that would say whose.
  static Ear* at(const PyObject* function) {
    for (Ear* ear : ears)
      if (ear->key_ == function) return ear;
    return nullptr;
  }
  static inline std::vector<Ear*> ears;
  static inline vectorcallfunc ordinary = nullptr;  // what runs every function of Python
  static inline thread_local bool inside = false;   // a call that was heard of as outermost

  // Functions of modules that the Ear may belong to: neither is to keep the other.
  nb::weakref function_;
  nb::weakref begin_;
  nb::weakref end_;
  std::unordered_map<uintptr_t, nb::object> subjects_;
  const PyObject* key_ = nullptr;
  vectorcallfunc original_ = nullptr;
  bool outermost_ = false;
  bool everything_ = false;
};

}  // namespace

void bind_ear(nb::module_& module) {
  nb::class_<Ear>(module, "Ear")
      .def(nb::init<nb::handle, nb::handle, nb::handle>(), "function"_a, "begin"_a, "end"_a)
      .def("add", &Ear::add, "subject"_a, "tap"_a.none() = nb::none())
      .def("discard", &Ear::discard, "subject"_a)
      .def_prop_rw("everything", &Ear::hears_everything, &Ear::hear_everything)
      .def_prop_rw("outermost", &Ear::hears_outermost, &Ear::hear_outermost);
}

}  // namespace ait::python
