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

}  // namespace

nb::object exception_of(const Error& error) {
  const nb::object type = nb::module_::import_("ait_llm._errors").attr(class_name(error.code()));
  nb::object exception = type(decoded(error.text()));
  exception.attr("path") = error.path().empty() ? nb::none() : decoded(error.path());
  exception.attr("offset") = error.offset_bytes() == Error::kNoOffset
                                 ? nb::none()
                                 : nb::object(nb::int_(error.offset_bytes()));
  return exception;
}

nb::object decoded(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Raised& raised) {
      const nb::object exception = exception_of(raised.error);
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    }
  });
}

}  // namespace ait::python
