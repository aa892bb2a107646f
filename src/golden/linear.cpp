#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "golden/families.h"
#include "golden/matmul.h"
#include "golden/rounder.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using graph::LinearQuantMode;

// A tensor of one number may have no dimension.
size_t last_dim(const Shape& shape) {
  return shape.empty() ? 1 : static_cast<size_t>(shape.back());
}

// What the weight's columns must be, as bias and scales and the recorded output have it.
std::optional<size_t> columns_of(const Task& task) {
  if (const auto columns = recorded_columns(task)) return columns;
  for (const std::string_view name : {"deqScale", "bias"})
    if (task.has(name)) return last_dim(task.shape(name));
  return std::nullopt;
}

Result<Product> read_product(Task& task, ProductMode mode, bool turn_weight) {
  if (task.fractal("x")) return fail(task.no_golden("x in FRACTAL_NZ"));
  const Array x = task.values("x");
  const auto depth = depth_of(task, x, mode);
  if (!depth) return fail(depth.error());
  const auto weight = read_weight(task, "weight", turn_weight, *depth, columns_of(task));
  if (!weight) return fail(weight.error());
  return product_of(task, x, *weight, mode);
}

// The library multiplies and then adds a half bias to what was rounded; newer devices do both at
// once. A bias of float32 is added as it is, by newer devices in the type of x.
Result<Output> add_bias(Task& task, Product product, bool ein_sum) {
  auto bias = Channels::over(task, "bias", task.values("bias").data, product);
  if (!bias) return fail(bias.error());
  const DType type = task.dtype("bias");
  const bool rounds_product = is_half(type) && !ein_sum;
  const bool rounds_bias = !is_half(type) && is_half(task.dtype("x")) && !ein_sum;
  const Rounder rounder(type);
  Form other;
  if (rounds_product || rounds_bias) {
    if (auto room = task.make_room(product.values.size()); !room) return fail(room.error());
    other.values = zeros(product.values.size());
  }
  parallel_for(product.rows, 0, [&](size_t row) {
    for (size_t column = 0; column < product.columns; ++column) {
      const size_t i = row * product.columns + column;
      double& value = product.values[i];
      double& slack = product.slack[i];
      const double term = bias->at(product, row, column);
      const double sum = value + term;
      if (rounds_product) {
        other.values[i] = sum;
        const double rounded = rounder.round(value);
        slack = std::max(slack, rounder.slack_of_rounded(value, slack));
        value = rounded + term;
      } else {
        if (rounds_bias) other.values[i] = value + round_to(task.dtype("x"), term);
        value = sum;
      }
      slack += kMargin * kFloat32Unit * (std::abs(term) + std::abs(value));
    }
  });
  Output out = output_of(std::move(product));
  if (rounds_product) {
    out.form = "bias added to the rounded product";
    other.name = "bias added to the unrounded product";
  } else if (rounds_bias) {
    out.form = "bias added in float32";
    other.name = "bias rounded to the type of x";
  }
  if (!other.values.empty() && other.values != out.values) {
    out.forms.push_back(std::move(other));
  } else {
    out.form.clear();
  }
  return out;
}

Result<Output> add_accumulator(Task& task, Product product) {
  const Array accum = task.values("accum");
  if (accum.elements() != product.values.size())
    return fail(task.contradiction("accum of shape " + shape_text(accum.shape) +
                                   " cannot be added to a product of shape " +
                                   shape_text(product.shape)));
  for (size_t i = 0; i < accum.elements(); ++i) {
    product.values[i] += accum.data[i];
    product.slack[i] += sum_slack(product.depth + 1, std::abs(accum.data[i]));
  }
  return output_of(std::move(product));
}

