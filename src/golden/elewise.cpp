#include <cmath>
#include <functional>

#include "golden/families.h"
#include "golden/quantise.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using graph::ElewiseType;

// One number of one input.
Result<Expected> unary(Task& task, double (*function)(double), bool exact) {
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  Array x = task.values("x");
  for (double& value : x.data) value = function(value);
  return task.give({exact ? exact_output(x.shape, std::move(x.data))
                          : function_output(x.shape, std::move(x.data))});
}

// One number of two inputs, broadcast against each other. What is lost of sums is relative to their
// terms.
template <typename Function>
Result<Expected> binary(Task& task, const Function& function, bool is_sum, bool exact) {
  if (auto given = task.takes({"x", "y"}); !given) return fail(given.error());
  const Array a = task.values("x");
  const Array b = task.values("y");
  const auto shape = broadcast_shape(a.shape, b.shape);
  if (!shape)
    return fail(task.contradiction("the shapes " + shape_text(a.shape) + " and " +
                                   shape_text(b.shape) + " do not go together"));
  const auto elements = count_elements(*shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(3 * *elements); !room) return fail(room.error());
  const Array x = broadcast_to(a, *shape);
  const Array y = broadcast_to(b, *shape);
  std::vector<double> out(x.elements());
  std::vector<double> magnitudes(is_sum ? x.elements() : 0);
  for (size_t i = 0; i < out.size(); ++i) out[i] = function(x.data[i], y.data[i]);
  for (size_t i = 0; i < magnitudes.size(); ++i)
    magnitudes[i] = std::max(std::abs(x.data[i]), std::abs(y.data[i]));
  if (exact || (is_integer(task.dtype("x")) && is_integer(task.dtype("y"))))
    return task.give({exact_output(*shape, std::move(out))});
  return task.give({function_output(*shape, std::move(out), magnitudes)});
}

Result<Expected> cast(Task& task) {
  const int64_t code = task.param().integer("outTensorType", -1);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  Array x = task.values("x");
  const DType from = task.dtype("x");
  const DType to = task.output_type(0, from);
  // To integers the fraction is cut off, elsewhere it is rounded.
  if (is_integer(to))
    for (double& value : x.data) value = std::trunc(value);
  else
    for (double& value : x.data) value = round_to(to, value);
  if (code == -1 && task.recorded(0) == nullptr)
    return fail(task.contradiction("outTensorType is missing"));
  return task.give({exact_output(x.shape, std::move(x.data))});
}

Result<Expected> muls(Task& task) {
  const double factor = task.param().number("mulsParam.varAttr", 0);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  Array x = task.values("x");
  for (double& value : x.data) value *= factor;
  return task.give({function_output(x.shape, std::move(x.data))});
}

// One scale for the whole tensor; it is multiplied with.
Result<Expected> quant(Task& task) {
  const double scale = task.param().number("quantParam.inputScale", 1);
  const double offset = task.param().number("quantParam.inputOffset", 0);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  if (task.output_type(0, DType::kInt8) != DType::kInt8)
    return fail(task.no_golden("a quantised type other than int8"));
  Array x = task.values("x");
  const DType type = task.dtype("x");
  const double rounded_scale = round_to(type, scale);
  const double rounded_offset = round_to(type, offset);
  std::vector<double> slack;
  slack.reserve(x.elements());
  for (double& value : x.data) {
    const double product = value * rounded_scale;
    value = product + rounded_offset;
    // Some devices multiply and add in the type of x.
    slack.push_back(half_step(type, product) + half_step(type, value));
  }
  return task.give({int8_output(x.shape, std::move(x.data), std::move(slack))});
}

// A scale, or an offset, that is broadcast against x. No elements where it is missing.
Result<Array> along(Task& task, std::string_view name, const Shape& shape) {
  if (!task.has(name)) return Array();
  const Array given = task.values(name);
  const auto common = broadcast_shape(given.shape, shape);
  if (!common || *common != shape)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(given.shape) +
                                   " does not go with " + shape_text(shape)));
  if (auto room = task.make_room(*count_elements(shape)); !room) return fail(room.error());
  return broadcast_to(given, shape);
}

