#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/mapped_file.h"

namespace ait {
namespace {

constexpr size_t kGatherBlockBytes = size_t{1} << 20;

// Reverses the bytes of each `unit`-byte word: complex numbers are two words.
void swap_words(std::byte* data, size_t bytes, size_t unit) {
  for (size_t at = 0; at < bytes; at += unit) std::reverse(data + at, data + at + unit);
}

template <size_t kBytes>
void gather_sized(const TensorView& view, size_t first, size_t count, std::byte* out) {
  const size_t rank = view.shape.size();
  if (rank == 0) {
    std::memcpy(out, view.data, kBytes);
    return;
  }
  // Split the flat index into coordinates once, then step like an odometer, innermost dimension in
  // a tight loop.
  std::vector<int64_t> index(rank);
  size_t rest = first;
  for (size_t d = rank; d-- > 0;) {
    const auto size = static_cast<size_t>(view.shape[d]);
    index[d] = static_cast<int64_t>(rest % size);
    rest /= size;
  }
  const size_t last = rank - 1;
  const int64_t inner_size = view.shape[last];
  const int64_t inner_step = view.strides[last] * static_cast<int64_t>(kBytes);
  while (count > 0) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += index[d] * view.strides[d];
    const std::byte* in = view.data + offset * static_cast<int64_t>(kBytes);
    const size_t run = std::min(count, static_cast<size_t>(inner_size - index[last]));
    for (size_t i = 0; i < run; ++i) {
      std::memcpy(out, in, kBytes);
      in += inner_step;
      out += kBytes;
    }
    count -= run;
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      if (++index[d] < view.shape[d]) break;
      index[d] = 0;
    }
  }
}

Error impossible_shape(std::span<const int64_t> shape) {
  return Error(ErrorCode::kCorrupt)
         << "the shape " << shape_text(shape.first(std::min<size_t>(shape.size(), 8)))
         << " is impossible; the file is damaged";
}

}  // namespace

std::optional<size_t> count_elements(std::span<const int64_t> shape) {
  if (shape.size() > kMaxRank) return std::nullopt;
  // A zero dimension empties the tensor, but the others must still be sane: numpy rejects them too.
  uint64_t product = 1;
  bool empty = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
      continue;
    }
    const auto next = checked_mul(product, static_cast<uint64_t>(dimension));
    if (!next || *next > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    product = *next;
  }
  return empty ? 0 : product;
}

Strides row_major_strides(std::span<const int64_t> shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

bool TensorView::plain() const {
  if (byte_swapped && size_bytes(dtype) > 1) return false;
  if (elements == 0) return true;
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

void gather(const TensorView& view, size_t first, size_t count, std::byte* out) {
  if (count == 0) return;
  switch (size_bytes(view.dtype)) {
    case 1:
      gather_sized<1>(view, first, count, out);
      break;
    case 2:
      gather_sized<2>(view, first, count, out);
      break;
    case 4:
      gather_sized<4>(view, first, count, out);
      break;
    case 8:
      gather_sized<8>(view, first, count, out);
      break;
    default:
      gather_sized<16>(view, first, count, out);
      break;
  }
  if (view.byte_swapped) {
    const size_t size = size_bytes(view.dtype);
    const size_t word = info(view.dtype).kind == DTypeKind::kComplex ? size / 2 : size;
    swap_words(out, count * size, word);
  }
}

Result<Tensor> Tensor::contiguous(std::shared_ptr<const void> owner,
                                  std::span<const std::byte> storage, DType dtype, Shape shape) {
  if (!count_elements(shape)) return fail(impossible_shape(shape));
  Strides strides = row_major_strides(shape);
  return strided(std::move(owner), storage, dtype, std::move(shape), std::move(strides), 0);
}

Result<Tensor> Tensor::strided(std::shared_ptr<const void> owner,
                               std::span<const std::byte> storage, DType dtype, Shape shape,
                               Strides strides, uint64_t offset_elements) {
  const auto elements = count_elements(shape);
  if (!elements || strides.size() != shape.size()) return fail(impossible_shape(shape));
  // The highest element reached, counted from the start of the storage.
  std::optional<uint64_t> reach = offset_elements;
  for (size_t d = 0; d < shape.size() && reach && *elements > 0; ++d) {
    if (strides[d] < 0) return fail(impossible_shape(shape));
    const auto step =
        checked_mul(static_cast<uint64_t>(shape[d] - 1), static_cast<uint64_t>(strides[d]));
    reach = step ? checked_add(*reach, *step) : std::nullopt;
  }
  const size_t unit = size_bytes(dtype);
  if (!checked_mul(*elements, unit)) return fail(impossible_shape(shape));
  const size_t available = storage.size() / unit;
  if (*elements > 0 && (!reach || *reach >= available)) {
    return fail(Error(ErrorCode::kCorrupt)
                << "a tensor of shape " << shape_text(shape) << " and type " << name(dtype)
                << " needs " << (reach ? std::to_string(*reach + 1) : std::string("too many"))
                << " elements but " << available << " are there; the file was probably cut short");
  }
  Tensor tensor;
  tensor.owner_ = std::move(owner);
  tensor.data_ = *elements > 0 ? storage.data() + offset_elements * unit : storage.data();
  tensor.elements_ = *elements;
  tensor.shape_ = std::move(shape);
  tensor.strides_ = std::move(strides);
  tensor.dtype_ = dtype;
  return tensor;
}

Result<Tensor> gathered(const TensorView& view,
                        const std::function<void(std::span<std::byte> stretch)>& change) {
  const size_t unit = size_bytes(view.dtype);
  const size_t block = kGatherBlockBytes / unit;
  auto file = MappedFile::temporary(view.bytes(), [&](std::span<std::byte> out) -> Result<void> {
    for (size_t first = 0; first < view.elements; first += block) {
      const size_t count = std::min(block, view.elements - first);
      const auto stretch = out.subspan(first * unit, count * unit);
      gather(view, first, count, stretch.data());
      if (change) change(stretch);
    }
    return {};
  });
  if (!file) return fail(file.error());
  return Tensor::contiguous(*file, (*file)->bytes(), view.dtype,
                            Shape(view.shape.begin(), view.shape.end()));
}

Result<Tensor> in_row_major_order(const Tensor& tensor) {
  const TensorView view = tensor.view();
  return view.plain() ? tensor : gathered(view);
}

}  // namespace ait
