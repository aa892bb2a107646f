#include "formats/ge_order.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace ait::formats::ge_dump {
namespace {

constexpr size_t kImageRank = 4;
constexpr size_t kVolumeRank = 5;

// A logical axis: where its indices lead among the stored elements.
struct Axis {
  int64_t size;  // logical: less than what is stored where the last block is filled up
  int64_t stride;
  int64_t inner = 0;  // 0: one stride does
  int64_t outer_stride = 0;

  bool has_one_stride() const {
    return inner == 0 || size <= inner || outer_stride == inner * stride;
  }
};
using Axes = std::vector<Axis>;

// Whether `size` is what blocks hold, all of them but a part of the last.
bool fills(int64_t size, int64_t blocks, int64_t block) {
  return size <= blocks * block && size > (blocks - 1) * block;
}

// Of images and filters: which logical axes there are, before their order is known.
struct Image {
  Axis n;
  Axis c;
  Axis d;
  Axis h;
  Axis w;
};

// In blocks, an axis of which only the number of blocks is known takes its size from the logical
// shape.
std::optional<Axis> sized(Axis axis, int64_t size) {
  if (axis.inner == 0) return size == axis.size ? std::optional(axis) : std::nullopt;
  if (!fills(size, axis.size / axis.inner, axis.inner)) return std::nullopt;
  axis.size = size;
  return axis;
}

std::optional<Axes> in_order(std::initializer_list<Axis> order, const Shape& logical) {
  Axes out;
  size_t at = 0;
  for (const Axis& axis : order) {
    const auto fitted = sized(axis, logical[at++]);
    if (!fitted) return std::nullopt;
    out.push_back(*fitted);
  }
  return out;
}

// NCHW before NHWC before HWCN, whichever the logical shape is.
std::optional<Axes> order_of_image(const Image& image, const Shape& logical) {
  if (auto nchw = in_order({image.n, image.c, image.h, image.w}, logical)) return nchw;
  if (auto nhwc = in_order({image.n, image.h, image.w, image.c}, logical)) return nhwc;
  return in_order({image.h, image.w, image.c, image.n}, logical);
}

std::optional<Axes> axes_of_nc1hwc0(const Shape& s, const Shape& logical) {
  if (s.size() != 5) return std::nullopt;
  const int64_t c1 = s[1], h = s[2], w = s[3], c0 = s[4];
  Image image{};
  image.n = {s[0], c1 * h * w * c0};
  image.c = {c1 * c0, 1, c0, h * w * c0};
  image.h = {h, w * c0};
  image.w = {w, c0};
  return order_of_image(image, logical);
}

std::optional<Axes> axes_of_fractal_z(const Shape& s, const Shape& logical) {
  if (s.size() != 4) return std::nullopt;
  const int64_t no = s[1], ni = s[2], c0 = s[3];
  // Height and width are known from the logical shape alone, in each of its orders.
  const auto try_order = [&](size_t h_at, size_t w_at, auto order) -> std::optional<Axes> {
    const int64_t h = logical[h_at];
    const int64_t w = logical[w_at];
    const auto area = count_elements(std::array<int64_t, 2>{h, w});
    if (!area || *area == 0 || s[0] % static_cast<int64_t>(*area) != 0) return std::nullopt;
    const int64_t c1 = s[0] / static_cast<int64_t>(*area);
    Image image{};
    image.n = {no * ni, c0, ni, ni * c0};
    image.c = {c1 * c0, 1, c0, h * w * no * ni * c0};
    image.h = {h, w * no * ni * c0};
    image.w = {w, no * ni * c0};
    return order(image);
  };
  if (auto nchw =
          try_order(2, 3, [&](const Image& i) { return in_order({i.n, i.c, i.h, i.w}, logical); }))
    return nchw;
  if (auto nhwc =
          try_order(1, 2, [&](const Image& i) { return in_order({i.n, i.h, i.w, i.c}, logical); }))
    return nhwc;
  return try_order(0, 1, [&](const Image& i) { return in_order({i.h, i.w, i.c, i.n}, logical); });
}

std::optional<Axes> axes_of_ndc1hwc0(const Shape& s, const Shape& logical) {
  if (s.size() != 6) return std::nullopt;
  const int64_t d = s[1], c1 = s[2], h = s[3], w = s[4], c0 = s[5];
  Image image{};
  image.n = {s[0], d * c1 * h * w * c0};
  image.c = {c1 * c0, 1, c0, h * w * c0};
  image.d = {d, c1 * h * w * c0};
  image.h = {h, w * c0};
  image.w = {w, c0};
  if (auto ncdhw = in_order({image.n, image.c, image.d, image.h, image.w}, logical)) return ncdhw;
  return in_order({image.n, image.d, image.h, image.w, image.c}, logical);
}

std::optional<Axes> axes_of_nhwc(const Shape& s, const Shape& logical) {
  if (s.size() != 4) return std::nullopt;
  Image image{};
  image.n = {s[0], s[1] * s[2] * s[3]};
  image.h = {s[1], s[2] * s[3]};
  image.w = {s[2], s[3]};
  image.c = {s[3], 1};
  return order_of_image(image, logical);
}

std::optional<Axes> axes_of_hwcn(const Shape& s, const Shape& logical) {
  if (s.size() != 4) return std::nullopt;
  Image image{};
  image.h = {s[0], s[1] * s[2] * s[3]};
  image.w = {s[1], s[2] * s[3]};
  image.c = {s[2], s[3]};
  image.n = {s[3], 1};
  return order_of_image(image, logical);
}

// The axes of an image whose logical shape may have lost, or gained, dimensions of one.
std::optional<Axes> image_axes(std::optional<Axes> (*axes_of)(const Shape&, const Shape&),
                               size_t rank, const Shape& stored, const Shape& logical) {
  if (logical.size() > rank) return std::nullopt;
  Shape padded = logical;
  padded.insert(padded.begin(), rank - logical.size(), 1);
  auto axes = axes_of(stored, padded);
  if (axes) {
    axes->erase(axes->begin(), axes->begin() + static_cast<ptrdiff_t>(rank - logical.size()));
    return axes;
  }
  padded = logical;
  padded.resize(rank, 1);
  axes = axes_of(stored, padded);
  if (axes) axes->resize(logical.size());
  return axes;
}

std::optional<Axes> axes_of_nz(const Shape& s, const Shape& logical) {
  if (s.size() < 4) return std::nullopt;
  const size_t lead = s.size() - 4;
  const int64_t c1 = s[lead], no = s[lead + 1], ni = s[lead + 2], c0 = s[lead + 3];
  const int64_t rows = logical.size() == 1 ? 1 : logical[logical.size() - 2];
  const int64_t columns = logical.back();
  const std::span<const int64_t> matrices = logical.size() > 2
                                                ? std::span(logical).first(logical.size() - 2)
                                                : std::span<const int64_t>();
  if (!fills(rows, no, ni) || !fills(columns, c1, c0) ||
      count_elements(matrices) != count_elements(std::span(s).first(lead)))
    return std::nullopt;
  Axes out;
  const Strides steps = row_major_strides(matrices);
  for (size_t i = 0; i < matrices.size(); ++i)
    out.push_back({matrices[i], steps[i] * c1 * no * ni * c0});
  if (logical.size() > 1) out.push_back({rows, c0});
  out.push_back({columns, 1, c0, no * ni * c0});
  return out;
}

std::optional<Axes> axes_of(Order order, const Shape& stored, const Shape& logical,
                            int64_t groups) {
  switch (order) {
    case Order::kFractalNz:
      return axes_of_nz(stored, logical);
    case Order::kNc1hwc0:
      return image_axes(axes_of_nc1hwc0, kImageRank, stored, logical);
    case Order::kFractalZ:
      if (groups > 1) return std::nullopt;
      return image_axes(axes_of_fractal_z, kImageRank, stored, logical);
    case Order::kNdc1hwc0:
      return image_axes(axes_of_ndc1hwc0, kVolumeRank, stored, logical);
    case Order::kNhwc:
      return image_axes(axes_of_nhwc, kImageRank, stored, logical);
    case Order::kHwcn:
      return image_axes(axes_of_hwcn, kImageRank, stored, logical);
    case Order::kPlain:
    case Order::kOtherBlocks:
      break;
  }
  return std::nullopt;
}

int64_t offset_of(const Axis& axis, int64_t index) {
  if (axis.inner == 0) return index * axis.stride;
  return index / axis.inner * axis.outer_stride + index % axis.inner * axis.stride;
}

// Copies one row: the last axis, block by block. Bytes of a file need not be aligned.
template <size_t bytes>
void copy_row(const std::byte* from, const Axis& axis, std::byte* to) {
  constexpr auto kBytes = static_cast<int64_t>(bytes);
  const int64_t inner = axis.inner == 0 ? axis.size : axis.inner;
  for (int64_t first = 0; first < axis.size; first += inner) {
    const int64_t count = std::min(inner, axis.size - first);
    const std::byte* block = from + first / inner * axis.outer_stride * kBytes;
    std::byte* out = to + first * kBytes;
    if (axis.stride == 1) {
      std::memcpy(out, block, static_cast<size_t>(count) * bytes);
    } else {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(out + i * kBytes, block + i * axis.stride * kBytes, bytes);
    }
  }
}

template <size_t bytes>
void copy_rows(const std::byte* from, const Axes& axes, std::byte* to) {
  constexpr auto kBytes = static_cast<int64_t>(bytes);
  const Axis& last = axes.back();
  std::vector<int64_t> index(axes.size() - 1, 0);
  while (true) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += offset_of(axes[i], index[i]);
    copy_row<bytes>(from + offset * kBytes, last, to);
    to += last.size * kBytes;
    size_t at = index.size();
    while (at > 0 && ++index[at - 1] == axes[at - 1].size) index[--at] = 0;
    if (at == 0) return;
  }
}