Result<Expected> float_linear(Task& task, const ProductMode& mode, bool turn_weight, bool has_bias,
                              bool accumulates) {
  std::vector<std::string_view> names = {"x", "~weight"};
  if (has_bias) names.emplace_back("bias");
  if (accumulates) names.emplace_back("accum");
  if (auto given = task.takes(names); !given) return fail(given.error());
  if (info(task.dtype("x")).kind != DTypeKind::kFloat ||
      info(task.dtype("weight")).kind != DTypeKind::kFloat)
    return fail(task.no_golden("x of type " + std::string(name(task.dtype("x"))) +
                               " and a weight of type " + std::string(name(task.dtype("weight")))));
  auto product = read_product(task, mode, turn_weight);
  if (!product) return fail(product.error());
  Result<Output> out = has_bias      ? add_bias(task, std::move(*product), mode.ein_sum)
                       : accumulates ? add_accumulator(task, std::move(*product))
                                     : output_of(std::move(*product));
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

// The product of int8 is a whole number, which a scale for each column, and maybe one for each row,
// makes a real one.
Result<Expected> quantised_linear(Task& task, ProductMode mode, bool turn_weight, bool has_bias,
                                  bool per_token) {
  std::vector<std::string_view> names = {"x", "~weight"};
  if (has_bias) names.emplace_back("bias");
  names.emplace_back("deqScale");
  if (per_token) names.emplace_back("perTokenScale");
  if (auto given = task.takes(names); !given) return fail(given.error());
  if (task.dtype("x") != DType::kInt8 || task.dtype("weight") != DType::kInt8)
    return fail(task.no_golden("a quantised product of " + std::string(name(task.dtype("x"))) +
                               " and " + std::string(name(task.dtype("weight")))));
  mode.exact = true;
  auto product = read_product(task, mode, turn_weight);
  if (!product) return fail(product.error());
  const auto bias = Channels::over(task, "bias", task.values("bias").data, *product);
  if (!bias) return fail(bias.error());
  Scales given = read_scales(task, "deqScale");
  const auto scale = Channels::over(task, "deqScale", std::move(given.values), *product);
  if (!scale) return fail(scale.error());
  const std::vector<double> rows = task.values("perTokenScale").data;
  if (per_token && rows.size() != product->rows && rows.size() != product->rows / product->batches)
    return fail(task.contradiction("perTokenScale has " + std::to_string(rows.size()) +
                                   " elements, not one for each of " +
                                   std::to_string(product->rows) + " rows"));
  std::optional<Form> other;
  if (!given.cut.empty()) {
    const auto cut = Channels::over(task, "deqScale", std::move(given.cut), *product);
    if (!cut) return fail(cut.error());
    if (auto room = task.make_room(2 * product->values.size()); !room) return fail(room.error());
    Product copy = *product;
    dequantise(copy, *bias, *cut, rows);
    other = Form{std::string(kCutScales), std::move(copy.values)};
  }
  dequantise(*product, *bias, *scale, rows);
  Output out = output_of(std::move(*product));
  if (other) {
    out.form = kWholeScales;
    out.forms.push_back(std::move(*other));
  }
  return task.give({std::move(out)});
}

}  // namespace

Result<Expected> linear(Task& task) {
  ProductMode mode;
  mode.turn_x = task.param().flag("transposeA", false);
  const bool turn_weight = task.param().flag("transposeB", true);
  const bool has_bias = task.param().flag("hasBias", true);
  const bool accumulates = task.param().flag("enAccum", false);
  const int64_t type = task.param().integer("outDataType", -1);
  mode.ein_sum = task.param().choice("matmulType", graph::MatmulType::kUndefined) ==
                 graph::MatmulType::kEinSum;
  const auto quant = task.param().choice("quantMode", LinearQuantMode::kUndefined);
  const auto& inputs = task.operation().inputs;
  const bool quantised =
      type != -1 || quant != LinearQuantMode::kUndefined ||
      task.operation().type == "LinearQuantOperation" ||
      (!inputs.empty() && inputs[0] && inputs[0]->tensor.dtype() == DType::kInt8);
  if (has_bias && accumulates) return fail(task.contradiction("hasBias and enAccum are both true"));
  if (quantised && (accumulates || mode.ein_sum))
    return fail(task.no_golden(accumulates ? "a quantised product with enAccum"
                                           : "a quantised product with EIN_SUM"));
  if (mode.ein_sum && mode.turn_x) return fail(task.no_golden("EIN_SUM with transposeA"));
  if (mode.ein_sum && accumulates) return fail(task.no_golden("EIN_SUM with enAccum"));
  if (quantised)
    return quantised_linear(task, mode, turn_weight, has_bias, quant == LinearQuantMode::kPerToken);
  return float_linear(task, mode, turn_weight, has_bias, accumulates);
}

std::vector<size_t> changed_by_linear(graph::AtbParam& param) {
  if (param.flag("enAccum", false)) return {2};
  return {};
}

Result<Expected> matmul(Task& task) {
  ProductMode mode;
  mode.turn_x = task.param().flag("transposeA", false);
  return float_linear(task, mode, task.param().flag("transposeB", false), false, false);
}

Result<Expected> linear_sparse(Task& task) {
  ProductMode mode;
  mode.turn_x = task.param().flag("transposeA", false);
  const bool turn_weight = task.param().flag("transposeB", true);
  if (auto given = task.takes({"x", "~weight", "bias", "deqScale", "?idx"}); !given)
    return fail(given.error());
  // How a weight is compressed is not known; one that has all its elements is not.
  const Shape& x = task.shape("x");
  const size_t rank = x.size();
  const size_t depth = rank < 2 ? 0 : static_cast<size_t>(x[rank - (mode.turn_x ? 2 : 1)]);
  const size_t columns = last_dim(task.shape("bias"));
  const Tensor& weight = task.tensor("weight");
  if (weight.shape().size() < 2 || weight.elements() / columns != depth ||
      weight.elements() % columns != 0)
    return fail(task.no_golden("a compressed weight of " + std::to_string(weight.elements()) +
                               " elements, where " + std::to_string(columns) + " x " +
                               std::to_string(depth) + " are multiplied with,"));
  return quantised_linear(task, mode, turn_weight, true, false);
}

}  // namespace ait::golden
