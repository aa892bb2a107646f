#include "formats/write.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/atb_bin.h"
#include "record/atb_bin_encoder.h"
#include "record/file_image.h"
#include "record/npy_encoder.h"
#include "record/npz_encoder.h"
#include "record/safetensors_encoder.h"
#include "record/torch_zip_encoder.h"

namespace ait::formats {
namespace {

using record::ElementType;
using record::EncodeResult;

// The two lists run in step, so that a cast maps one to the other.
#define AIT_SAME(name) \
  static_assert(static_cast<int>(DType::name) == static_cast<int>(ElementType::name))
AIT_SAME(kBool);
AIT_SAME(kInt8);
AIT_SAME(kUInt8);
AIT_SAME(kInt16);
AIT_SAME(kUInt16);
AIT_SAME(kInt32);
AIT_SAME(kUInt32);
AIT_SAME(kInt64);
AIT_SAME(kUInt64);
AIT_SAME(kFloat16);
AIT_SAME(kBFloat16);
AIT_SAME(kFloat32);
AIT_SAME(kFloat64);
AIT_SAME(kFloat8E4M3FN);
AIT_SAME(kFloat8E5M2);
AIT_SAME(kFloat8E4M3FNUZ);
AIT_SAME(kFloat8E5M2FNUZ);
AIT_SAME(kFloat8E8M0FNU);
AIT_SAME(kComplex32);
AIT_SAME(kComplex64);
AIT_SAME(kComplex128);
AIT_SAME(kInt4Packed);
AIT_SAME(kFloat4Packed);
#undef AIT_SAME
static_assert(kDTypeCount == static_cast<size_t>(ElementType::kFloat4Packed) + 1);

constexpr std::string_view kNamelessInSafetensors = "tensor";
constexpr std::string_view kNamelessInNpz = "arr_0";  // numpy's word

std::string_view format_name(FileFormat format) {
  switch (format) {
    case FileFormat::kAtbBin:
      return "ATB .bin";
    case FileFormat::kNpy:
      return "npy";
    case FileFormat::kNpz:
      return "npz";
    case FileFormat::kTorch:
      return "torch";
    case FileFormat::kSafetensors:
      return "safetensors";
  }
  return "";
}

record::TensorImage image_of(const Tensor& tensor) {
  const TensorView view = tensor.view();
  return {static_cast<ElementType>(view.dtype), view.shape.data(), view.shape.size(), view.data,
          view.bytes()};
}

EncodeResult encode(std::span<const record::NamedImage> images, FileFormat format, bool fractal,
                    record::FileImage& file) {
  switch (format) {
    case FileFormat::kAtbBin:
      return record::encode_atb_bin(
          images[0].image, file,
          fractal ? static_cast<int>(atb_bin::kFormatFractalNz) : record::kAtbFormatNd);
    case FileFormat::kNpy:
      return record::encode_npy(images[0].image, file);
    case FileFormat::kNpz:
      return record::encode_npz(images.data(), images.size(), file);
    case FileFormat::kSafetensors:
      return record::encode_safetensors(images.data(), images.size(), file);
    case FileFormat::kTorch:
      if (images.size() == 1 && images[0].name_bytes == 0)
        return record::encode_torch(images[0].image, file);
      return record::encode_torch_dict(images.data(), images.size(), file);
  }
  return EncodeResult::kBadImage;
}

ErrorCode code_of(EncodeResult result) {
  switch (result) {
    case EncodeResult::kUnsupportedType:
    case EncodeResult::kTooManyDimensions:
      return ErrorCode::kUnsupported;
    case EncodeResult::kNoMemory:
      return ErrorCode::kUnwritable;
    default:
      return ErrorCode::kUsage;
  }
}

// Which of the tensors the format refuses, found by encoding each alone.
Error encoding_error(const std::string& path, std::span<const record::NamedImage> images,
                     FileFormat format, EncodeResult result) {
  Error error(code_of(result), path);
  for (const record::NamedImage& named : images) {
    record::FileImage alone;
    if (encode({&named, 1}, format, false, alone) != result) continue;
    if (named.name_bytes > 0)
      error << "tensor " << printable({named.name, named.name_bytes}) << " ";
    error << "(" << name(static_cast<DType>(named.image.type)) << ", "
          << shape_text({named.image.dims, named.image.rank}) << ") ";
    break;
  }
  error << "cannot be written as " << format_name(format) << ": " << record::describe(result);
  if (result == EncodeResult::kUnsupportedType && format != FileFormat::kTorch)
    error << "; choose another format, e.g. a name ending in .pt";
  return error;
}

}  // namespace

std::optional<FileFormat> file_format_of(std::string_view path) {
  if (path.ends_with(".bin")) return FileFormat::kAtbBin;
  if (path.ends_with(".npy")) return FileFormat::kNpy;
  if (path.ends_with(".npz")) return FileFormat::kNpz;
  if (path.ends_with(".pt") || path.ends_with(".pth")) return FileFormat::kTorch;
  if (path.ends_with(".safetensors")) return FileFormat::kSafetensors;
  return std::nullopt;
}

Result<void> write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                               FileFormat format, const record::WriteOptions& options) {
  const bool holds_one = format == FileFormat::kAtbBin || format == FileFormat::kNpy;
  if (holds_one && tensors.size() != 1)
    return fail(Error(ErrorCode::kUsage, path)
                << "a file of the format " << format_name(format) << " holds one tensor, not "
                << tensors.size() << "; choose a name ending in .pt or .safetensors");

  std::vector<Tensor> ordered;
  std::vector<record::NamedImage> images;
  ordered.reserve(tensors.size());  // images point into it
  images.reserve(tensors.size());
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    std::string_view name = named.name;
    if (name.empty() && format == FileFormat::kSafetensors) name = kNamelessInSafetensors;
    if (name.empty() && format == FileFormat::kNpz) name = kNamelessInNpz;
    if (!names.insert(name).second)
      return fail(Error(ErrorCode::kUsage, path)
                  << "two tensors are named \"" << printable(name) << "\"; give each its own name");
    auto tensor = in_row_major_order(named.tensor);
    if (!tensor) return fail(tensor.error());
    ordered.push_back(*std::move(tensor));
    images.push_back({name.data(), name.size(), image_of(ordered.back())});
  }

  record::FileImage file;
  const bool fractal = holds_one && tensors[0].fractal;
  if (const EncodeResult result = encode(images, format, fractal, file);
      result != EncodeResult::kOk)
    return fail(encoding_error(path, images, format, result));
  if (path.find('\0') != std::string::npos)
    return fail(Error(ErrorCode::kUsage, path) << "the path holds a zero byte");
  if (const record::WriteStatus status = file.write(path.c_str(), options); !status.ok())
    return fail(unwritable(path, status.step, status.error_number)
                << "; nothing was written, choose another place or make room");
  return {};
}

}  // namespace ait::formats
