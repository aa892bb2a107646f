// Hears of the calls of one module without Python, where only statistics are wanted.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fused/recording.h"

namespace ait::python::fused {

class Tap {
 public:
  // `quiet` are functions that return None, and flags (dict, key) that are false, unless torch traces or compiles just now.
  Tap(nanobind::object recording, nanobind::object module, Subject subject,
      nanobind::list functions, nanobind::list flags);

  // Makes the call, and notes what goes in and comes out. False if Python has to hear of it: the thread is in no round,
  // or torch looks at the model just now. `output` is null if the call raised something.
  bool hear(PyObject* function, PyObject* const* args, size_t flags, PyObject* names,
            vectorcallfunc original, PyObject*& output) noexcept;

 private:
  bool is_quiet() const;

  nanobind::object recording_;
  nanobind::object module_;  // a weak reference
  std::shared_ptr<const Subject> subject_;
  std::vector<nanobind::object> functions_;
  std::vector<std::pair<nanobind::object, nanobind::object>> flags_;
};

void bind_fused(nanobind::module_& module);

}  // namespace ait::python::fused
