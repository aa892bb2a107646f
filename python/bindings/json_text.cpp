#include "json_text.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

// Writes what json.dumps(value, indent=width, ensure_ascii=False) does.
class JsonText {
 public:
  explicit JsonText(size_t width) : width_(width) {}

  void add(nb::handle value, size_t depth) {
    PyObject* object = value.ptr();
    if (PyUnicode_Check(object)) return add_string(object);
    if (PyDict_Check(object)) return add_dict(object, depth);
    if (PyList_Check(object) || PyTuple_Check(object)) return add_list(value, depth);
    if (object == Py_None) return void(text_ += "null");
    if (PyBool_Check(object)) return void(text_ += object == Py_True ? "true" : "false");
    if (PyLong_Check(object)) return add_whole(value);
    if (!PyFloat_Check(object)) throw nb::type_error("neither text nor number, list nor dict");
    add_float(value);
  }

  const std::string& text() const { return text_; }

 private:
  // Of lists in lists: deeper than any model's modules, and than any recursion may go.
  static constexpr size_t kMaxDepth = 2000;

  void new_line(size_t depth) { text_.append(1, '\n').append(depth * width_, ' '); }

  void open(char bracket, size_t depth) {
    if (depth > kMaxDepth) throw nb::value_error("too deep");
    text_ += bracket;
  }

  void add_dict(PyObject* dict, size_t depth) {
    open('{', depth);
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t at = 0;
    bool first = true;
    while (PyDict_Next(dict, &at, &key, &value) != 0) {
      if (!PyUnicode_Check(key)) throw nb::type_error("a key must be text");
      if (!first) text_ += ',';
      first = false;
      new_line(depth + 1);
      add_string(key);
      text_ += ": ";
      add(value, depth + 1);
    }
    if (!first) new_line(depth);
    text_ += '}';
  }

  void add_list(nb::handle list, size_t depth) {
    open('[', depth);
    bool first = true;
    for (const nb::handle each : list) {
      if (!first) text_ += ',';
      first = false;
      new_line(depth + 1);
      add(each, depth + 1);
    }
    if (!first) new_line(depth);
    text_ += ']';
  }

  // Not its own text: an enumeration's is a name.
  void add_whole(nb::handle value) {
    const nb::object digits = nb::steal(PyNumber_ToBase(value.ptr(), 10));
    if (!digits.is_valid()) throw nb::python_error();
    text_ += nb::cast<std::string>(digits);
  }

  void add_float(nb::handle value) {
    std::string text = nb::cast<std::string>(nb::repr(value));
    if (text == "nan") text = "NaN";
    if (text == "inf") text = "Infinity";
    if (text == "-inf") text = "-Infinity";
    text_ += text;
  }

  void add_string(PyObject* string) {
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(string, &size); text != nullptr)
      return add_escaped({text, static_cast<size_t>(size)});
    // Bytes of a file's name that are no UTF-8.
    PyErr_Clear();
    const nb::object bytes =
        nb::steal(PyUnicode_AsEncodedString(string, "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) throw nb::python_error();
    const auto held = nb::cast<nb::bytes>(bytes);
    add_escaped({held.c_str(), held.size()});
  }

  void add_escaped(std::string_view text) {
    constexpr char kDigits[] = "0123456789abcdef";
    text_ += '"';
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      switch (c) {
        case '"':
        case '\\':
          text_ += '\\';
          text_ += c;
          break;
        case '\n':
          text_ += "\\n";
          break;
        case '\r':
          text_ += "\\r";
          break;
        case '\t':
          text_ += "\\t";
          break;
        case '\b':
          text_ += "\\b";
          break;
        case '\f':
          text_ += "\\f";
          break;
        default:
          if (byte >= 0x20) {
            text_ += c;
          } else {
            text_ += "\\u00";
            text_ += kDigits[byte >> 4];
            text_ += kDigits[byte & 15];
          }
      }
    }
    text_ += '"';
  }

  const size_t width_;
  std::string text_;
};

}  // namespace

void bind_json_text(nb::module_& module) {
  module.def(
      "json_text",
      [](nb::handle value, size_t width) {
        JsonText json(width);
        json.add(value, 0);
        return nb::bytes(json.text().data(), json.text().size());
      },
      "value"_a.none(), "width"_a);
}

}  // namespace ait::python
