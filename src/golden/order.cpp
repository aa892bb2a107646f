#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "golden/families.h"
#include "golden/part.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

// Below this float32 has no full precision, and devices take it for zero.
constexpr double kSmallestNormal = 0x1p-126;

// A tensor as [outer, length, inner], with one dimension or several neighbours in the middle.
struct Middle {
  size_t outer = 1;
  size_t length = 1;
  size_t inner = 1;
};

Middle around(const Shape& shape, size_t first, size_t last) {
  Middle middle;
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t& part = i < first ? middle.outer : i <= last ? middle.length : middle.inner;
    part *= static_cast<size_t>(shape[i]);
  }
  return middle;
}

// The dimensions that a list names, ascending; each once and at least one.
Result<std::vector<size_t>> axes_of(Task& task, std::string_view key, size_t rank) {
  const std::vector<int64_t> given = task.param().integers(key, {});
  std::set<size_t> axes;
  for (const int64_t each : given) {
    const auto axis = axis_of(task, key, each, rank);
    if (!axis) return fail(axis.error());
    axes.insert(*axis);
  }
  if (axes.empty() || axes.size() != given.size())
    return fail(task.contradiction(std::string(key) + " " + shape_text(given) +
                                   " names no dimension, or one of them twice"));
  return std::vector<size_t>(axes.begin(), axes.end());
}

}  // namespace

Result<Expected> softmax(Task& task) {
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const auto axes = axes_of(task, "axes", task.shape("x").size());
  if (!axes) return fail(axes.error());
  if (axes->back() - axes->front() + 1 != axes->size())
    return fail(task.no_golden("axes that are not neighbours"));
  const Array x = task.values("x");
  if (auto room = task.make_room(x.elements(), 2); !room) return fail(room.error());
  const Middle middle = around(x.shape, axes->front(), axes->back());
  Output out = exact_output(x.shape, x.data);
  out.slack.resize(x.elements());
  for (size_t i = 0; i < middle.outer * middle.inner; ++i) {
    const size_t start = i / middle.inner * middle.length * middle.inner + i % middle.inner;
    const auto place = [&](size_t j) { return start + j * middle.inner; };
    double largest = x.data[start];
    for (size_t j = 1; j < middle.length; ++j) largest = std::max(largest, x.data[place(j)]);
    double total = 0, distances = 0;
    for (size_t j = 0; j < middle.length; ++j) {
      const double below = x.data[place(j)] - largest;
      const double e = std::exp(below);
      total += e;
      if (e > 0) distances += e * std::abs(below);
    }
    for (size_t j = 0; j < middle.length; ++j) {
      const double below = x.data[place(j)] - largest;
      const double y = std::exp(below) / total;
      out.values[place(j)] = y;
      // exp(a) is off by as much as a is, relative to itself; so is each term of the total.
      constexpr double kUnits = 4;  // of exp, the division and the roundings between
      const double units = kUnits + std::abs(below) + distances / total +
                           std::sqrt(static_cast<double>(middle.length));
      out.slack[place(j)] = kSmallestNormal + (y > 0 ? kMargin * kFloat32Unit * units * y : 0);
    }
  }
  return task.give({std::move(out)});
}

Result<Expected> reduce(Task& task) {
  using graph::ReduceType;
  const auto type = task.param().choice("reduceType", ReduceType::kUndefined);
  if (type == ReduceType::kUndefined) return fail(task.no_golden("reduceType 0"));
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const auto axes = axes_of(task, "axis", task.shape("x").size());
  if (!axes) return fail(axes.error());
  const Array x = task.values("x");
  // The step in the output of each dimension of x: none where it is reduced.
  std::vector<size_t> steps(x.rank(), 0);
  Shape shape;
  size_t elements = 1;
  for (size_t axis = x.rank(); axis-- > 0;) {
    if (std::binary_search(axes->begin(), axes->end(), axis)) continue;
    steps[axis] = elements;
    shape.insert(shape.begin(), x.shape[axis]);
    elements *= static_cast<size_t>(x.shape[axis]);
  }
  constexpr size_t kCopies = 2 + sizeof(Walk) / sizeof(double);
  if (auto room = task.make_room(elements, kCopies); !room) return fail(room.error());
  Output out;
  out.shape = std::move(shape);
  out.values.resize(elements);
  std::vector<bool> begun(elements, false), has_nan(elements, false);
  std::vector<Walk> sums(type == ReduceType::kSum ? elements : 0);
  for (size_t i = 0; i < x.elements(); ++i) {
    size_t to = 0;
    for (size_t axis = x.rank(), rest = i; axis-- > 0;) {
      const auto length = static_cast<size_t>(x.shape[axis]);
      to += rest % length * steps[axis];
      rest /= length;
    }
    double& value = out.values[to];
    const double term = x.data[i];
    if (type == ReduceType::kSum) {
      sums[to].add(term);
      continue;
    }
    const bool better = type == ReduceType::kMax ? term > value : term < value;
    if (!begun[to] || better) value = term;
    begun[to] = true;
    has_nan[to] = has_nan[to] || std::isnan(term);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    out.values[i] = sums[i].sum();
    if (!is_integer(task.dtype("x"))) out.slack.push_back(sums[i].slack());
  }
  // Whether the largest of numbers and NaN is NaN differs from device to device.
  if (std::find(has_nan.begin(), has_nan.end(), true) != has_nan.end()) out.undefined = has_nan;
  return task.give({std::move(out)});
}

