#include "golden/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/rounding.h"
#include "golden/task.h"

namespace ait::golden {
namespace {

constexpr double kLowest = -128;
constexpr double kHighest = 127;

// What the arithmetic of a scale in float32 may change.
double scale_slack(double value) { return kMargin * 2 * kFloat32Unit * std::abs(value); }

// What a device makes of NaN in int8, or of the largest of numbers and NaN, is its own affair.
void leave_nan_open(Output& out) {
  for (size_t i = 0; i < out.values.size(); ++i) {
    if (!std::isnan(out.values[i])) continue;
    if (out.undefined.empty()) out.undefined.assign(out.values.size(), false);
    out.undefined[i] = true;
    out.values[i] = out.slack[i] = 0;
  }
}

}  // namespace

std::vector<Output> quantise_rows(const Array& values, const std::vector<double>& slack,
                                  bool asymmetric) {
  const size_t width = values.row_elements();
  Shape row_shape = values.shape;
  if (!row_shape.empty()) row_shape.pop_back();
  std::vector<double> steps(values.elements());
  std::vector<double> step_slack(values.elements());
  std::vector<double> scales, scale_slacks, offsets, offset_slacks;
  for (size_t row = 0; row < values.rows(); ++row) {
    const auto data = values.row(row);
    double low = 0, high = 0, largest_slack = 0;
    bool has_nan = false;
    if (!data.empty()) low = high = data[0];
    for (size_t i = 0; i < width; ++i) {
      low = std::min(low, data[i]);
      high = std::max(high, data[i]);
      has_nan = has_nan || std::isnan(data[i]);
      if (!slack.empty()) largest_slack = std::max(largest_slack, slack[row * width + i]);
    }
    if (has_nan) low = high = std::numeric_limits<double>::quiet_NaN();
    const double largest = std::max(std::abs(low), std::abs(high));
    const double scale = asymmetric ? (high - low) / 255 : largest / kHighest;
    const double offset = asymmetric && scale != 0 ? -(high + low) / (2 * scale) : 0;
    for (size_t i = 0; i < width; ++i) {
      const double step = scale == 0 ? 0 : data[i] / scale + offset;
      steps[row * width + i] = step;
      const double own = slack.empty() ? 0 : slack[row * width + i] + largest_slack;
      step_slack[row * width + i] =
          scale == 0 ? 0 : own / scale + scale_slack(std::abs(data[i] / scale) + std::abs(offset));
    }
    scales.push_back(scale);
    scale_slacks.push_back(scale_slack(scale) + largest_slack / (asymmetric ? 127.5 : kHighest));
    offsets.push_back(offset);
    offset_slacks.push_back(scale_slack(std::abs(offset) + 1) +
                            (scale == 0 ? 0 : largest_slack / scale));
  }
  std::vector<Output> out;
  out.push_back(int8_output(values.shape, std::move(steps), std::move(step_slack)));
  const auto add = [&](std::vector<double> numbers, std::vector<double> slacks) {
    Output output = exact_output(row_shape, std::move(numbers));
    output.slack = std::move(slacks);
    leave_nan_open(output);
    out.push_back(std::move(output));
  };
  add(std::move(scales), std::move(scale_slacks));
  if (asymmetric) add(std::move(offsets), std::move(offset_slacks));
  return out;
}

Output int8_output(Shape shape, std::vector<double> steps, std::vector<double> slack) {
  for (double& step : steps) step = std::clamp(step, kLowest, kHighest);
  Output out = exact_output(std::move(shape), std::move(steps));
  out.slack = std::move(slack);
  if (out.slack.empty()) out.slack.assign(out.values.size(), 0);
  leave_nan_open(out);
  return out;
}

}  // namespace ait::golden
