#include <cmath>
#include <functional>

#include "golden/families.h"
#include "golden/norm.h"
#include "golden/quantise.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

double of(const Array& array, size_t index) {
  return array.data.empty() ? 0 : array.data[index % array.elements()];
}

// What float32 makes of 1 / root of a mean of squares is off by, relative to it: half of what the sum
// is, and `roundings` more.
double root_slack(const Walk& squares, double roundings) {
  const double of_sum = squares.sum() > 0 ? squares.slack() / squares.sum() : 0;
  return of_sum / 2 + kMargin * kFloat32Unit * roundings;
}

}  // namespace

Output output_of(Inexact values) {
  Output out = exact_output(std::move(values.values.shape), std::move(values.values.data));
  out.slack = std::move(values.slack);
  return out;
}

Result<double> single(const Task& task, std::string_view name) {
  const Array given = task.values(name);
  if (given.elements() != 1)
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(given.elements()) +
                                   " elements, not 1"));
  return given.data[0];
}

Result<Scale> scale_of(Task& task, size_t group) {
  Scale scale{task.values("gamma"), task.values("beta")};
  for (const Array* each : {&scale.gamma, &scale.beta})
    if (each->elements() > 0 && (group == 0 || group % each->elements() != 0))
      return fail(task.contradiction(std::string(each == &scale.gamma ? "gamma" : "beta") +
                                     " has " + std::to_string(each->elements()) +
                                     " elements, which do not go into the " +
                                     std::to_string(group) + " that are normed together"));
  return scale;
}

RmsMode read_rms_mode(Task& task, double epsilon) {
  using graph::NormModelType;
  using graph::NormPrecisionMode;
  const auto model = task.param().choice("normParam.modelType", NormModelType::kLlama);
  const auto precision =
      task.param().choice("normParam.precisionMode", NormPrecisionMode::kHighPrecision);
  return {epsilon, model == NormModelType::kGemma,
          precision == NormPrecisionMode::kHighPerformance};
}

RmsNormed rms_normed(const Inexact& x, size_t group, const Scale& scale, const RmsMode& mode) {
  RmsNormed out;
  out.y.values.shape = x.values.shape;
  const auto length = static_cast<double>(group);
  for (size_t first = 0; first + group <= x.values.elements() && group > 0; first += group) {
    Walk squares;
    double inherited = 0;
    for (size_t i = first; i < first + group; ++i) {
      squares.add(x.values.data[i] * x.values.data[i]);
      if (x.slack[i] > 0) inherited += std::abs(x.values.data[i]) * x.slack[i];
    }
    const double reciprocal = 1 / std::sqrt(squares.sum() / length + mode.epsilon);
    // The root, the division and the product; and what the sum is off since its terms are.
    const double relative = root_slack(squares, 3) + inherited * reciprocal * reciprocal / length;
    out.reciprocal.values.data.push_back(reciprocal);
    out.reciprocal.slack.push_back(relative * reciprocal);
    for (size_t i = 0; i < group; ++i) {
      const double gamma = of(scale.gamma, i) + (mode.add_one ? 1 : 0);
      const double normed = x.values.data[first + i] * reciprocal;
      const double between = mode.half_between ? round_to(DType::kFloat16, normed) : normed;
      const double y = between * gamma + of(scale.beta, i);
      double slack = relative * std::abs(between * gamma) +
                     kMargin * kFloat32Unit * std::abs(of(scale.beta, i)) +
                     std::abs(gamma) * reciprocal * x.slack[first + i];
      if (mode.half_between)  // the other value of half is as good where it is nearly a tie
        slack += std::abs(gamma) * 2 * half_step(DType::kFloat16, normed);
      out.y.values.data.push_back(y);
      out.y.slack.push_back(slack);
    }
  }
  return out;
}

