#include <algorithm>
#include <cmath>

#include "golden/collective.h"
#include "golden/families.h"
#include "golden/matmul.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using graph::ParallelQuantType;
using graph::ParallelType;

struct Keys {
  bool turn_weight = true;
  bool has_residual = false;
  bool keeps_gathered = false;
  ParallelType type = ParallelType::kUndefined;
  ParallelQuantType quant = ParallelQuantType::kUndefined;
  size_t group_rows = 0;               // of the weight, that share a scale
  DType real_type = DType::kBFloat16;  // of what is made of integers
  std::vector<std::string_view> names;
};

Result<Keys> read_keys(Task& task) {
  Keys keys;
  keys.turn_weight = task.param().flag("transWeight", true);
  keys.has_residual = task.param().flag("hasResidual", false);
  keys.keeps_gathered = task.param().flag("keepIntermediate", false);
  keys.quant = task.param().choice("quantType", ParallelQuantType::kUndefined);
  keys.type = task.param().choice("type", ParallelType::kLinearAllReduce);
  constexpr int64_t kHalf = 1;
  if (task.param().integer("outDataType", -1) == kHalf) keys.real_type = DType::kFloat16;
  const int64_t group_rows = task.param().integer("quantGroupSize", 0);
  const std::string backend = task.param().text("backend", "hccl");
  const bool quantised = keys.quant != ParallelQuantType::kUndefined;
  if (backend == "hccl" || backend == "lccl") {  // these know nothing else
    if (quantised) return fail(task.no_golden("a quantised product with backend " + backend));
    keys.type = ParallelType::kLinearAllReduce;
  } else if (backend != "lcoc" && backend != "mc2") {
    return fail(task.no_golden("backend " + printable(backend)));
  }
  if (keys.type == ParallelType::kAllGatherLinearReduceScatter)
    return fail(task.no_golden("type 4, whose groups of ranks (twoDimTPInfo) are not recorded"));
  if (keys.type < ParallelType::kLinearAllReduce || keys.type > ParallelType::kPureLinear)
    return fail(task.no_golden("type " + std::to_string(static_cast<int>(keys.type)) +
                               ", which has not been checked against a result of the library"));
  if (keys.has_residual && keys.type == ParallelType::kPureLinear)
    return fail(task.no_golden("type PURE_LINEAR with a residual"));
  if (keys.quant == ParallelQuantType::kPerGroup) {
    if (group_rows < 1)
      return fail(task.contradiction("quantGroupSize is " + std::to_string(group_rows)));
    keys.group_rows = static_cast<size_t>(group_rows);
  }
  keys.names = {"x", "~weight"};
  if (quantised) keys.names.insert(keys.names.end(), {"?bias", "scale"});
  if (keys.has_residual) keys.names.emplace_back("residual");
  if (keys.quant == ParallelQuantType::kPerToken) keys.names.emplace_back("perTokenScale");
  return keys;
}

// The product of one rank. `cut` is the same with scales as the device may read them, or empty.
struct Share {
  Product product;
  std::vector<double> cut;
};

std::vector<double> numbers_of(const Task& task, std::string_view name) {
  return task.values(name).data;
}

// The weight in the type of x: (weight + bias) * scale, rounded. One bias and one scale for all, for
// each column, or for each column of each group of rows.
Result<Weight> make_real(Task& task, const Keys& keys, Weight weight,
                         const std::vector<double>& scale) {
  const std::vector<double> bias = numbers_of(task, "bias");
  const size_t groups =
      keys.group_rows == 0 ? 1 : (weight.depth + keys.group_rows - 1) / keys.group_rows;
  const auto fits = [&](const std::vector<double>& numbers) {
    return numbers.size() == 1 || numbers.size() == weight.columns ||
           numbers.size() == groups * weight.columns;
  };
  if (!fits(scale) || (!bias.empty() && !fits(bias)) || weight.count != 1)
    return fail(task.contradiction(
        "scale has " + std::to_string(scale.size()) + " elements and bias " +
        std::to_string(bias.size()) + " for a weight of " + std::to_string(weight.depth) + " x " +
        std::to_string(weight.columns) + " in " + std::to_string(groups) + " groups"));
  const auto of = [&](const std::vector<double>& numbers, size_t row, size_t column) {
    if (numbers.empty()) return 0.0;
    if (numbers.size() == 1) return numbers[0];
    if (numbers.size() == weight.columns) return numbers[column];
    return numbers[row / keys.group_rows * weight.columns + column];
  };
  const DType type = task.dtype("x");
  for (size_t row = 0; row < weight.depth; ++row)
    for (size_t column = 0; column < weight.columns; ++column) {
      double& value = weight.at(0, row, column);
      value = round_to(type, (value + of(bias, row, column)) * of(scale, row, column));
    }
  return weight;
}

