#include "opcheck/save.h"

#include "base/folders.h"
#include "base/output_file.h"
#include "formats/write.h"
#include "record/dump_names.h"

namespace ait::opcheck {
namespace {

constexpr mode_t kFolderMode = 0750;

Result<void> write(const std::string& folder, const std::string& name, const Tensor& tensor,
                   bool fractal = false) {
  std::vector<std::string> made;
  if (const auto obstacle = make_folders(folder, kFolderMode, made))
    return fail(unwritable(obstacle->path, "make the folder", obstacle->error_number));
  const std::string path = folder + "/" + name;
  const formats::NamedTensor named{"", tensor, fractal};
  return formats::write_tensor_file(path, {&named, 1}, *formats::file_format_of(path));
}

template <typename T>
Result<void> write_numbers(const std::string& folder, const std::string& name, DType dtype,
                           const std::vector<T>& values, Shape shape) {
  const std::shared_ptr<const void> borrowed(values.data(), [](const void*) {});
  const auto tensor =
      Tensor::contiguous(borrowed, std::as_bytes(std::span(values)), dtype, std::move(shape));
  if (!tensor) return fail(tensor.error());
  return write(folder, name, *tensor);
}

Result<void> copy(const std::string& folder, const char* name, const TensorPlaces& places) {
  const auto tensors = load(places, Precision::kAsRecorded);
  if (!tensors) return fail(tensors.error());
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    const golden::Given& given = *(*tensors)[i];
    if (auto done = write(folder + (places[i]->before ? "/before" : "/after"),
                          name + std::to_string(i) + ".bin", given.tensor, given.fractal);
        !done)
      return done;
  }
  return {};
}

Result<void> write_param(const std::string& folder, const std::string& param) {
  if (param.empty()) return {};
  auto file = OutputFile::create(folder, std::string(record::kParamFile));
  if (!file) return fail(file.error());
  if (auto done = file->write(param); !done) return done;
  auto path = file->finish_as(folder + "/" + std::string(record::kParamFile));
  if (!path) return fail(path.error());
  return {};
}

Result<void> write_golden(const std::string& folder, const golden::Output& output, size_t index,
                          DType dtype) {
  const std::string number = std::to_string(index) + ".npy";
  Shape shape = output.shape;
  if (output.part)
    shape = {static_cast<int64_t>(output.part->starts.size()),
             static_cast<int64_t>(output.part->stretch_elements)};
  if (auto done =
          write_numbers(folder, "outtensor" + number, DType::kFloat64, output.values, shape);
      !done)
    return done;
  std::vector<double> bounds(output.values.size());
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = golden::bound(output, i, dtype);
  if (auto done = write_numbers(folder, "bound" + number, DType::kFloat64, bounds, shape); !done)
    return done;
  if (!output.part) return {};
  const auto& starts = output.part->starts;
  return write_numbers(folder, "starts" + number, DType::kUInt64, starts,
                       {static_cast<int64_t>(starts.size())});
}

}  // namespace

Result<std::string> save_error_data(const Case& each, const golden::Expected& expected,
                                    const Actual& actual, const std::string& folder) {
  const auto place = [&](const std::string& rank) {
    return folder + "/tensors/" + rank + "/" + each.round + "/" + each.name;
  };
  std::string own = place(each.rank_folder);
  TensorPlaces changed = each.inputs_after;
  for (size_t i = 0; i < changed.size(); ++i)
    if (i < each.inputs.size() && each.inputs[i] && !each.inputs[i]->before) changed[i].reset();
  for (const auto& [name, places] :
       {std::pair("intensor", &each.inputs), std::pair("intensor", &std::as_const(changed)),
        std::pair("outtensor", &each.outputs)})
    if (auto done = copy(own, name, *places); !done) return fail(done.error());
  if (auto done = write_param(own, each.param); !done) return fail(done.error());
  if (is_done_together(each.type))
    for (size_t rank = 0; rank < each.ranks.size(); ++rank) {
      const std::string other = place(each.rank_folders[rank]);
      if (auto done = copy(other, "intensor", each.ranks[rank]); !done) return fail(done.error());
      if (auto done = write_param(other, each.rank_params[rank]); !done) return fail(done.error());
    }
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const auto tensor = tensor_of(each, actual, expected.outputs[i], i, Precision::kAsRecorded);
    if (!tensor) return fail(tensor.error());
    const DType dtype = *tensor ? (*tensor)->dtype() : DType::kFloat32;
    if (auto done = write_golden(own + "/golden", expected.outputs[i], i, dtype); !done)
      return fail(done.error());
    if (!actual.again || !*tensor) continue;
    if (auto done = write(own + "/rerun", "outtensor" + std::to_string(i) + ".bin", **tensor);
        !done)
      return fail(done.error());
  }
  return own;
}

}  // namespace ait::opcheck
