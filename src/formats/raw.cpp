#include "formats/raw.h"

#include <string>
#include <utility>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/single_tensor.h"

namespace ait::formats::raw {

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file,
                                         const RawLayout& layout) {
  const std::string path = file->path();
  const auto bytes = file->bytes();
  const size_t have = bytes.size();
  const size_t unit = size_bytes(layout.dtype);
  if (!layout.shape && have % unit != 0)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "its " << have << " bytes are not a whole number of " << name(layout.dtype)
                << " elements of " << unit << " bytes; check the type");
  Shape shape = layout.shape.value_or(Shape{static_cast<int64_t>(have / unit)});
  const auto elements = count_elements(shape);
  const auto need = elements ? checked_mul(*elements, unit) : std::nullopt;
  if (!need)
    return fail(Error(ErrorCode::kUsage, path)
                << "cannot have the shape " << shape_text(shape) << "; check the shape");
  if (have < *need)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "shape " << shape_text(shape) << " of " << name(layout.dtype) << " needs "
                << *need << " bytes but " << have << " are there; check shape and type");
  auto tensor = Tensor::contiguous(std::move(file), bytes, layout.dtype, std::move(shape));
  if (!tensor) return fail(tensor.error().set_path(path));
  tensor->set_byte_swapped(kLittleEndianIsForeign);
  std::string note;
  if (have > *need)
    note = std::to_string(have - *need) +
           " bytes follow those that the given shape needs and are ignored";
  return std::make_unique<SingleTensor>("raw", std::move(*tensor), std::move(note));
}

}  // namespace ait::formats::raw