Inexact layer_normed(const Inexact& x, size_t group, const Scale& scale, double epsilon) {
  Inexact out;
  out.values.shape = x.values.shape;
  const auto length = static_cast<double>(group);
  for (size_t first = 0; first + group <= x.values.elements() && group > 0; first += group) {
    Walk total, squares;
    double inherited = 0;
    for (size_t i = first; i < first + group; ++i) {
      total.add(x.values.data[i]);
      inherited = std::max(inherited, x.slack[i]);
    }
    const double mean = total.sum() / length;
    for (size_t i = first; i < first + group; ++i)
      squares.add((x.values.data[i] - mean) * (x.values.data[i] - mean));
    const double reciprocal = 1 / std::sqrt(squares.sum() / length + epsilon);
    const double mean_slack = total.slack() / length + 2 * inherited;
    const double relative = root_slack(squares, 4);  // and the difference from the mean
    for (size_t i = 0; i < group; ++i) {
      const double gamma = scale.gamma.data.empty() ? 1 : of(scale.gamma, i);
      const double beta = of(scale.beta, i);
      const double normed = (x.values.data[first + i] - mean) * reciprocal * gamma;
      out.values.data.push_back(normed + beta);
      // A mean that is off moves every value, and the variance by as much.
      out.slack.push_back(std::abs(gamma) * reciprocal * mean_slack + relative * std::abs(normed) +
                          std::abs(normed) * reciprocal * mean_slack +
                          kMargin * kFloat32Unit * (std::abs(beta) + std::abs(normed + beta)));
    }
  }
  return out;
}

