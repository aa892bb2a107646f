#include <cmath>
#include <numbers>

#include "golden/families.h"

namespace ait::golden {
namespace {

using graph::ActivationType;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gelu_by_tanh(double x) {
  constexpr double kCubic = 0.044715;
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + kCubic * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

double gelu_by_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }

constexpr double kFastGeluFactor = 1.702;

double fast_gelu(double x) {
  return x * std::exp(kFastGeluFactor / 2 * (x - std::abs(x))) /
         (1 + std::exp(-kFastGeluFactor * std::abs(x)));
}

// exp(-x) is off by as much as x is, relative to itself: what is lost of a function of it.
double lost_to_exp(double y, double x) { return std::abs(y) * (1 + std::abs(x)); }

// Halves of one dimension: [outer, 2, half of the dimension times what is inside it].
struct Halves {
  size_t outer = 0;
  size_t half = 0;
};

Result<Halves> cut(const Task& task, const Shape& shape, int64_t dim) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = dim < 0 ? dim + rank : dim;
  if (axis < 0 || axis >= rank)
    return fail(task.contradiction("x has no dimension " + std::to_string(dim)));
  if (shape[static_cast<size_t>(axis)] % 2 != 0)
    return fail(task.contradiction("the dimension " + std::to_string(dim) + " of x is odd"));
  Halves halves{1, static_cast<size_t>(shape[static_cast<size_t>(axis)] / 2)};
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? halves.outer : halves.half) *=
        i == axis ? 1 : static_cast<size_t>(shape[static_cast<size_t>(i)]);
  return halves;
}

// swish(a) * b with a and b the halves of x.
Result<Expected> swiglu(Task& task, int64_t dim) {
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  const auto halves = cut(task, x.shape, dim);
  if (!halves) return fail(halves.error());
  Shape shape = x.shape;
  shape[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim)] /= 2;
  std::vector<double> y;
  std::vector<double> magnitudes;
  y.reserve(x.elements() / 2);
  magnitudes.reserve(x.elements() / 2);
  for (size_t i = 0; i < halves->outer; ++i)
    for (size_t j = 0; j < halves->half; ++j) {
      const double a = x.data[2 * i * halves->half + j];
      const double b = x.data[(2 * i + 1) * halves->half + j];
      y.push_back(a * sigmoid(a) * b);
      magnitudes.push_back(lost_to_exp(y.back(), a));
    }
  return task.give({function_output(std::move(shape), std::move(y), magnitudes)});
}

Result<Expected> swiglu_backward(Task& task, int64_t dim) {
  if (auto given = task.takes({"dy", "x"}); !given) return fail(given.error());
  const Array dy = task.values("dy");
  const Array x = task.values("x");
  const auto halves = cut(task, x.shape, dim);
  if (!halves) return fail(halves.error());
  if (2 * dy.elements() != x.elements())
    return fail(task.contradiction("dy has not half as many elements as x"));
  std::vector<double> dx(x.elements());
  std::vector<double> magnitudes(x.elements());
  for (size_t i = 0; i < halves->outer; ++i)
    for (size_t j = 0; j < halves->half; ++j) {
      const size_t first = 2 * i * halves->half + j;
      const size_t second = first + halves->half;
      const double a = x.data[first];
      const double b = x.data[second];
      const double d = dy.data[i * halves->half + j];
      const double s = sigmoid(a);
      dx[first] = d * b * (s + a * s * (1 - s));
      dx[second] = d * a * s;
      // The two terms of the first cancel where a is negative.
      magnitudes[first] = lost_to_exp(d * b * (s + std::abs(a) * s * (1 - s)), a);
      magnitudes[second] = lost_to_exp(dx[second], a);
    }
  return task.give({function_output(x.shape, std::move(dx), magnitudes)});
}

}  // namespace

Result<Expected> activation(Task& task) {
  const auto type = task.param().choice("activationType", ActivationType::kUndefined);
  const double scale = task.param().number("scale", 1);
  const int64_t dim = task.param().integer("dim", -1);
  const bool says_mode = task.param().has("geluMode");
  const auto mode = task.param().choice("geluMode", graph::GeluMode::kTanh);
  if (type == ActivationType::kSwigluForward) return swiglu(task, dim);
  if (type == ActivationType::kSwigluBackward) return swiglu_backward(task, dim);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  const auto each = [&](auto function) {
    std::vector<double> y;
    y.reserve(x.elements());
    for (const double value : x.data) y.push_back(function(value));
    return y;
  };
  const auto by_exp = [&](double factor, auto function) {
    std::vector<double> y = each(function);
    std::vector<double> magnitudes(y.size());
    for (size_t i = 0; i < y.size(); ++i) magnitudes[i] = lost_to_exp(y[i], factor * x.data[i]);
    return task.give({function_output(x.shape, std::move(y), magnitudes)});
  };
  switch (type) {
    case ActivationType::kRelu:
      return task.give({exact_output(x.shape, each([](double v) { return v <= 0 ? 0 : v; }))});
    case ActivationType::kGelu: {
      // The library does not write geluMode down, so both may be meant.
      const bool by_tanh = mode == graph::GeluMode::kTanh;
      // 1 + tanh(x) loses what is small beside 1, and with it part of x.
      Output out = function_output(x.shape, each(by_tanh ? gelu_by_tanh : gelu_by_erf), x.data);
      if (!says_mode) {
        out.form = "gelu by tanh";
        out.forms.push_back({"gelu by erf", each(gelu_by_erf)});
      }
      return task.give({std::move(out)});
    }
    case ActivationType::kFastGelu:
    case ActivationType::kFasterGeluForward:  // the same function, written in another way
      return by_exp(kFastGeluFactor, fast_gelu);
    case ActivationType::kSwish:
      return by_exp(scale, [&](double v) { return v / (1 + std::exp(-scale * v)); });
    case ActivationType::kLog:
      return task.give({function_output(x.shape, each([](double v) { return std::log(v); }))});
    case ActivationType::kSigmoid:
      return by_exp(1, sigmoid);
    default:
      return fail(task.no_golden("activationType " + std::to_string(static_cast<int>(type))));
  }
}

}  // namespace ait::golden
