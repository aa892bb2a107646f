// What experts compute: products of those rows of x that go to an expert with its weight.
#include <algorithm>
#include <cmath>

#include "golden/families.h"
#include "golden/matmul.h"
#include "golden/product_slack.h"
#include "golden/quantise.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

// One product that is part of an output, with what float32 may be off in it.
struct Block {
  std::vector<double> values;
  std::vector<double> slack;
};

Block multiply_block(const Task& task, const Matrix& a, const Matrix& b, bool exact) {
  Block block{std::vector<double>(a.rows * b.columns), std::vector<double>(a.rows * b.columns)};
  std::vector<double> columns;
  task.multiply(a, b, block.values.data(), exact ? nullptr : &columns);
  if (exact) return block;
  const ProductSlack slack(a, b, columns);
  for (size_t row = 0; row < a.rows; ++row)
    for (size_t column = 0; column < b.columns; ++column) {
      const size_t i = row * b.columns + column;
      block.slack[i] = slack.at(row, column, block.values[i]);
    }
  return block;
}

}  // namespace

Result<Expected> grouped_matmul_with_routing(Task& task) {
  const bool turned = task.param().flag("transposeB", true);
  const int64_t top = task.param().integer("topK", 0);
  const auto kind = task.param().has("moeType")
                        ? task.param().choice("moeType", graph::GroupedMatmulType::kUp)
                        : task.param().choice("groupedMatmulType", graph::GroupedMatmulType::kUp);
  const bool quantised = task.param().integer("outDataType", -1) != -1;
  const bool up = kind == graph::GroupedMatmulType::kUp;
  std::vector<std::string_view> names = {"x", "~weight", "expertCount", "expertIndex"};
  if (quantised) names.insert(names.end(), {"nScale", "mScale"});
  if (auto given = task.takes(names); !given) return fail(given.error());
  const bool integers = task.dtype("x") == DType::kInt8 && task.dtype("weight") == DType::kInt8;
  if (integers != quantised || task.fractal("x"))
    return fail(task.no_golden("x of type " + std::string(name(task.dtype("x"))) +
                               " and a weight of type " + std::string(name(task.dtype("weight"))) +
                               (quantised ? " with outDataType" : " without outDataType")));
  const Array x = task.values("x");
  if (x.rank() != 2)
    return fail(
        task.contradiction("x of shape " + shape_text(x.shape) + " has not two dimensions"));
  const size_t depth = x.dim(1);
  const auto weight = read_weight(task, "weight", turned, depth, recorded_columns(task));
  if (!weight) return fail(weight.error());
  if (top < 1 || (!up && x.dim(0) % static_cast<size_t>(top) != 0))
    return fail(task.contradiction("topK is " + std::to_string(top) + " with x of shape " +
                                   shape_text(x.shape)));
  const auto factor = static_cast<size_t>(top);
  const size_t columns = weight->columns;
  // Tokens, and rows in the order of the experts.
  const size_t tokens = up ? x.dim(0) : x.dim(0) / factor;
  const auto rows = count_elements(Shape{static_cast<int64_t>(tokens), top});
  if (!rows) return fail(task.contradiction("topK is " + std::to_string(top)));
  const auto index = indices(task, "expertIndex", tokens);
  if (!index) return fail(index.error());
  const auto counts = ends(task, "expertCount", *rows);
  if (!counts) return fail(counts.error());
  if (index->size() != *rows || counts->size() != weight->count)
    return fail(task.contradiction("expertIndex has " + std::to_string(index->size()) +
                                   " elements for " + std::to_string(*rows) +
                                   " rows, and expertCount " + std::to_string(counts->size()) +
                                   " for " + std::to_string(weight->count) + " experts"));
  const Array column_scale = task.values("nScale");
  const Array row_scale = task.values("mScale");
  if (quantised &&
      (column_scale.elements() != weight->count * columns || row_scale.elements() != x.dim(0)))
    return fail(task.contradiction("nScale of shape " + shape_text(column_scale.shape) +
                                   " and mScale of shape " + shape_text(row_scale.shape) +
                                   " do not go with x and weight"));
  const Shape shape = {static_cast<int64_t>(up ? *rows : tokens), static_cast<int64_t>(columns)};
  const auto elements = count_elements(shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(4 * *elements + x.elements()); !room) return fail(room.error());
  Output out = exact_output(shape, zeros(*elements));
  out.slack = zeros(*elements);
  size_t first = 0;
  for (size_t expert = 0; expert < weight->count; ++expert) {
    const size_t count = (*counts)[expert] - first;
    if (count == 0) continue;
    std::vector<double> given;
    given.reserve(count * depth);
    for (size_t i = first; i < first + count; ++i) {
      const auto row = x.row(up ? (*index)[i] : i);
      given.insert(given.end(), row.begin(), row.end());
    }
    const Block block = multiply_block(task, row_major(given.data(), count, depth),
                                       weight->matrix(expert), quantised);
    for (size_t i = 0; i < count; ++i)
      for (size_t column = 0; column < columns; ++column) {
        double value = block.values[i * columns + column];
        double slack = block.slack[i * columns + column];
        if (quantised) {
          constexpr double kRoundings = 3;  // the sum to float32, and two products
          value *= row_scale.data[up ? (*index)[first + i] : first + i] *
                   column_scale.data[expert * columns + column];
          slack = kMargin * kRoundings * kFloat32Unit * std::abs(value);
        }
        const size_t row = up ? first + i : (*index)[first + i];
        double& place = out.values[row * columns + column];
        place += value;
        out.slack[row * columns + column] +=
            slack + (up ? 0 : kMargin * kFloat32Unit * std::abs(place));
      }
    first += count;
  }
  if (up && first < *rows) {  // rows that no expert has
    out.undefined.assign(*elements, false);
    std::fill(out.undefined.begin() + static_cast<ptrdiff_t>(first * columns), out.undefined.end(),
              true);
  }
  return task.give({std::move(out)});
}

