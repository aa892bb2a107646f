// How an ait::Error becomes a Python exception of ait_llm._errors.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace ait::python {

// Carries an Error out of a bound function, to be turned into a Python exception at the boundary.
struct Raised {
  Error error;
};

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) throw Raised{std::move(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Text of outside origin as a str: bytes that are no UTF-8 become surrogates, as in Python's own
// paths.
nanobind::object decoded(const std::string& text);

// The exception that an Error is in Python, not raised.
nanobind::object exception_of(const Error& error);

void bind_errors(nanobind::module_& module);

}  // namespace ait::python