Result<Expected> cumsum(Task& task) {
  const bool exclusive = task.param().flag("exclusive", false);
  const bool reverse = task.param().flag("reverse", false);
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const auto axes = axes_of(task, "axes", task.shape("x").size());
  if (!axes) return fail(axes.error());
  if (axes->size() != 1) return fail(task.no_golden("sums along several axes"));
  const Array x = task.values("x");
  const bool in_half = task.dtype("x") == DType::kFloat16;
  if (auto room = task.make_room(x.elements(), in_half ? 3 : 2); !room) return fail(room.error());
  const Middle middle = around(x.shape, axes->front(), axes->front());
  const auto sums = [&](auto rounded, std::vector<double>* slack) {
    std::vector<double> out(x.elements());
    for (size_t i = 0; i < middle.outer * middle.inner; ++i) {
      const size_t start = i / middle.inner * middle.length * middle.inner + i % middle.inner;
      double total = 0;
      Walk walk;
      for (size_t j = 0; j < middle.length; ++j) {
        const size_t at = start + (reverse ? middle.length - 1 - j : j) * middle.inner;
        if (exclusive) out[at] = total;
        if (exclusive && slack != nullptr) (*slack)[at] = walk.slack();
        total = rounded(total + x.data[at]);
        walk.add(x.data[at]);
        if (!exclusive) out[at] = total;
        if (!exclusive && slack != nullptr) (*slack)[at] = walk.slack();
      }
    }
    return out;
  };
  const auto exactly = [](double sum) { return sum; };
  if (is_integer(task.dtype("x")))
    return task.give({exact_output(x.shape, sums(exactly, nullptr))});
  Output out;
  out.shape = x.shape;
  out.slack.resize(x.elements());
  out.values = sums(exactly, &out.slack);
  if (in_half) {
    const auto half = [](double sum) { return round_to(DType::kFloat16, sum); };
    out.form = "sums in float32";
    out.forms.push_back({"sums rounded to float16 at every step", sums(half, nullptr)});
  }
  return task.give({std::move(out)});
}

Result<Expected> sort(Task& task) {
  const std::vector<int64_t> num = task.param().integers("num", {});
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  const size_t width = x.row_elements();
  if (num.size() != 1 || num[0] < 1 || static_cast<size_t>(num[0]) > width)
    return fail(task.contradiction("num " + shape_text(num) +
                                   " is not one number between 1 and the last dimension of x, " +
                                   std::to_string(width)));
  if (auto room = task.make_room(x.elements(), 4); !room) return fail(room.error());
  const auto count = static_cast<size_t>(num[0]);
  Output values;
  values.shape = x.shape;
  if (!values.shape.empty()) values.shape.back() = num[0];
  Output places;
  places.shape = values.shape;
  places.tie_of.assign(x.rows() * count, Output::kNoTie);
  for (size_t row = 0; row < x.rows(); ++row) {
    const auto data = x.row(row);
    const bool sortable = std::none_of(data.begin(), data.end(), [](double v) { return v != v; });
    const std::vector<size_t> order = falling_order(data);
    for (size_t first = 0, end = 0; first < count; first = end) {
      for (end = first + 1; end < width && data[order[end]] == data[order[first]];) ++end;
      for (size_t i = first; i < std::min(end, count); ++i) {
        values.values.push_back(data[order[i]]);
        places.values.push_back(static_cast<double>(order[i]));
        if (end - first > 1) places.tie_of[row * count + i] = places.ties.size();
      }
      if (end - first > 1)
        places.ties.emplace_back(order.begin() + static_cast<ptrdiff_t>(first),
                                 order.begin() + static_cast<ptrdiff_t>(end));
    }
    if (sortable) continue;
    // Where NaN belongs is up to the device.
    for (Output* out : {&values, &places}) {
      out->undefined.resize(row * count);
      out->undefined.resize((row + 1) * count, true);
    }
  }
  for (Output* out : {&values, &places})
    if (!out->undefined.empty()) out->undefined.resize(x.rows() * count);
  if (places.ties.empty()) places.tie_of.clear();
  return task.give({std::move(values), std::move(places)});
}