Result<Expected> grouped_matmul_inplace_add(Task& task) {
  const bool turn_x = task.param().flag("transposeA", false);
  const bool turn_weight = task.param().flag("transposeB", false);
  if (auto given = task.takes({"x", "weight", "groupList", "accum"}); !given)
    return fail(given.error());
  if (task.fractal("x") || task.fractal("weight"))
    return fail(task.no_golden("x or weight in FRACTAL_NZ"));
  const Array x = task.values("x");
  const Array weight = task.values("weight");
  if (x.rank() != 2 || weight.rank() != 2 ||
      x.dim(turn_x ? 0 : 1) != weight.dim(turn_weight ? 1 : 0))
    return fail(task.contradiction("x of shape " + shape_text(x.shape) + " and weight of shape " +
                                   shape_text(weight.shape) + " cannot be multiplied"));
  const Matrix a_stored = row_major(x.data.data(), x.dim(0), x.dim(1));
  const Matrix b_stored = row_major(weight.data.data(), weight.dim(0), weight.dim(1));
  const Matrix a = turn_x ? transposed(a_stored) : a_stored;
  const Matrix b = turn_weight ? transposed(b_stored) : b_stored;
  const auto groups = ends(task, "groupList", a.columns);
  if (!groups) return fail(groups.error());
  Array accum = task.values("accum");
  const auto elements =
      count_elements(Shape{static_cast<int64_t>(groups->size()), static_cast<int64_t>(a.rows),
                           static_cast<int64_t>(b.columns)});
  if (!elements || accum.elements() != *elements)
    return fail(task.contradiction("accum of shape " + shape_text(accum.shape) + " does not hold " +
                                   std::to_string(groups->size()) + " products of " +
                                   std::to_string(a.rows) + " x " + std::to_string(b.columns)));
  if (auto room = task.make_room(*elements + 2 * a.rows * b.columns); !room)
    return fail(room.error());
  std::vector<double> slack = zeros(*elements);
  const size_t size = a.rows * b.columns;
  size_t first = 0;
  for (size_t group = 0; group < groups->size(); ++group) {
    const size_t depth = (*groups)[group] - first;
    const Matrix some_a = part_of(a, 0, a.rows, first, depth);
    const Matrix some_b = part_of(b, first, depth, 0, b.columns);
    const Block block = multiply_block(task, some_a, some_b, false);
    for (size_t i = 0; i < size; ++i) {
      double& place = accum.data[group * size + i];
      slack[group * size + i] =
          block.slack[i] + kMargin * kFloat32Unit * (std::abs(place) + std::abs(block.values[i]));
      place += block.values[i];
    }
    first += depth;
  }
  Output out = exact_output(std::move(accum.shape), std::move(accum.data));
  out.slack = std::move(slack);
  return task.give({std::move(out)});
}

std::vector<size_t> changed_by_inplace_add(graph::AtbParam&) { return {3}; }

// swish(a) * b with a and b the halves of each row, and the row quantised.
Result<Expected> swiglu_quant(Task& task) {
  task.param().choice("quantType", graph::SwigluQuantType::kPerToken);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  if (x.rank() != 2 || x.dim(1) % 2 != 0)
    return fail(task.contradiction("the rows of x of shape " + shape_text(x.shape) +
                                   " have no two halves"));
  const size_t half = x.dim(1) / 2;
  if (auto room = task.make_room(2 * x.elements()); !room) return fail(room.error());
  Array y{{x.shape[0], static_cast<int64_t>(half)}, {}};
  std::vector<double> magnitudes;
  for (size_t row = 0; row < x.dim(0); ++row)
    for (size_t i = 0; i < half; ++i) {
      const double a = x.row(row)[i];
      y.data.push_back(a / (1 + std::exp(-a)) * x.row(row)[half + i]);
      // An exponential is off by as much as what it is of, relative to itself.
      magnitudes.push_back(std::abs(y.data.back()) * (1 + std::abs(a)));
    }
  const Output exact = function_output(y.shape, y.data, magnitudes);
  return task.give(quantise_rows(y, exact.slack, false));
}

}  // namespace ait::golden