// Integers are multiplied, and the products made real.
Result<Share> product_of_integers(Task& task, const Keys& keys, const Array& x,
                                  const Weight& weight, Scales scales) {
  if (keys.quant == ParallelQuantType::kPerGroup)
    return fail(task.no_golden("quantType PER_GROUP of a product of int8"));
  ProductMode mode;
  mode.exact = true;
  auto product = product_of(task, x, weight, mode);
  if (!product) return fail(product.error());
  const auto bias = Channels::over(task, "bias", numbers_of(task, "bias"), *product, true);
  if (!bias) return fail(bias.error());
  const auto scale = Channels::over(task, "scale", std::move(scales.values), *product, true);
  if (!scale) return fail(scale.error());
  const std::vector<double> rows = numbers_of(task, "perTokenScale");
  if (!rows.empty() && rows.size() != product->rows)
    return fail(task.contradiction("perTokenScale has " + std::to_string(rows.size()) +
                                   " elements, not one for each of " +
                                   std::to_string(product->rows) + " rows"));
  Share part;
  if (!scales.cut.empty()) {
    if (auto room = task.make_room(2 * product->values.size()); !room) return fail(room.error());
    Product other = *product;
    const auto cut = Channels::over(task, "scale", std::move(scales.cut), other, true);
    if (!cut) return fail(cut.error());
    dequantise(other, *bias, *cut, rows);
    part.cut = std::move(other.values);
  }
  dequantise(*product, *bias, *scale, rows);
  part.product = std::move(*product);
  return part;
}

Result<Share> product_of_rank(Task& task, const Keys& keys, const Array& x) {
  if (task.fractal("x")) return fail(task.no_golden("x in FRACTAL_NZ"));
  const auto depth = depth_of(task, x, {});
  if (!depth) return fail(depth.error());
  auto weight = read_weight(task, "weight", keys.turn_weight, *depth, recorded_columns(task));
  if (!weight) return fail(weight.error());
  const bool quantised = keys.quant != ParallelQuantType::kUndefined;
  const bool x_is_int8 = task.dtype("x") == DType::kInt8;
  const bool weight_is_int8 = task.dtype("weight") == DType::kInt8;
  if (x_is_int8 ? !(quantised && weight_is_int8) : weight_is_int8 != quantised)
    return fail(task.no_golden("quantType " + std::to_string(static_cast<int>(keys.quant)) +
                               " with x of type " + std::string(name(task.dtype("x"))) +
                               " and a weight of type " + std::string(name(task.dtype("weight")))));
  Share part;
  if (!quantised) {
    auto product = product_of(task, x, *weight, {});
    if (!product) return fail(product.error());
    part.product = std::move(*product);
    return part;
  }
  Scales scales = read_scales(task, "scale");
  if (x_is_int8) return product_of_integers(task, keys, x, *weight, std::move(scales));
  if (keys.quant == ParallelQuantType::kPerToken)
    return fail(
        task.no_golden("quantType PER_TOKEN with x of type " + std::string(name(task.dtype("x")))));
  const auto multiply = [&](const std::vector<double>& scale) -> Result<Product> {
    auto copy = in_memory(task, *weight);
    if (!copy) return fail(copy.error());
    const auto real = make_real(task, keys, std::move(*copy), scale);
    if (!real) return fail(real.error());
    return product_of(task, x, *real, {});
  };
  auto product = multiply(scales.values);
  if (!product) return fail(product.error());
  part.product = std::move(*product);
  if (!scales.cut.empty()) {
    auto other = multiply(scales.cut);
    if (!other) return fail(other.error());
    part.cut = std::move(other->values);
  }
  return part;
}

// What the library rounds on the way: each rank's product before it is sent, sums before the last
// one, and a sum before the residual is added. `magnitude` is that of what is rounded.
double rounded_on_the_way(const Task& task, const Keys& keys, double magnitude) {
  const DType type = task.dtype("x") == DType::kInt8 ? keys.real_type : task.dtype("x");
  return half_step(task.output_type(0, type), magnitude);
}

// The sum of the products of all ranks.
Result<Share> sum_of_ranks(Task& task, const Keys& keys, const Group& group) {
  Share total;
  std::vector<double> magnitudes;
  for (size_t rank = 0; rank < group.size; ++rank) {
    if (auto given = take(task, group, rank, keys.names); !given) return fail(given.error());
    auto part = product_of_rank(task, keys, task.values("x"));
    if (!part) return fail(part.error());
    const size_t elements = part->product.values.size();
    if (rank == 0) {
      if (auto room = task.make_room(2 * elements); !room) return fail(room.error());
      total.product = part->product;
      std::fill(total.product.values.begin(), total.product.values.end(), 0.0);
      std::fill(total.product.slack.begin(), total.product.slack.end(), 0.0);
      magnitudes.assign(elements, 0.0);
    }
    if (part->product.shape != total.product.shape)
      return fail(task.contradiction(
          "the product has the shape " + shape_text(total.product.shape) + " on rank 0 and " +
          shape_text(part->product.shape) + " on rank " + std::to_string(rank)));
    if (!part->cut.empty() && total.cut.empty()) total.cut = total.product.values;
    for (size_t i = 0; i < elements; ++i) {
      const double value = part->product.values[i];
      total.product.values[i] += value;
      if (!total.cut.empty()) total.cut[i] += part->cut.empty() ? value : part->cut[i];
      magnitudes[i] += std::abs(value);
      total.product.slack[i] += part->product.slack[i];
      if (group.size > 1) total.product.slack[i] += rounded_on_the_way(task, keys, value);
    }
  }
  if (group.size > 2)
    for (size_t i = 0; i < magnitudes.size(); ++i)
      total.product.slack[i] +=
          static_cast<double>(group.size - 2) * rounded_on_the_way(task, keys, magnitudes[i]);
  return total;
}

