#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "formats/atb_bin.h"
#include "formats/atb_statistics.h"
#include "formats/ge_dump.h"
#include "formats/ge_statistics.h"
#include "formats/gguf.h"
#include "formats/msprobe_json.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_tensor.h"
#include "formats/polygraphy_json.h"
#include "formats/raw.h"
#include "formats/safetensors.h"
#include "formats/statistics_csv.h"
#include "formats/torch_legacy.h"
#include "formats/torch_zip.h"

namespace ait::formats {
namespace {

// The first sniffer that says yes decides: the more particular ones stand first.
constexpr std::array kFormats = {
    Format{"npy", npy::sniff, npy::open},
    Format{"torch", torch_zip::sniff, torch_zip::open},
    Format{"GE statistics", ge_statistics::sniff, ge_statistics::open, false},
    Format{"npz", npz::sniff, npz::open},
    Format{"safetensors", safetensors::sniff, safetensors::open},
    Format{"ATB .bin", atb_bin::sniff, atb_bin::open},
    Format{"statistics.csv", statistics_csv::sniff, statistics_csv::open, false},
    Format{"statistic.csv", atb_statistics::sniff, atb_statistics::open, false},
    Format{"msprobe dump.json", msprobe_json::sniff, msprobe_json::open, false},
    Format{"GGUF", gguf::sniff, gguf::open},
    Format{"Polygraphy JSON", polygraphy_json::sniff, polygraphy_json::open},
    Format{"ONNX tensor", onnx_tensor::sniff, onnx_tensor::open},
    Format{"GE dump", ge_dump::sniff, ge_dump::open},
    Format{"torch before 1.6", torch_legacy::sniff, torch_legacy::open},
};

constexpr size_t kNamesListed = 5;

template <typename T>
Result<T> with_path(Result<T> result, const std::string& path) {
  if (!result && result.error().path().empty()) result.error().set_path(path);
  return result;
}

// Names the file in every error of a reader that sees only a part of it.
class Named : public TensorFile {
 public:
  Named(std::unique_ptr<TensorFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  std::string_view format() const override { return file_->format(); }
  size_t size() const override { return file_->size(); }
  std::string name(size_t index) const override { return file_->name(index); }
  Result<Tensor> load(size_t index) const override { return with_path(file_->load(index), path_); }
  Result<Description> describe(size_t index) const override {
    return with_path(file_->describe(index), path_);
  }
  std::string note() const override { return file_->note(); }

 private:
  std::unique_ptr<TensorFile> file_;
  std::string path_;
};

Error unknown_format(const std::string& path) {
  Error error(ErrorCode::kUnsupported, path);
  error << "not a tensor file that ait knows (";
  bool first = true;
  for (const Format& format : kFormats)
    if (format.holds_data) error << (std::exchange(first, false) ? "" : ", ") << format.name;
  error << "); for bare bytes give their type, e.g. --dtype float16";
  return error;
}

Result<std::unique_ptr<TensorFile>> open_any(std::shared_ptr<const MappedFile> file,
                                             const std::optional<RawLayout>& raw) {
  if (raw) return raw::open(std::move(file), *raw);
  const auto bytes = file->bytes();
  if (bytes.empty())
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "is empty; the program that should have written it probably failed");
  const auto format = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const Format& candidate) { return candidate.sniff(bytes); });
  if (format == kFormats.end()) return fail(unknown_format(file->path()));
  return format->open(std::move(file));
}

std::string first_names(const TensorFile& file) {
  std::string list;
  for (size_t i = 0; i < std::min(file.size(), kNamesListed); ++i) {
    if (i > 0) list += ", ";
    list += printable(file.name(i));
  }
  if (file.size() > kNamesListed) list += ", …";
  return list;
}

}  // namespace

Result<Description> TensorFile::describe(size_t index) const {
  const auto tensor = load(index);
  if (!tensor) return fail(tensor.error());
  return Description{tensor->dtype(), tensor->shape(), true, std::nullopt};
}

Result<std::unique_ptr<TensorFile>> open_tensor_file(const std::string& path,
                                                     const std::optional<RawLayout>& raw,
                                                     const ReadBuffers* buffers) {
  auto mapped = MappedFile::open(path, buffers);
  if (!mapped) return fail(mapped.error());
  auto file = with_path(open_any(std::move(*mapped), raw), path);
  if (!file) return fail(file.error());
  return std::make_unique<Named>(std::move(*file), path);
}

Result<Tensor> load_single(const std::string& path, std::string_view name,
                           const std::optional<RawLayout>& raw) {
  const auto opened = open_tensor_file(path, raw);
  if (!opened) return fail(opened.error());
  const TensorFile& file = **opened;
  const auto usage = [&] { return Error(ErrorCode::kUsage, path); };
  if (file.size() == 0) return fail(usage() << "holds no tensor");
  if (!name.empty()) {
    for (size_t i = 0; i < file.size(); ++i)
      if (file.name(i) == name) return file.load(i);
    return fail(usage() << "holds no tensor named " << printable(name)
                        << (file.name(0).empty() ? "; its only tensor has no name"
                                                 : "; it holds " + first_names(file)));
  }
  if (file.size() > 1)
    return fail(usage() << "holds " << file.size()
                        << " tensors; name one of them: " << first_names(file));
  return file.load(0);
}

}  // namespace ait::formats
