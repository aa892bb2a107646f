#include "match/content.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "match/sample.h"
#include "metrics/elements.h"

namespace ait::match {
namespace {

// Stretches that are read of a tensor, so that large ones are not read as a whole.
constexpr size_t kStretches = 16;
constexpr size_t kStretchElements = 128;

// Fewer numbers than these may be the same by chance.
constexpr size_t kFewestElements = 8;

std::vector<float> sample_of(const TensorView& view, size_t elements) {
  std::vector<double> wide(std::min(elements, kStretches * kStretchElements));
  if (wide.size() == elements) {
    metrics::read_elements(view, 0, elements, wide.data());
  } else {
    for (size_t i = 0; i < kStretches; ++i)
      metrics::read_elements(view, i * (elements - kStretchElements) / (kStretches - 1),
                             kStretchElements, wide.data() + i * kStretchElements);
  }
  return {wide.begin(), wide.end()};
}

bool says_nothing(const std::vector<float>& sample) {
  return sample.size() < kFewestElements ||
         std::all_of(
             sample.begin(), sample.end(),
             [&](float value) { return value == sample[0] || !std::isfinite(value); });
}

}  // namespace

Content read_content(const capture::TensorRecord& record) {
  Content out;
  const auto tensor = load_tensor(record);
  if (!tensor) return out;
  out.elements = tensor->elements();
  out.columns = tensor->shape().empty() ? 1 : static_cast<size_t>(tensor->shape().back());
  out.dtype = tensor->dtype();
  out.sample = sample_of(tensor->view(), out.elements);
  out.is_constant = says_nothing(out.sample);
  const std::string_view bytes(reinterpret_cast<const char*>(out.sample.data()),
                               out.sample.size() * sizeof(float));
  // The lowest bit is set, as 0 stands for nothing.
  out.hash =
      (std::hash<std::string_view>()(bytes) * 31 + out.elements * 2 + (out.is_float() ? 1 : 0))
          << 1 |
      1;
  return out;
}

}  // namespace ait::match