// This rank's rows of a sum.
Result<Share> rows_of_rank(const Task& task, const Group& group, Share all) {
  Shape& shape = all.product.shape;
  int64_t& rows = shape.size() == 3 && shape[0] == 1 ? shape[1] : shape[0];
  const auto size = static_cast<int64_t>(group.size);
  if (rows % size != 0)
    return fail(task.contradiction("the rows of a product of shape " + shape_text(shape) +
                                   " cannot be dealt out to " + std::to_string(size) + " ranks"));
  rows /= size;
  const auto cut = [&](std::vector<double>& numbers) {
    const size_t count = numbers.size() / group.size;
    const auto first = numbers.begin() + static_cast<ptrdiff_t>(group.rank * count);
    numbers = std::vector<double>(first, first + static_cast<ptrdiff_t>(count));
  };
  cut(all.product.values);
  cut(all.product.slack);
  cut(all.cut);
  return all;
}

Result<Output> finish(Task& task, const Keys& keys, Share part) {
  Product& product = part.product;
  if (keys.has_residual) {
    const Array residual = task.values("residual");
    if (residual.elements() != product.values.size())
      return fail(task.contradiction("residual of shape " + shape_text(residual.shape) +
                                     " cannot be added to a product of shape " +
                                     shape_text(product.shape)));
    for (size_t i = 0; i < residual.elements(); ++i) {
      product.slack[i] += rounded_on_the_way(task, keys, product.values[i]);
      product.values[i] += residual.data[i];
      if (!part.cut.empty()) part.cut[i] += residual.data[i];
    }
  }
  Output out = output_of(std::move(product));
  if (!part.cut.empty()) {
    out.form = kWholeScales;
    out.forms.push_back({std::string(kCutScales), std::move(part.cut)});
  }
  return out;
}

Result<Expected> gathered_linear(Task& task, const Keys& keys, const Group& group) {
  auto parts = x_of_all(task, group, keys.names);
  if (!parts) return fail(parts.error());
  Array all = std::move(parts->front());
  if (all.rank() < 2)
    return fail(task.contradiction("x of shape " + shape_text(all.shape) +
                                   " has not two dimensions or more"));
  if (auto room = task.make_room(group.size * all.elements()); !room) return fail(room.error());
  for (size_t rank = 1; rank < group.size; ++rank)
    all.data.insert(all.data.end(), (*parts)[rank].data.begin(), (*parts)[rank].data.end());
  all.shape[0] *= static_cast<int64_t>(group.size);
  if (auto given = take(task, group, group.rank, keys.names); !given) return fail(given.error());
  auto part = product_of_rank(task, keys, all);
  if (!part) return fail(part.error());
  auto y = finish(task, keys, std::move(*part));
  if (!y) return fail(y.error());
  std::vector<Output> outputs;
  outputs.push_back(std::move(*y));
  if (keys.keeps_gathered) outputs.push_back(exact_output(all.shape, std::move(all.data)));
  return task.give(std::move(outputs));
}

}  // namespace

Result<Expected> linear_parallel(Task& task) {
  const auto keys = read_keys(task);
  if (!keys) return fail(keys.error());
  Result<Share> part;
  if (keys->type == ParallelType::kPureLinear) {
    if (auto given = task.takes(keys->names); !given) return fail(given.error());
    part = product_of_rank(task, *keys, task.values("x"));
  } else {
    const auto group = read_group(task);
    if (!group) return fail(group.error());
    if (keys->type == ParallelType::kAllGatherLinear) return gathered_linear(task, *keys, *group);
    part = sum_of_ranks(task, *keys, *group);
    if (part && keys->type == ParallelType::kLinearReduceScatter)
      part = rows_of_rank(task, *group, std::move(*part));
    if (!part) return fail(part.error());
    if (auto given = take(task, *group, group->rank, keys->names); !given)
      return fail(given.error());
  }
  if (!part) return fail(part.error());
  auto out = finish(task, *keys, std::move(*part));
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

}  // namespace ait::golden