namespace {

using graph::DynamicQuantType;
using graph::NormLayerType;
using graph::NormQuantType;

// x + zoom * residual + bias, summed in float32.
Result<Inexact> sum(Task& task, double zoom) {
  Array total = task.values("x");
  std::vector<double> slack(total.elements(), 0);
  const auto add = [&](std::string_view name, double factor) -> Result<void> {
    if (!task.has(name)) return {};
    const Array given = task.values(name);
    const auto shape = broadcast_shape(given.shape, total.shape);
    if (!shape || *shape != total.shape)
      return fail(task.contradiction(std::string(name) + " of shape " + shape_text(given.shape) +
                                     " cannot be added to x of shape " + shape_text(total.shape)));
    const Array term = broadcast_to(given, total.shape);
    for (size_t i = 0; i < total.elements(); ++i) {
      total.data[i] += factor * term.data[i];
      slack[i] +=
          kMargin * kFloat32Unit * (std::abs(factor * term.data[i]) + std::abs(total.data[i]));
    }
    return {};
  };
  if (auto added = add("bias", 1); !added) return fail(added.error());
  if (auto added = add("residual", zoom); !added) return fail(added.error());
  return Inexact{std::move(total), std::move(slack)};
}

// One scale and one offset of int8 for all.
struct Steps {
  double scale;
  double offset;
};
Result<Steps> read_steps(Task& task) {
  const auto scale = single(task, "scale");
  if (!scale) return fail(scale.error());
  const auto offset = single(task, "offset");
  if (!offset) return fail(offset.error());
  return Steps{*scale, *offset};
}

// y / scale + offset, to be rounded to int8.
Result<Output> quantise_statically(Task& task, const Inexact& y) {
  const auto steps_of = read_steps(task);
  if (!steps_of) return fail(steps_of.error());
  const auto [scale, offset] = *steps_of;
  std::vector<double> steps(y.values.elements());
  std::vector<double> slack(y.values.elements());
  for (size_t i = 0; i < steps.size(); ++i) {
    const double quotient = y.values.data[i] / scale;
    steps[i] = quotient + offset;
    slack[i] = y.slack[i] / std::abs(scale) +
               kMargin * kFloat32Unit * (std::abs(quotient) + std::abs(steps[i]));
  }
  return int8_output(y.values.shape, std::move(steps), std::move(slack));
}

std::string layer_key(NormLayerType type) {
  switch (type) {
    case NormLayerType::kPreNorm:
      return "preNormParam.";
    case NormLayerType::kPostNorm:
      return "postNormParam.";
    default:
      return "normParam.";
  }
}

// Of the first recorded form of a kind of norm: how it reads its parameters.
struct NormKeys {
  NormLayerType type;
  NormQuantType quant;
  double epsilon;
};

NormKeys read_keys(Task& task) {
  NormKeys keys;
  keys.type = task.param().choice("layerType", NormLayerType::kUndefined);
  const std::string object = layer_key(keys.type);
  keys.quant = task.param().choice(object + "quantType", NormQuantType::kUndefined);
  keys.epsilon = task.param().number(object + "epsilon", 1e-5);
  return keys;
}

bool is_other_quant(NormQuantType type) {
  return type != NormQuantType::kUndefined && type != NormQuantType::kInt8;
}

// How many elements at the end of x are normed together.
size_t elements_from(const Shape& shape, size_t axis) {
  size_t group = 1;
  for (size_t i = axis; i < shape.size(); ++i) group *= static_cast<size_t>(shape[i]);
  return group;
}

Result<Expected> plain_rms_norm(Task& task, const NormKeys& keys) {
  const bool with_rstd = task.param().flag("normParam.rstd", false);
  const auto dynamic =
      task.param().choice("normParam.dynamicQuantType", DynamicQuantType::kUndefined);
  const RmsMode mode = read_rms_mode(task, keys.epsilon);
  const bool quantised = keys.quant == NormQuantType::kInt8;
  std::vector<std::string_view> names = {"x", "gamma"};
  if (quantised) names.emplace_back(dynamic == DynamicQuantType::kUndefined ? "?beta" : "beta");
  if (quantised && dynamic == DynamicQuantType::kUndefined)
    names.insert(names.end(), {"scale", "offset"});
  if (auto given = task.takes(names); !given) return fail(given.error());
  auto x = sum(task, 0);
  if (!x) return fail(x.error());
  if (auto room = task.make_room(4 * x->values.elements()); !room) return fail(room.error());
  const size_t gamma_rank = task.shape("gamma").size();
  const size_t rank = x->values.rank();
  const size_t axis =
      with_rstd ? rank - std::min(rank, gamma_rank) : rank - std::min(rank, size_t{1});
  const size_t group = elements_from(x->values.shape, axis);
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  RmsNormed normed = rms_normed(*x, group, *scale, mode);
  if (quantised && dynamic != DynamicQuantType::kUndefined)
    return task.give(
        quantise_rows(normed.y.values, normed.y.slack, dynamic == DynamicQuantType::kAsymmetric));
  if (quantised) {
    auto q = quantise_statically(task, normed.y);
    if (!q) return fail(q.error());
    return task.give({std::move(*q)});
  }
  std::vector<Output> outputs;
  outputs.push_back(output_of(std::move(normed.y)));
  if (with_rstd) {
    Shape shape = x->values.shape;
    for (size_t i = axis; i < rank; ++i) shape[i] = 1;
    normed.reciprocal.values.shape = std::move(shape);
    outputs.push_back(output_of(std::move(normed.reciprocal)));
  }
  return task.give(std::move(outputs));
}

// Pre- and post-norm: of x and a residual.
Result<Expected> residual_rms_norm(Task& task, const NormKeys& keys) {
  const bool pre = keys.type == NormLayerType::kPreNorm;
  const bool has_bias = task.param().flag(layer_key(keys.type) + "hasBias", false);
  const bool quantised = keys.quant == NormQuantType::kInt8;
  std::vector<std::string_view> names = {"x"};
  if (has_bias && !quantised) names.emplace_back("bias");
  names.insert(names.end(), {"residual", "gamma"});
  if (quantised && pre) names.emplace_back("?beta");
  if (quantised) names.insert(names.end(), {"scale", "offset"});
  if (auto given = task.takes(names); !given) return fail(given.error());
  auto s = sum(task, 1);
  if (!s) return fail(s.error());
  if (auto room = task.make_room(4 * s->values.elements()); !room) return fail(room.error());
  const size_t group = s->values.row_elements();
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  Inexact y = rms_normed(*s, group, *scale, {keys.epsilon}).y;
  std::vector<Output> outputs;
  if (quantised) {
    auto q = quantise_statically(task, y);
    if (!q) return fail(q.error());
    outputs.push_back(std::move(*q));
    if (!pre) outputs.push_back(output_of(std::move(y)));
  } else {
    outputs.push_back(output_of(std::move(y)));
  }
  if (pre) outputs.push_back(output_of(std::move(*s)));
  return task.give(std::move(outputs));
}

// Rounded to half, which is part of the definition; the neighbour is as good where it is nearly a
// tie.
Inexact in_half(Inexact values) {
  for (size_t i = 0; i < values.slack.size(); ++i) {
    double& value = values.values.data[i];
    values.slack[i] += 2 * half_step(DType::kFloat16, value);
    value = round_to(DType::kFloat16, value);
  }
  return values;
}

// values * scale + offset, which the library multiplies and adds in half.
Result<Output> multiply_to_int8(Task& task, const Inexact& values) {
  const auto steps_of = read_steps(task);
  if (!steps_of) return fail(steps_of.error());
  const auto [scale, offset] = *steps_of;
  std::vector<double> steps(values.slack.size());
  std::vector<double> slack(values.slack.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const double product = values.values.data[i] * scale;
    steps[i] = product + offset;
    slack[i] = values.slack[i] * std::abs(scale) + half_step(DType::kFloat16, product) +
               half_step(DType::kFloat16, steps[i]);
  }
  return int8_output(values.values.shape, std::move(steps), std::move(slack));
}

}  // namespace

