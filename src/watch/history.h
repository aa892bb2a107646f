// What was usual so far: the median of a statistic over the last rounds. Internal to this library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ait::watch {

// The last values of one statistic, in no more memory than they need.
class RunningMedian {
 public:
  // Long enough that a few odd rounds do not move the median, short enough to follow a run that
  // changes slowly, as training does.
  static constexpr size_t kWindow = 32;
  // Fewer rounds than this are no history.
  static constexpr size_t kEnough = 8;

  // Of the values before this one; nothing where there are too few.
  std::optional<double> median() const;
  void add(double value);

 private:
  std::array<float, kWindow> values_{};
  uint32_t count_ = 0;
  uint32_t next_ = 0;
};

// Of all tensors of a run. A tensor that comes in several shapes (a prompt, then single tokens) has
// a history for each of the shapes that it had last.
class Histories {
 public:
  struct History {
    std::string shape;
    RunningMedian norm;
    RunningMedian magnitude;
    uint64_t last_used = 0;
  };

  // Nullptr where there are more tensors than anybody watches.
  History* of(std::string_view tensor, std::string_view shape);

 private:
  static constexpr size_t kMaxTensors = 200'000;
  static constexpr size_t kShapes = 4;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::vector<History>, Hash, std::equal_to<>> tensors_;
  uint64_t uses_ = 0;
};

}  // namespace ait::watch
