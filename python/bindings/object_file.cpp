#include "object_file.h"

#include <nanobind/stl/unique_ptr.h>

#include <cerrno>
#include <memory>
#include <string>

#include "errors.h"
#include "record/object_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

// Remembers its path, which messages name.
class ObjectFile {
 public:
  // Nothing where the name is taken.
  static std::unique_ptr<ObjectFile> create(const nb::bytes& path) {
    auto file = std::make_unique<ObjectFile>(std::string(path.c_str(), path.size()));
    const record::WriteStatus status = file->file_.create(file->path_.c_str());
    if (status.error_number == EEXIST) return nullptr;
    file->check(status);
    return file;
  }

  explicit ObjectFile(std::string path) : path_(std::move(path)) {}

  void add(const nb::bytes& member) { check(file_.add(member.c_str(), member.size())); }

 private:
  void check(const record::WriteStatus& status) const {
    if (!status.ok()) throw Raised{unwritable(path_, status.step, status.error_number)};
  }

  std::string path_;
  record::ObjectFile file_;
};

}  // namespace

void bind_object_file(nb::module_& module) {
  nb::class_<ObjectFile>(module, "ObjectFile")
      .def_static("create", &ObjectFile::create, "path"_a)
      .def("add", &ObjectFile::add, "member"_a);
}

}  // namespace ait::python
