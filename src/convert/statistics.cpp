#include "convert/statistics.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "capture/converted.h"
#include "capture/fx_tree.h"
#include "capture/ge_names.h"
#include "convert/table.h"
#include "formats/registry.h"
#include "metrics/compare.h"
#include "metrics/extremes.h"

namespace ait::convert {
namespace {

using formats::FileFormat;
using formats::NamedTensor;
using formats::TensorFile;
using metrics::Extremes;

constexpr std::string_view kArray = ".npy";
constexpr std::string_view kArrayFormat = "npy";
constexpr std::string_view kGeFormat = "GE dump";
// Beside those that capture::kind_of_ge_name knows.
constexpr std::array<std::string_view, 5> kOtherExtensions = {".pt", ".pth", ".safetensors",
                                                              ".rows", ".py"};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "tensor input_0 has elements of …"
Error of_tensor(const TensorFile& file, size_t index, const std::string& path, const Error& error) {
  if (file.name(index).empty()) return Error(error).set_path(path);
  return Error(error.code(), path) << "tensor " << file.name(index) << " " << error.message();
}

Result<Extremes> extremes_in(const TensorFile& file, size_t index, const std::string& path) {
  const auto tensor = file.load(index);
  if (!tensor) return fail(tensor.error());
  auto extremes = metrics::extremes_of(tensor->view());
  if (!extremes) return fail(of_tensor(file, index, path, extremes.error()));
  return extremes;
}

Result<std::vector<NamedTensor>> ge_extremes(const TensorFile& file, const std::string& path) {
  std::vector<Extremes> inputs;
  std::vector<Extremes> outputs;
  for (size_t i = 0; i < file.size(); ++i) {
    const auto extremes = extremes_in(file, i, path);
    if (!extremes) return fail(extremes.error());
    (file.name(i).starts_with("input_") ? inputs : outputs).push_back(*extremes);
  }
  auto of_inputs = metrics::array_of(inputs);
  if (!of_inputs) return fail(of_inputs.error());
  auto of_outputs = metrics::array_of(outputs);
  if (!of_outputs) return fail(of_outputs.error());
  return std::vector<NamedTensor>{{"inputs", std::move(*of_inputs)},
                                  {"outputs", std::move(*of_outputs)}};
}

Result<std::vector<NamedTensor>> array_extremes(const TensorFile& file, const std::string& path) {
  const auto extremes = extremes_in(file, 0, path);
  if (!extremes) return fail(extremes.error());
  auto array = metrics::array_of(*extremes);
  if (!array) return fail(array.error());
  return std::vector<NamedTensor>{{"", std::move(*array)}};
}

// Of a dump, as files call them.
struct Operation {
  std::string name;
  std::string type;
};

Operation operation_of(std::string_view file, bool is_array) {
  if (!is_array) {
    const auto name = capture::parse_ge_file_name(file);
    return name ? Operation{name->operation, name->type} : Operation{std::string(file), ""};
  }
  const auto name = capture::parse_fx_file_name(file);
  return name ? Operation{name->node, name->target} : Operation{std::string(file), ""};
}

Result<std::string> table_of(const TensorFile& file, const std::string& path, bool is_array) {
  const Operation operation = operation_of(name_of(path), is_array);
  std::string out(kTableHeader);
  for (size_t i = 0; i < file.size(); ++i) {
    const auto tensor = file.load(i);
    if (!tensor) return fail(tensor.error());
    if (info(tensor->dtype()).kind == DTypeKind::kPacked)
      return fail(of_tensor(file, i, path,
                            Error(ErrorCode::kUnsupported)
                                << "has elements of type " << name(tensor->dtype())
                                << ", which are not measured"));
    std::optional<formats::Description::Statistics> statistics;
    if (tensor->elements() > 0) {
      const metrics::Statistics found = metrics::statistics(tensor->view());
      statistics = {found.maximum, found.minimum, found.mean, found.l2_norm};
    }
    out += table_line(operation.name, operation.type, is_array ? "output_0" : file.name(i),
                      tensor->dtype(), tensor->shape(), statistics);
  }
  return out;
}

}  // namespace

std::optional<std::string> statistics_path(const std::string& path, StatisticsKind kind) {
  const std::string_view name = name_of(path);
  const bool is_array = name.ends_with(kArray);
  if (name.starts_with('.') || capture::stem_of_statistics(name)) return std::nullopt;
  for (const std::string_view extension : kOtherExtensions)
    if (name.ends_with(extension)) return std::nullopt;
  const capture::GeNameKind ge = capture::kind_of_ge_name(name);
  if (!is_array && ge != capture::GeNameKind::kDump && ge != capture::GeNameKind::kHash)
    return std::nullopt;
  const std::string_view end = kind == StatisticsKind::kTable ? capture::kStatisticsTable
                               : is_array                     ? capture::kArrayExtremes
                                                              : capture::kGeExtremes;
  return path.substr(0, path.size() - (is_array ? kArray.size() : 0)) + std::string(end);
}

Result<Statistics> Statistics::measure(const std::string& path, const std::string& target) {
  const auto file = formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  const bool is_array = path.ends_with(kArray);
  if ((*file)->format() != (is_array ? kArrayFormat : kGeFormat))
    return fail(Error(ErrorCode::kUnsupported, path)
                << "is not converted: it is not " << (is_array ? "an npy file" : "a GE dump"));
  Statistics out;
  if (target.ends_with(capture::kStatisticsTable)) {
    auto table = table_of(**file, path, is_array);
    if (!table) return fail(table.error());
    out.content_ = std::move(*table);
  } else {
    auto arrays = is_array ? array_extremes(**file, path) : ge_extremes(**file, path);
    if (!arrays) return fail(arrays.error());
    out.content_ = std::move(*arrays);
  }
  return out;
}

Result<void> Statistics::write(const std::string& target) const {
  constexpr record::WriteOptions kDurably = {.sync = true};
  if (const auto* arrays = std::get_if<std::vector<NamedTensor>>(&content_))
    return formats::write_tensor_file(
        target, *arrays, target.ends_with(kArray) ? FileFormat::kNpy : FileFormat::kNpz, kDurably);
  std::string table = std::get<std::string>(content_);
  const iovec part = {table.data(), table.size()};
  if (const auto status = record::write_file(target.c_str(), &part, 1, kDurably); !status.ok())
    return fail(unwritable(target, status.step, status.error_number));
  return {};
}

Result<void> sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  // Some network file systems have nothing to be done for folders, and say EINVAL.
  if (error != 0 && error != EINVAL)
    return fail(unwritable(folder, "write the folder to the disk", error));
  return {};
}

bool has_statistics(const std::string& target) {
  const auto file = formats::open_tensor_file(target);
  if (!file) return false;
  if (target.ends_with(capture::kGeExtremes)) return (*file)->format() == "GE statistics";
  if (target.ends_with(capture::kStatisticsTable))
    return (*file)->format() == "statistics" && (*file)->note().empty();
  return (*file)->load(0).has_value();
}

}  // namespace ait::convert
