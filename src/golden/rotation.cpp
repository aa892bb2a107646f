#include "golden/rotation.h"

#include <cmath>

#include "golden/rounding.h"
#include "golden/task.h"

namespace ait::golden {

void turn_head(const Head& head, std::span<const double> cos, std::span<const double> sin,
               DType type, double* values, double* slack) {
  const size_t half = head.values.size() / 2;
  for (size_t i = 0; i < head.values.size(); ++i) {
    const TurnedWith other = turned_with(i, half);
    const double straight = head.values[i] * cos[i];
    const double crossed = other.sign * head.values[other.index] * sin[i];
    values[i] = straight + crossed;
    slack[i] = sum_slack(2, std::abs(straight) + std::abs(crossed));
    if (type == DType::kFloat16) slack[i] += half_step(type, straight) + half_step(type, crossed);
    if (!head.slack.empty())
      slack[i] += head.slack[i] * std::abs(cos[i]) + head.slack[other.index] * std::abs(sin[i]);
  }
}

}  // namespace ait::golden
