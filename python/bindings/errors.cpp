#include "errors.h"

#include <exception>

namespace nb = nanobind;

namespace ait::python {
namespace {

const char* class_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return "NotFoundError";
    case ErrorCode::kUnwritable:
      return "WriteError";
    case ErrorCode::kCorrupt:
      return "CorruptError";
    case ErrorCode::kUnsupported:
      return "UnsupportedError";
    case ErrorCode::kRefused:
      return "RefusedError";
    case ErrorCode::kUnreadable:
    case ErrorCode::kUsage:
    case ErrorCode::kInterrupted:
      return "AitError";
  }
  return "AitError";
}

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("ait_llm._errors").attr(class_name(error.code()));
  const nb::object exception = type(decoded(error.text()));
  exception.attr("path") = error.path().empty() ? nb::none() : decoded(error.path());
  exception.attr("offset") = error.offset_bytes() == Error::kNoOffset
                                 ? nb::none()
                                 : nb::object(nb::int_(error.offset_bytes()));
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

nb::object decoded(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Raised& raised) {
      raise(raised.error);
    }
  });
}

}  // namespace ait::python