Result<Expected> nonzero(Task& task) {
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  if (auto room = task.make_room(x.elements(), x.rank() + 1); !room) return fail(room.error());
  std::vector<double> places(x.rank() * x.elements(), 0);
  size_t count = 0;
  for (size_t i = 0; i < x.elements(); ++i) {
    if (x.data[i] == 0) continue;
    for (size_t axis = x.rank(), rest = i; axis-- > 0;) {
      const auto length = static_cast<size_t>(x.shape[axis]);
      places[axis * x.elements() + count] = static_cast<double>(rest % length);
      rest /= length;
    }
    ++count;
  }
  const Shape shape = {static_cast<int64_t>(x.rank()), static_cast<int64_t>(x.elements())};
  return task.give(
      {exact_output(shape, std::move(places)), exact_output({1}, {static_cast<double>(count)})});
}

Result<Expected> onehot(Task& task) {
  const int64_t given_axis = task.param().integer("axis", 0);
  const int64_t depth = task.param().integer("depth", 0);
  if (auto given = task.takes({"x", "one", "zero"}); !given) return fail(given.error());
  const Array x = task.values("x");
  const auto axis = axis_of(task, "axis", given_axis, x.rank() + 1);
  if (!axis) return fail(axis.error());
  Shape shape = x.shape;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(*axis), depth);
  const auto elements = count_elements(shape);
  if (!elements)
    return fail(task.contradiction("an output of shape " + shape_text(shape) + " cannot be"));
  if (auto room = task.make_room(*elements); !room) return fail(room.error());
  const double one = task.values("one").data[0];
  const double zero = task.values("zero").data[0];
  const Middle middle = around(shape, *axis, *axis);
  std::vector<double> out;
  out.reserve(*elements);
  for (size_t i = 0; i < middle.outer; ++i)
    for (size_t j = 0; j < middle.length; ++j)
      for (size_t k = 0; k < middle.inner; ++k)
        out.push_back(x.data[i * middle.inner + k] == static_cast<double>(j) ? one : zero);
  return task.give({exact_output(std::move(shape), std::move(out))});
}

namespace {

// What several updates add up to at one place.
struct Sum {
  double value = 0;
  double magnitude = 0;
  size_t terms = 0;

  void add(double term) {
    value += term;
    magnitude += std::abs(term);
    ++terms;
  }
  // Sums in place are rounded to the type of the tensor each time.
  double slack(DType dtype) const {
    return sum_slack(terms, magnitude) + static_cast<double>(terms) * half_step(dtype, magnitude);
  }
};

}  // namespace

