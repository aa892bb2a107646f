#include <cmath>

#include "golden/families.h"
#include "golden/look.h"
#include "golden/norm.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using graph::NormLayerType;
using graph::NormQuantType;

Inexact exactly(Array values) {
  std::vector<double> slack(values.elements(), 0);
  return {std::move(values), std::move(slack)};
}

// x as its strides show it, and how the output may lie.
struct Seen {
  Array x;
  Look look;
};

Result<Seen> seen_through_strides(Task& task) {
  const auto strides = whole_numbers(task, "strides");
  if (!strides) return fail(strides.error());
  const auto offset = whole_numbers(task, "offset");
  if (!offset) return fail(offset.error());
  const Look look{task.shape("x"), *strides, offset->front()};
  auto x = read_strided(task, "x", look);
  if (!x) return fail(x.error());
  if (auto room = task.make_room(x->elements(), 6); !room) return fail(room.error());
  return Seen{std::move(*x), look};
}

// The same numbers, each where the strides of x lead to, if they stay within.
std::optional<std::vector<double>> in_layout_of(const Look& look, const std::vector<double>& y) {
  std::vector<double> out;
  out.reserve(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    size_t place = 0;
    for (size_t axis = look.shape.size(), rest = i; axis-- > 0;) {
      const auto length = static_cast<size_t>(look.shape[axis]);
      place += rest % length * static_cast<size_t>(look.strides[axis]);
      rest /= length;
    }
    if (place >= y.size()) return std::nullopt;
    out.push_back(y[place]);
  }
  return out;
}

// Nothing tells whether the output is dense or lies as x does.
Result<Expected> give_strided(Task& task, const Seen& seen, Inexact y) {
  Output out = output_of(std::move(y));
  const auto laid = in_layout_of(seen.look, out.values);
  const auto slack = in_layout_of(seen.look, out.slack);
  if (!laid || *laid == out.values) return task.give({std::move(out)});
  for (size_t i = 0; i < slack->size(); ++i) out.slack[i] = std::max(out.slack[i], (*slack)[i]);
  out.form = "output in the order of its dimensions";
  out.forms.push_back({"output in the layout of x", *laid});
  return task.give({std::move(out)});
}

// The keys of a norm that has no other kinds than the plain one.
Result<double> epsilon_of_plain_norm(Task& task) {
  const auto type = task.param().choice("layerType", NormLayerType::kUndefined);
  const auto quant = task.param().choice("normParam.quantType", NormQuantType::kUndefined);
  if (type != NormLayerType::kNorm || quant != NormQuantType::kUndefined)
    return fail(task.no_golden("layerType " + std::to_string(static_cast<int>(type)) +
                               " with quantType " + std::to_string(static_cast<int>(quant))));
  return task.param().number("normParam.epsilon", 1e-5);
}

}  // namespace

Result<Expected> rms_norm_with_stride(Task& task) {
  const auto epsilon = epsilon_of_plain_norm(task);
  if (!epsilon) return fail(epsilon.error());
  const RmsMode mode = read_rms_mode(task, *epsilon);
  if (task.param().flag("normParam.rstd", false)) return fail(task.no_golden("rstd"));
  if (auto given = task.takes({"x", "gamma", "strides", "offset"}); !given)
    return fail(given.error());
  auto seen = seen_through_strides(task);
  if (!seen) return fail(seen.error());
  const size_t group = seen->x.row_elements();
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  return give_strided(task, *seen, rms_normed(exactly(seen->x), group, *scale, mode).y);
}

Result<Expected> layer_norm_with_stride(Task& task) {
  const auto epsilon = epsilon_of_plain_norm(task);
  if (!epsilon) return fail(epsilon.error());
  if (auto given = task.takes({"x", "gamma", "beta", "strides", "offset"}); !given)
    return fail(given.error());
  auto seen = seen_through_strides(task);
  if (!seen) return fail(seen.error());
  // As many of the last dimensions as gamma has elements for.
  const size_t group = *count_elements(task.shape("gamma"));
  size_t together = 1;
  for (size_t axis = seen->x.rank(); axis-- > 0 && together < group;)
    together *= static_cast<size_t>(seen->x.shape[axis]);
  if (together != group)
    return fail(task.contradiction("gamma has the shape " + shape_text(task.shape("gamma")) +
                                   ", which is not that of the last dimensions of x, " +
                                   shape_text(seen->x.shape)));
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  return give_strided(task, *seen, layer_normed(exactly(seen->x), group, *scale, *epsilon));
}

// A layer norm of the last dimension without beta, with other weights for every head.
Result<Expected> cohere_layer_norm(Task& task) {
  const double epsilon = task.param().number("epsilon", 1e-5);
  if (auto given = task.takes({"x", "weight"}); !given) return fail(given.error());
  Array x = task.values("x");
  const Array weight = task.values("weight");
  const auto shape = broadcast_shape(x.shape, weight.shape);
  if (!shape || *shape != x.shape || weight.row_elements() != x.row_elements())
    return fail(task.contradiction("weight of shape " + shape_text(weight.shape) +
                                   " does not go with x of shape " + shape_text(x.shape)));
  if (auto room = task.make_room(x.elements(), 5); !room) return fail(room.error());
  const Array weights = broadcast_to(weight, x.shape);
  const size_t group = x.row_elements();
  Inexact y = layer_normed(exactly(std::move(x)), group, {}, epsilon);
  for (size_t i = 0; i < y.slack.size(); ++i) {
    y.values.data[i] *= weights.data[i];
    y.slack[i] = y.slack[i] * std::abs(weights.data[i]) +
                 kMargin * kFloat32Unit * std::abs(y.values.data[i]);
  }
  return task.give({output_of(std::move(y))});
}

// The norm of x and of rows of a residual that are picked by index.
Result<Expected> gather_pre_rms_norm(Task& task) {
  const double epsilon = task.param().number("epsilon", 1e-5);
  if (auto given = task.takes({"x", "~residual", "indices", "gamma"}); !given)
    return fail(given.error());
  Inexact sum = exactly(task.values("x"));
  const size_t width = sum.values.row_elements();
  const Shape& residual = task.shape("residual");
  if (residual.empty() || static_cast<size_t>(residual.back()) != width)
    return fail(task.contradiction("the rows of the residual of shape " + shape_text(residual) +
                                   " are not as long as those of x, " +
                                   shape_text(sum.values.shape)));
  const auto rows = indices(task, "indices", *count_elements(residual) / width);
  if (!rows) return fail(rows.error());
  if (rows->size() != sum.values.rows())
    return fail(task.contradiction("there are " + std::to_string(rows->size()) + " indices for " +
                                   std::to_string(sum.values.rows()) + " rows of x"));
  if (auto room = task.make_room(sum.values.elements(), 4); !room) return fail(room.error());
  const auto scale = scale_of(task, width);
  if (!scale) return fail(scale.error());
  std::vector<double> row;
  for (size_t i = 0; i < rows->size(); ++i) {
    task.read("residual", (*rows)[i] * width, width, row);
    for (size_t j = 0; j < width; ++j) {
      double& value = sum.values.data[i * width + j];
      value += row[j];
      sum.slack[i * width + j] = kMargin * kFloat32Unit * std::abs(value);
    }
  }
  Inexact y = rms_normed(sum, width, *scale, {epsilon}).y;
  return task.give({output_of(std::move(y)), output_of(std::move(sum))});
}

}  // namespace ait::golden