Result<Expected> quant_per_channel(Task& task) {
  if (auto given = task.takes({"x", "scale", "?offset"}); !given) return fail(given.error());
  Array x = task.values("x");
  const auto scale = along(task, "scale", x.shape);
  if (!scale) return fail(scale.error());
  const auto offset = along(task, "offset", x.shape);
  if (!offset) return fail(offset.error());
  const DType type = task.dtype("x");
  std::vector<double> slack;
  slack.reserve(x.elements());
  for (size_t i = 0; i < x.elements(); ++i) {
    const double quotient = x.data[i] / scale->data[i];
    x.data[i] = quotient + (offset->data.empty() ? 0 : offset->data[i]);
    // The library works in the type of x.
    slack.push_back(half_step(type, quotient) + half_step(type, x.data[i]));
  }
  return task.give({int8_output(x.shape, std::move(x.data), std::move(slack))});
}

Result<Expected> dequant_per_channel(Task& task) {
  if (auto given = task.takes({"y", "scale", "?offset"}); !given) return fail(given.error());
  Array y = task.values("y");
  const auto scale = along(task, "scale", y.shape);
  if (!scale) return fail(scale.error());
  const auto offset = along(task, "offset", y.shape);
  if (!offset) return fail(offset.error());
  constexpr double kLargestHalf = 65504;
  for (size_t i = 0; i < y.elements(); ++i) {
    const double steps = y.data[i] - (offset->data.empty() ? 0 : offset->data[i]);
    y.data[i] =
        std::clamp(round_to(DType::kFloat16, steps) * round_to(DType::kFloat16, scale->data[i]),
                   -kLargestHalf, kLargestHalf);
  }
  return task.give({function_output(y.shape, std::move(y.data))});
}

Result<Expected> dynamic_quant(Task& task) {
  const bool asymmetric = task.param().flag("quantParam.asymmetric", false);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  if (task.output_type(0, DType::kInt8) != DType::kInt8)
    return fail(task.no_golden("a quantised type other than int8"));
  const Array x = task.values("x");
  if (auto room = task.make_room(2 * x.elements()); !room) return fail(room.error());
  return task.give(quantise_rows(x, {}, asymmetric));
}

}  // namespace

Result<Expected> elewise(Task& task) {
  const auto type = task.param().choice("elewiseType", ElewiseType::kUndefined);
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  switch (type) {
    case ElewiseType::kCast:
      return cast(task);
    case ElewiseType::kMuls:
      return muls(task);
    case ElewiseType::kCos:
      return unary(task, [](double x) { return std::cos(x); }, false);
    case ElewiseType::kSin:
      return unary(task, [](double x) { return std::sin(x); }, false);
    case ElewiseType::kNeg:
      return unary(task, [](double x) { return -x; }, true);
    case ElewiseType::kTanh:
      return unary(task, [](double x) { return std::tanh(x); }, false);
    case ElewiseType::kLogicalNot:
      return unary(task, [](double x) { return x == 0 ? 1.0 : 0.0; }, true);
    case ElewiseType::kAdd:
      return binary(task, std::plus<>(), true, false);
    case ElewiseType::kSub:
      return binary(task, std::minus<>(), true, false);
    case ElewiseType::kMul:
      return binary(task, std::multiplies<>(), false, false);
    case ElewiseType::kRealDiv:
      return binary(task, std::divides<>(), false, false);
    case ElewiseType::kLogicalAnd:
      return binary(task, [&](double x, double y) { return flag(x != 0 && y != 0); }, false, true);
    case ElewiseType::kLogicalOr:
      return binary(task, [&](double x, double y) { return flag(x != 0 || y != 0); }, false, true);
    case ElewiseType::kLess:
      return binary(task, [&](double x, double y) { return flag(x < y); }, false, true);
    case ElewiseType::kGreater:
      return binary(task, [&](double x, double y) { return flag(x > y); }, false, true);
    case ElewiseType::kEqual:
      return binary(task, [&](double x, double y) { return flag(x == y); }, false, true);
    case ElewiseType::kQuant:
      return quant(task);
    case ElewiseType::kQuantPerChannel:
      return quant_per_channel(task);
    case ElewiseType::kDequantPerChannel:
      return dequant_per_channel(task);
    case ElewiseType::kDynamicQuant:
      return dynamic_quant(task);
    default:
      return fail(task.no_golden("elewiseType " + std::to_string(static_cast<int>(type))));
  }
}

}  // namespace ait::golden