Result<Expected> index_add(Task& task) {
  using graph::IndexAddType;
  const auto type = task.param().choice("indexType", IndexAddType::kUndefined);
  const int64_t given_axis = task.param().integer("axis", 0);
  if (type == IndexAddType::kUndefined) return fail(task.no_golden("indexType 0"));
  const bool valid_only = type == IndexAddType::kAddValid;
  const std::string_view last = valid_only ? "validIndicesNum" : "alpha";
  if (auto given = task.takes({"~var", "indices", "updates", last}); !given)
    return fail(given.error());
  const Shape& var = task.shape("var");
  const auto axis = axis_of(task, "axis", given_axis, var.size());
  if (!axis) return fail(axis.error());
  if (valid_only && *axis != 0) return fail(task.no_golden("INDEX_ADD_VALID along another axis"));
  const auto rows = whole_numbers(task, "indices");
  if (!rows) return fail(rows.error());
  const Array updates = task.values("updates");
  Shape expected = var;
  expected[*axis] = static_cast<int64_t>(rows->size());
  if (updates.shape != expected)
    return fail(task.contradiction("updates have the shape " + shape_text(updates.shape) +
                                   ", not " + shape_text(expected)));
  size_t used = rows->size();
  if (valid_only) {
    const auto count = indices(task, last, rows->size() + 1);
    if (!count) return fail(count.error());
    used = count->front();
  }
  const double alpha = valid_only ? 1 : task.values("alpha").data[0];
  const Middle middle = around(var, *axis, *axis);
  std::map<size_t, std::vector<size_t>> updates_of;  // by row of var
  for (size_t i = 0; i < used; ++i) {
    const int64_t row = (*rows)[i];
    if (row < 0 || static_cast<size_t>(row) >= middle.length)
      return fail(task.contradiction("indices has the element " + std::to_string(row) +
                                     ", and the dimension " + std::to_string(*axis) + " of var " +
                                     std::to_string(middle.length) + " elements"));
    updates_of[static_cast<size_t>(row)].push_back(i);
  }
  if (auto room = task.make_room(updates.elements(), 4); !room) return fail(room.error());
  Writes writes(0, var, middle.inner);
  const bool exact = is_integer(task.dtype("var"));
  std::vector<double> old, values(middle.inner), slack(exact ? 0 : middle.inner);
  for (size_t i = 0; i < middle.outer; ++i)
    for (const auto& [row, from] : updates_of) {
      const size_t start = (i * middle.length + row) * middle.inner;
      task.read("var", start, middle.inner, old);
      for (size_t k = 0; k < middle.inner; ++k) {
        Sum sum;
        sum.add(old[k]);
        for (const size_t update : from)
          sum.add(alpha * updates.data[(i * rows->size() + update) * middle.inner + k]);
        values[k] = sum.value;
        if (!exact) slack[k] = sum.slack(task.dtype("var"));
      }
      writes.add(start, values, slack);
    }
  return task.give({std::move(writes).finish(task)});
}

Result<Expected> scatter_elements(Task& task) {
  using graph::ScatterReduction;
  const int64_t given_axis = task.param().integer("axis", -1);
  const auto reduction = task.param().choice("reduction", ScatterReduction::kNone);
  if (auto given = task.takes({"~input", "indices", "updates"}); !given) return fail(given.error());
  const Shape& input = task.shape("input");
  const auto axis = axis_of(task, "axis", given_axis, input.size());
  if (!axis) return fail(axis.error());
  const Array updates = task.values("updates");
  bool fits = updates.shape == task.shape("indices") && updates.rank() == input.size();
  for (size_t i = 0; fits && i < input.size(); ++i)
    fits = i == *axis || updates.shape[i] <= input[i];
  if (!fits)
    return fail(task.contradiction("input, indices and updates have the shapes " +
                                   shape_text(input) + ", " + shape_text(task.shape("indices")) +
                                   " and " + shape_text(updates.shape) +
                                   ", which do not go together"));
  const auto rows = indices(task, "indices", static_cast<size_t>(input[*axis]));
  if (!rows) return fail(rows.error());
  if (auto room = task.make_room(updates.elements(), 8); !room) return fail(room.error());
  const Strides steps = row_major_strides(input);
  const auto place = [&](size_t i) {
    size_t at = 0;
    for (size_t dim = input.size(), rest = i; dim-- > 0;) {
      const auto length = static_cast<size_t>(updates.shape[dim]);
      at += (dim == *axis ? (*rows)[i] : rest % length) * static_cast<size_t>(steps[dim]);
      rest /= length;
    }
    return at;
  };
  Writes writes(0, input, 1);
  if (reduction == ScatterReduction::kNone) {
    for (size_t i = 0; i < updates.elements(); ++i) writes.add(place(i), {&updates.data[i], 1});
    return task.give({std::move(writes).finish(task)});
  }
  std::map<size_t, Sum> sums;
  std::vector<double> old;
  for (size_t i = 0; i < updates.elements(); ++i) {
    const auto [found, is_new] = sums.try_emplace(place(i));
    if (is_new) {
      task.read("input", found->first, 1, old);
      found->second.add(old[0]);
    }
    found->second.add(updates.data[i]);
  }
  const bool exact = is_integer(task.dtype("input"));
  for (const auto& [at, sum] : sums) {
    const double slack = sum.slack(task.dtype("input"));
    writes.add(at, {&sum.value, 1}, {&slack, exact ? 0U : 1U});
  }
  return task.give({std::move(writes).finish(task)});
}

}  // namespace ait::golden