Result<Expected> rms_norm(Task& task) {
  const NormKeys keys = read_keys(task);
  if (is_other_quant(keys.quant))
    return fail(task.no_golden("quantType " + std::to_string(static_cast<int>(keys.quant))));
  switch (keys.type) {
    case NormLayerType::kNorm:
      return plain_rms_norm(task, keys);
    case NormLayerType::kPreNorm:
    case NormLayerType::kPostNorm:
      return residual_rms_norm(task, keys);
    default:
      return fail(task.no_golden("layerType " + std::to_string(static_cast<int>(keys.type))));
  }
}

Result<Expected> layer_norm(Task& task) {
  const NormKeys keys = read_keys(task);
  const bool quantised = keys.quant == NormQuantType::kInt8;
  const bool with_residual = keys.type != NormLayerType::kNorm;
  if (keys.type == NormLayerType::kUndefined || is_other_quant(keys.quant) ||
      (quantised && keys.type == NormLayerType::kPreNorm))
    return fail(task.no_golden("layerType " + std::to_string(static_cast<int>(keys.type)) +
                               " with quantType " + std::to_string(static_cast<int>(keys.quant))));
  const int64_t begin = task.param().integer("normParam.beginNormAxis", 0);
  const double zoom =
      with_residual ? task.param().number(layer_key(keys.type) + "zoomScaleValue", 1) : 0;
  // The library does not write dynamicQuantType down; what is quantised so has scales as well.
  const size_t recorded = task.operation().outputs.size();
  const bool dynamic = quantised && !with_residual && recorded >= 2;
  if (dynamic)
    task.note("dynamicQuantType was inferred from " + std::to_string(recorded) + " outputs");
  std::vector<std::string_view> names = {"x"};
  if (with_residual) names.emplace_back("residual");
  names.insert(names.end(), {"gamma", "beta"});
  if (quantised && !dynamic) names.insert(names.end(), {"scale", "offset"});
  if (auto given = task.takes(names); !given) return fail(given.error());
  auto x = sum(task, zoom);
  if (!x) return fail(x.error());
  if (auto room = task.make_room(4 * x->values.elements()); !room) return fail(room.error());
  const auto rank = static_cast<int64_t>(x->values.rank());
  const int64_t axis = quantised || with_residual ? rank - 1 : begin < 0 ? begin + rank : begin;
  if (axis < 0 || axis >= rank)
    return fail(task.contradiction("x has no dimension " + std::to_string(begin)));
  const size_t group = elements_from(x->values.shape, static_cast<size_t>(axis));
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  Inexact y = layer_normed(*x, group, *scale, keys.epsilon);
  if (dynamic) {
    y = in_half(std::move(y));
    return task.give(quantise_rows(y.values, y.slack, recorded >= 3));
  }
  std::vector<Output> outputs;
  if (quantised) {
    y = in_half(std::move(y));
    auto q = multiply_to_int8(task, y);
    if (!q) return fail(q.error());
    outputs.push_back(std::move(*q));
    if (with_residual) {
      outputs.push_back(output_of(std::move(y)));
      // The order is told by the types of what was recorded.
      if (task.output_type(0, DType::kFloat16) != DType::kInt8) std::swap(outputs[0], outputs[1]);
    }
    return task.give(std::move(outputs));
  }
  outputs.push_back(output_of(std::move(y)));
  if (keys.type == NormLayerType::kPreNorm) outputs.push_back(output_of(std::move(*x)));
  return task.give(std::move(outputs));
}

}  // namespace ait::golden
