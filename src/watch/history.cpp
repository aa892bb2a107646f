#include "watch/history.h"

#include <algorithm>
#include <cmath>

namespace ait::watch {

std::optional<double> RunningMedian::median() const {
  if (count_ < kEnough) return std::nullopt;
  std::array<float, kWindow> sorted = values_;
  const auto middle = sorted.begin() + count_ / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count_);
  return *middle;
}

// Values that are not finite are no measure for others.
void RunningMedian::add(double value) {
  if (!std::isfinite(static_cast<float>(value))) return;
  values_[next_] = static_cast<float>(value);
  next_ = (next_ + 1) % kWindow;
  count_ = std::min<uint32_t>(count_ + 1, kWindow);
}

Histories::History* Histories::of(std::string_view tensor, std::string_view shape) {
  auto found = tensors_.find(tensor);
  if (found == tensors_.end()) {
    if (tensors_.size() >= kMaxTensors) return nullptr;
    found = tensors_.emplace(tensor, std::vector<History>()).first;
  }
  std::vector<History>& shapes = found->second;
  auto place = std::find_if(shapes.begin(), shapes.end(),
                            [&](const History& each) { return each.shape == shape; });
  if (place == shapes.end()) {
    if (shapes.size() < kShapes) {
      shapes.emplace_back();
      place = shapes.end() - 1;
    } else {
      place = std::min_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
        return a.last_used < b.last_used;
      });
      *place = {};
    }
    place->shape = shape;
  }
  place->last_used = ++uses_;
  return &*place;
}

}  // namespace ait::watch