void copy_all(const TensorView& from, const Axes& axes, std::byte* to) {
  switch (size_bytes(from.dtype)) {
    case 1:
      return copy_rows<1>(from.data, axes, to);
    case 2:
      return copy_rows<2>(from.data, axes, to);
    case 4:
      return copy_rows<4>(from.data, axes, to);
    case 8:
      return copy_rows<8>(from.data, axes, to);
    default:
      return copy_rows<16>(from.data, axes, to);  // complex128
  }
}

Result<Tensor> strided(const Tensor& stored, Strides strides, const Shape& logical) {
  const TensorView view = stored.view();
  auto tensor = Tensor::strided(stored.owner(), {view.data, view.bytes()}, stored.dtype(), logical,
                                std::move(strides), 0);
  if (tensor) tensor->set_byte_swapped(view.byte_swapped);
  return tensor;
}

Result<Tensor> copied(const Tensor& stored, const Axes& axes, const Shape& logical) {
  const TensorView view = stored.view();
  const size_t bytes = count_elements(logical).value_or(0) * size_bytes(view.dtype);
  auto file = MappedFile::temporary(bytes, [&](std::span<std::byte> out) -> Result<void> {
    copy_all(view, axes, out.data());
    return {};
  });
  if (!file) return fail(file.error());
  auto tensor = Tensor::contiguous(*file, (*file)->bytes(), view.dtype, logical);
  if (tensor) tensor->set_byte_swapped(view.byte_swapped);
  return tensor;
}

}  // namespace

Result<Tensor> reorder(const Tensor& stored, Order order, const Shape& logical, int64_t groups) {
  if (logical.empty()) return stored;
  // Images that are no images: nothing is known of their order.
  const bool plain =
      order == Order::kPlain || stored.elements() == 0 ||
      ((order == Order::kNhwc || order == Order::kHwcn) && stored.shape().size() != kImageRank);
  if (plain) {
    if (count_elements(logical) != stored.elements()) return stored;
    return strided(stored, row_major_strides(logical), logical);
  }
  const auto axes = axes_of(order, stored.shape(), logical, groups);
  if (!axes) return stored;
  if (!std::all_of(axes->begin(), axes->end(),
                   [](const Axis& axis) { return axis.has_one_stride(); }))
    return copied(stored, *axes, logical);
  Strides strides;
  for (const Axis& axis : *axes) strides.push_back(axis.stride);
  return strided(stored, std::move(strides), logical);
}

}  // namespace ait::formats::ge_dump
