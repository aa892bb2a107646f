#include "convert/statistics.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "capture/ge_names.h"
#include "convert/extremes.h"
#include "formats/registry.h"
#include "formats/write.h"

namespace ait::convert {
namespace {

using formats::FileFormat;
using formats::NamedTensor;
using formats::TensorFile;

constexpr std::string_view kArray = ".npy";
constexpr std::string_view kArrayStatistics = "_min_max.npy";
constexpr std::string_view kGeStatistics = "_min_max.npz";
constexpr std::string_view kGeFormat = "GE dump";
// Beside those that capture::kind_of_ge_name knows.
constexpr std::array<std::string_view, 5> kOtherExtensions = {".pt", ".pth", ".safetensors",
                                                              ".rows", ".py"};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A name is durable when its folder is.
Result<void> sync_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  // Some network file systems have nothing to be done for folders, and say EINVAL.
  if (error != 0 && error != EINVAL)
    return fail(unwritable(folder, "write the folder to the disk", error));
  return {};
}

Result<Extremes> extremes_in(const TensorFile& file, size_t index, const std::string& path) {
  const auto tensor = file.load(index);
  if (!tensor) return fail(tensor.error());
  auto extremes = extremes_of(tensor->view());
  if (!extremes && !file.name(index).empty())
    return fail(Error(extremes.error().code(), path)
                << "tensor " << file.name(index) << " " << extremes.error().message());
  if (!extremes) extremes.error().set_path(path);
  return extremes;
}

Result<std::vector<NamedTensor>> ge_statistics(const TensorFile& file, const std::string& path) {
  std::vector<Extremes> inputs;
  std::vector<Extremes> outputs;
  for (size_t i = 0; i < file.size(); ++i) {
    const auto extremes = extremes_in(file, i, path);
    if (!extremes) return fail(extremes.error());
    (file.name(i).starts_with("input_") ? inputs : outputs).push_back(*extremes);
  }
  auto of_inputs = array_of(inputs);
  if (!of_inputs) return fail(of_inputs.error());
  auto of_outputs = array_of(outputs);
  if (!of_outputs) return fail(of_outputs.error());
  return std::vector<NamedTensor>{{"inputs", std::move(*of_inputs)},
                                  {"outputs", std::move(*of_outputs)}};
}

Result<std::vector<NamedTensor>> array_statistics(const TensorFile& file, const std::string& path) {
  const auto extremes = extremes_in(file, 0, path);
  if (!extremes) return fail(extremes.error());
  auto array = array_of(*extremes);
  if (!array) return fail(array.error());
  return std::vector<NamedTensor>{{"", std::move(*array)}};
}

}  // namespace

std::optional<std::string> statistics_path(const std::string& path) {
  const std::string_view name = name_of(path);
  if (name.starts_with('.') || name.ends_with(kArrayStatistics)) return std::nullopt;
  if (name.ends_with(kArray))
    return path.substr(0, path.size() - kArray.size()) + std::string(kArrayStatistics);
  for (const std::string_view extension : kOtherExtensions)
    if (name.ends_with(extension)) return std::nullopt;
  const capture::GeNameKind kind = capture::kind_of_ge_name(name);
  if (kind != capture::GeNameKind::kDump && kind != capture::GeNameKind::kHash) return std::nullopt;
  return path + std::string(kGeStatistics);
}

Result<void> write_statistics(const std::string& path, const std::string& target) {
  const auto file = formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  const bool is_array = target.ends_with(kArray);
  if ((*file)->format() != (is_array ? "npy" : kGeFormat))
    return fail(Error(ErrorCode::kUnsupported, path)
                << "is left as it is: it is no " << (is_array ? "npy file" : kGeFormat));
  const auto arrays = is_array ? array_statistics(**file, path) : ge_statistics(**file, path);
  if (!arrays) return fail(arrays.error());
  if (auto done = formats::write_tensor_file(
          target, *arrays, is_array ? FileFormat::kNpy : FileFormat::kNpz, {.sync = true});
      !done)
    return done;
  return sync_folder_of(target);
}

bool has_statistics(const std::string& target) {
  const auto file = formats::open_tensor_file(target);
  if (!file || (*file)->size() != (target.ends_with(kArray) ? 1U : 2U)) return false;
  for (size_t i = 0; i < (*file)->size(); ++i)
    if (!(*file)->load(i)) return false;
  return true;
}

}  // namespace ait::convert
