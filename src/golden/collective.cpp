#include "golden/collective.h"

#include <algorithm>
#include <cmath>

#include "golden/families.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using graph::AllReduceQuantType;
using Counts = std::vector<size_t>;
// Of one tensor; two of these can be added.
constexpr size_t kMostElements = size_t{1} << 53;

// A list of numbers of elements, one for each rank: a tensor or, where none was recorded, a key.
Result<Counts> read_counts(const Task& task, graph::AtbParam& param, std::string_view name,
                           size_t length) {
  std::vector<double> given;
  if (task.has(name)) {
    given = task.values(name).data;
  } else if (length == 1) {
    given = {static_cast<double>(param.integer(name, -1))};
  } else {
    for (const int64_t count : param.integers(name, {}))
      given.push_back(static_cast<double>(count));
  }
  if (given.size() != length)
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(given.size()) +
                                   " numbers, not " + std::to_string(length)));
  Counts counts;
  for (const double count : given) {
    if (!(count >= 0 && count <= static_cast<double>(kMostElements) && count == std::floor(count)))
      return fail(task.contradiction(std::string(name) + " holds " + std::to_string(count) +
                                     ", which is not a number of elements"));
    counts.push_back(static_cast<size_t>(count));
  }
  return counts;
}

// Fails unless [first, first + count) lies in `elements`.
Result<void> check_stretch(const Task& task, std::string_view what, size_t first, size_t count,
                           size_t elements) {
  if (first + count <= elements) return {};
  return fail(task.contradiction(std::string(what) + " ends at element " +
                                 std::to_string(first + count) + " of " +
                                 std::to_string(elements)));
}

// Where parts of an output come from; what nobody writes is undefined.
class Gathered {
 public:
  static Result<Gathered> of(Task& task, Shape shape) {
    const auto elements = count_elements(shape);
    if (!elements) return fail(task.contradiction("the output would be too large"));
    if (auto room = task.make_room(*elements); !room) return fail(room.error());
    Gathered out;
    out.output_ = exact_output(std::move(shape), std::vector<double>(*elements, 0.0));
    out.output_.undefined.assign(*elements, true);
    return out;
  }

  Result<void> write(const Task& task, size_t first, std::span<const double> numbers) {
    if (auto inside =
            check_stretch(task, "what arrives", first, numbers.size(), output_.values.size());
        !inside)
      return inside;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!output_.undefined[first + i])
        return fail(task.contradiction("two ranks write to element " + std::to_string(first + i)));
      output_.values[first + i] = numbers[i];
      output_.undefined[first + i] = false;
    }
    return {};
  }

  Output finish() {
    auto& open = output_.undefined;
    if (std::find(open.begin(), open.end(), true) == open.end()) open.clear();
    return std::move(output_);
  }

 private:
  Output output_;
};

// What was recorded, or [rows of y, the other dimensions of x]: how the operations with lists say
// the size of the output.
Result<Shape> shape_by_rows(const Task& task, const Shape& x) {
  if (const Recorded* output = task.recorded(0)) return output->shape;
  if (!task.has("y") || task.shape("y").empty() || x.empty())
    return fail(task.contradiction("neither y nor the output was recorded, so its size is open"));
  Shape shape = x;
  shape[0] = task.shape("y")[0];
  return shape;
}

Output reduce_exactly(const std::vector<Array>& parts, bool largest) {
  Output out = exact_output(parts[0].shape, parts[0].data);
  std::vector<bool> unordered(out.values.size(), false);
  for (const Array& part : parts)
    for (size_t i = 0; i < out.values.size(); ++i) {
      double& value = out.values[i];
      // Devices differ in what is the larger of a number and NaN.
      if (std::isnan(value) != std::isnan(part.data[i])) unordered[i] = true;
      value = largest ? std::max(value, part.data[i]) : std::min(value, part.data[i]);
    }
  if (std::find(unordered.begin(), unordered.end(), true) != unordered.end())
    out.undefined = std::move(unordered);
  return out;
}

bool overflows(DType dtype, double value) {
  if (info(dtype).kind == DTypeKind::kInteger) return round_to(dtype, value) != value;
  return std::isfinite(value) && std::isinf(round_to(dtype, value));
}

// Sums or products of the ranks in the type that they have. The order is the device's, which rounds
// after each step, so of the steps before the last one each may be off by half a step of the type;
// and where some order overflows on the way the result is open.
Output reduce_by_steps(const std::vector<Array>& parts, bool multiplies, DType dtype) {
  const bool integer = info(dtype).kind == DTypeKind::kInteger;
  const double inner_steps = parts.size() > 2 ? static_cast<double>(parts.size() - 2) : 0;
  const double relative = integer ? 0 : half_step(dtype, 1);
  constexpr double kDoubleUnits = 0x1p-50;  // what float64 itself rounds
  const size_t elements = parts[0].elements();
  std::vector<double> values(elements), slack(integer ? 0 : elements);
  std::vector<bool> open(elements, false);
  bool some_open = false;
  for (size_t i = 0; i < elements; ++i) {
    double value = multiplies ? 1 : 0;
    double high = value, low = 1;
    for (const Array& part : parts) {
      const double number = part.data[i];
      const double magnitude = std::abs(number);
      value = multiplies ? value * number : value + number;
      high = multiplies ? high * std::max(magnitude, 1.0) : high + magnitude;
      low *= std::min(magnitude, 1.0);
    }
    values[i] = value;
    const bool underflows =
        multiplies && !integer && low > 0 && half_step(dtype, low) > 2 * relative * low;
    open[i] = parts.size() > 1 && (overflows(dtype, integer ? value : high) || underflows);
    some_open = some_open || open[i];
    if (!integer && std::isfinite(value))
      slack[i] = kDoubleUnits * high +
                 inner_steps * (multiplies ? relative * std::abs(value) : half_step(dtype, high));
  }
  Output out = exact_output(parts[0].shape, std::move(values));
  if (parts.size() > 1) out.slack = std::move(slack);
  if (some_open) out.undefined = std::move(open);
  return out;
}

Result<Output> reduce(Task& task, std::string_view key, const std::vector<Array>& parts,
                      DType dtype) {
  const std::string type = task.param().text(key, "sum");
  if (type == "max" || type == "min") return reduce_exactly(parts, type == "max");
  if (type == "sum" || type == "prod") return reduce_by_steps(parts, type == "prod", dtype);
  return fail(task.no_golden(std::string(key) + " " + printable(type)));
}

// Elements [first, first + count) of an output, in another shape.
Output stretch_of(const Output& whole, size_t first, size_t count, Shape shape) {
  const auto from = static_cast<ptrdiff_t>(first);
  const auto to = static_cast<ptrdiff_t>(first + count);
  const auto cut = [&](const auto& all) {
    return all.empty() ? all : std::decay_t<decltype(all)>(all.begin() + from, all.begin() + to);
  };
  Output out;
  out.shape = std::move(shape);
  out.values = cut(whole.values);
  out.slack = cut(whole.slack);
  out.undefined = cut(whole.undefined);
  return out;
}

// The int8 values of all ranks are summed up, and made real by one offset and a scale.
Result<Expected> quantised_all_reduce(Task& task, const Group& group, bool per_channel) {
  const auto parts = x_of_all(task, group, {"x", "scale", "offset"});
  if (!parts) return fail(parts.error());
  if (task.dtype("x") != DType::kInt8)
    return fail(task.no_golden("a quantised sum of " + std::string(name(task.dtype("x")))));
  if (auto given = take(task, group, group.rank, {"x", "scale", "offset"}); !given)
    return fail(given.error());
  const std::vector<double> scale = task.values("scale").data;
  const std::vector<double> offset = task.values("offset").data;
  const Array& first = parts->front();
  if (scale.size() != (per_channel ? first.row_elements() : 1) || offset.size() != 1)
    return fail(task.contradiction("scale has " + std::to_string(scale.size()) +
                                   " elements and offset " + std::to_string(offset.size()) +
                                   " for x of shape " + shape_text(first.shape)));
  const DType type = task.output_type(0, DType::kFloat16);
  const auto ranks = static_cast<double>(group.size);
  Output out = exact_output(first.shape, std::vector<double>(first.elements()));
  out.slack.resize(first.elements());
  for (size_t i = 0; i < first.elements(); ++i) {
    const double factor = scale[per_channel ? i % scale.size() : 0];
    double sum = 0, magnitudes = 0, roundings = 0;
    for (const Array& part : *parts) {
      const double term = (part.data[i] + offset[0]) * factor;
      sum += part.data[i];
      magnitudes += std::abs(term);
      roundings += half_step(type, term);
    }
    out.values[i] = (sum + offset[0] * ranks) * factor;
    // Each rank may be made real before the sum, which is then one of the type of the output.
    out.slack[i] = roundings + (ranks - 1) * half_step(type, magnitudes) +
                   sum_slack(group.size + 2, magnitudes);
  }
  return task.give({std::move(out)});
}

// The x of the rank that a parameter names.
Result<Output> x_of_rank(Task& task, const Group& group, std::string_view key) {
  const int64_t rank = task.param().integer(key, 0);
  if (rank < 0 || rank >= static_cast<int64_t>(group.size))
    return fail(task.contradiction("there is no rank " + std::to_string(rank) + " of " +
                                   std::to_string(group.size)));
  if (auto given = take(task, group, static_cast<size_t>(rank), {"x"}); !given)
    return fail(given.error());
  Array x = task.values("x");
  return exact_output(std::move(x.shape), std::move(x.data));
}

}  // namespace

Result<Group> read_group(Task& task) {
  const int64_t size = task.param().integer("rankSize", 0);
  int64_t rank = task.param().integer("rank", 0);
  if (rank == -1 && size == 1) rank = 0;  // some structures begin so
  if (size < 1 || rank < 0 || rank >= size)
    return fail(task.contradiction("there is no rank " + std::to_string(rank) + " of " +
                                   std::to_string(size)));
  return Group{static_cast<size_t>(rank), static_cast<size_t>(size)};
}

Result<void> take(Task& task, const Group& group, size_t rank,
                  const std::vector<std::string_view>& names) {
  if (group.size == 1 && task.operation().ranks.empty()) return task.takes(names);
  return task.takes_of_rank(rank, names);
}

Result<std::vector<Array>> x_of_all(Task& task, const Group& group,
                                    const std::vector<std::string_view>& names) {
  std::vector<Array> parts;
  DType dtype = DType::kFloat32;
  for (size_t rank = 0; rank < group.size; ++rank) {
    if (auto given = take(task, group, rank, names); !given) return fail(given.error());
    parts.push_back(task.values("x"));
    if (rank == 0) dtype = task.dtype("x");
    if (task.dtype("x") != dtype)
      return fail(task.contradiction(
          "x is of type " + std::string(name(dtype)) + " on rank 0 and of type " +
          std::string(name(task.dtype("x"))) + " on rank " + std::to_string(rank)));
    if (parts.back().shape != parts.front().shape)
      return fail(task.contradiction("x has the shape " + shape_text(parts.front().shape) +
                                     " on rank 0 and " + shape_text(parts.back().shape) +
                                     " on rank " + std::to_string(rank)));
  }
  if (auto room = task.make_room(2 * parts.front().elements()); !room) return fail(room.error());
  return parts;
}

Result<Expected> all_gather(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const auto parts = x_of_all(task, *group, {"x"});
  if (!parts) return fail(parts.error());
  Shape shape = parts->front().shape;
  shape.insert(shape.begin(), static_cast<int64_t>(group->size));
  if (auto room = task.make_room(group->size * parts->front().elements()); !room)
    return fail(room.error());
  std::vector<double> values;
  for (const Array& part : *parts) values.insert(values.end(), part.data.begin(), part.data.end());
  return task.give({exact_output(std::move(shape), std::move(values))});
}

Result<Expected> all_gather_v(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const std::vector<std::string_view> names = {"?x", "?sendCount", "?recvCounts", "?rdispls", "?y"};
  if (auto given = take(task, *group, group->rank, names); !given) return fail(given.error());
  const auto counts = read_counts(task, task.param(), "recvCounts", group->size);
  if (!counts) return fail(counts.error());
  const auto places = read_counts(task, task.param(), "rdispls", group->size);
  if (!places) return fail(places.error());
  auto shape = shape_by_rows(task, task.shape("x"));
  if (!shape) return fail(shape.error());
  auto out = Gathered::of(task, std::move(*shape));
  if (!out) return fail(out.error());
  for (size_t rank = 0; rank < group->size; ++rank) {
    if (auto given = take(task, *group, rank, names); !given) return fail(given.error());
    const Array x = task.values("x");
    const size_t count = (*counts)[rank];
    if (task.has("sendCount")) {
      const auto sent = read_counts(task, task.param(), "sendCount", 1);
      if (!sent) return fail(sent.error());
      if (sent->front() != count)
        return fail(task.contradiction("rank " + std::to_string(rank) + " sends " +
                                       std::to_string(sent->front()) + " elements, but " +
                                       std::to_string(count) + " are received"));
    }
    if (auto inside = check_stretch(task, "what rank " + std::to_string(rank) + " sends", 0, count,
                                    x.elements());
        !inside)
      return fail(inside.error());
    if (auto written = out->write(task, (*places)[rank], std::span(x.data).first(count)); !written)
      return fail(written.error());
  }
  return task.give({out->finish()});
}

Result<Expected> all_reduce(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const auto quant = task.param().choice("quantType", AllReduceQuantType::kUndefined);
  if (quant != AllReduceQuantType::kUndefined)
    return quantised_all_reduce(task, *group, quant == AllReduceQuantType::kPerChannel);
  const auto parts = x_of_all(task, *group, {"x"});
  if (!parts) return fail(parts.error());
  auto out = reduce(task, "allReduceType", *parts, task.dtype("x"));
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

Result<Expected> broadcast(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  auto out = x_of_rank(task, *group, "rankRoot");
  if (!out) return fail(out.error());
  out->written_input = 0;
  return task.give({std::move(*out)});
}

std::vector<size_t> changed_by_broadcast(graph::AtbParam&) { return {0}; }

Result<Expected> reduce_scatter(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const auto parts = x_of_all(task, *group, {"x"});
  if (!parts) return fail(parts.error());
  Shape shape = parts->front().shape;
  const auto size = static_cast<int64_t>(group->size);
  if (shape.empty() || shape[0] % size != 0)
    return fail(task.contradiction("the rows of x of shape " + shape_text(shape) +
                                   " cannot be dealt out to " + std::to_string(size) + " ranks"));
  shape[0] /= size;
  const auto all = reduce(task, "reduceType", *parts, task.dtype("x"));
  if (!all) return fail(all.error());
  const size_t count = all->values.size() / group->size;
  return task.give({stretch_of(*all, group->rank * count, count, std::move(shape))});
}

Result<Expected> reduce_scatter_v(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const std::vector<std::string_view> names = {"x", "?sendCounts", "?sdispls", "?recvCount", "?y"};
  const auto parts = x_of_all(task, *group, names);
  if (!parts) return fail(parts.error());
  if (auto given = take(task, *group, group->rank, names); !given) return fail(given.error());
  const auto counts = read_counts(task, task.param(), "sendCounts", group->size);
  if (!counts) return fail(counts.error());
  const auto places = read_counts(task, task.param(), "sdispls", group->size);
  if (!places) return fail(places.error());
  const size_t first = (*places)[group->rank];
  const size_t count = (*counts)[group->rank];
  const Array& x = parts->front();
  if (auto inside = check_stretch(task, "this rank's part", first, count, x.elements()); !inside)
    return fail(inside.error());
  auto shape = shape_by_rows(task, x.shape);
  if (!shape) return fail(shape.error());
  const auto elements = count_elements(*shape);
  if (!elements || *elements < count)
    return fail(task.contradiction("an output of shape " + shape_text(*shape) + " does not hold " +
                                   std::to_string(count) + " elements"));
  if (auto room = task.make_room(2 * *elements); !room) return fail(room.error());
  const auto all = reduce(task, "reduceType", *parts, task.dtype("x"));
  if (!all) return fail(all.error());
  Output out = stretch_of(*all, first, count, std::move(*shape));
  if (count < *elements) {  // nobody writes the rest
    out.values.resize(*elements, 0.0);
    if (!out.slack.empty()) out.slack.resize(*elements, 0.0);
    out.undefined.resize(count, false);
    out.undefined.resize(*elements, true);
  }
  return task.give({std::move(out)});
}

Result<Expected> all_to_all(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const auto parts = x_of_all(task, *group, {"x"});
  if (!parts) return fail(parts.error());
  const Array& x = parts->front();
  const size_t size = group->size;
  const auto columns = static_cast<int64_t>(x.dim(-1) / size);
  const Shape stacked = {static_cast<int64_t>(x.dim(0) * size), columns};
  // The library does not write `transpose` down, but it changes the shape.
  const bool says = task.param().has("transpose");
  bool turn = task.param().flag("transpose", false);
  if (const Recorded* output = task.recorded(0); !says && output != nullptr && size > 1) {
    turn = x.rank() == 2 && output->shape == stacked;
    if (turn) task.note("transpose was inferred from the shape of the output");
  }
  if (turn && (x.rank() != 2 || x.dim(-1) % size != 0))
    return fail(task.contradiction("the columns of x of shape " + shape_text(x.shape) +
                                   " cannot be dealt out to " + std::to_string(size) + " ranks"));
  if (x.elements() % size != 0)
    return fail(task.contradiction("x of shape " + shape_text(x.shape) +
                                   " cannot be dealt out to " + std::to_string(size) + " ranks"));
  std::vector<double> values;
  values.reserve(x.elements());
  const size_t rows = turn ? x.dim(0) : 1;
  const size_t width = x.elements() / rows;
  const size_t part_width = width / size;
  for (const Array& part : *parts)
    for (size_t row = 0; row < rows; ++row) {
      const double* from = part.data.data() + row * width + group->rank * part_width;
      values.insert(values.end(), from, from + part_width);
    }
  return task.give({exact_output(turn ? stacked : x.shape, std::move(values))});
}

// AllToAllVOperation, whose lists are parameters, and AllToAllVV2Operation, whose lists are tensors.
Result<Expected> all_to_all_v(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  const bool by_tensors = task.operation().type == "AllToAllVV2Operation";
  std::vector<std::string_view> names = {"?x"};
  if (by_tensors)
    names.insert(names.end(), {"?sendCounts", "?sdispls", "?recvCounts", "?rdispls", "?y"});
  const auto& params = task.operation().rank_params;
  if (!by_tensors && group->size > 1 && params.size() < group->size)
    return fail(task.no_golden("without the lists of the other ranks, which are parameters there"));
  if (auto given = take(task, *group, group->rank, names); !given) return fail(given.error());
  const auto counts = read_counts(task, task.param(), "recvCounts", group->size);
  if (!counts) return fail(counts.error());
  const auto places = read_counts(task, task.param(), "rdispls", group->size);
  if (!places) return fail(places.error());
  size_t elements = 0;
  for (const size_t count : *counts) {
    elements += count;
    if (elements > kMostElements)
      return fail(task.contradiction("recvCounts add up to more than there can be"));
  }
  auto out = Gathered::of(task, {1, static_cast<int64_t>(elements)});
  if (!out) return fail(out.error());
  for (size_t rank = 0; rank < group->size; ++rank) {
    const std::string who = "what rank " + std::to_string(rank) + " sends";
    // The sender's own lists say where its part lies.
    if (auto given = take(task, *group, rank, names); !given) return fail(given.error());
    graph::AtbParam param(rank < params.size() ? params[rank] : task.operation().param);
    const auto sent = read_counts(task, param, "sendCounts", group->size);
    if (!sent) return fail(sent.error());
    const auto from = read_counts(task, param, "sdispls", group->size);
    if (!from) return fail(from.error());
    const size_t count = (*sent)[group->rank];
    const size_t first = (*from)[group->rank];
    if (count != (*counts)[rank])
      return fail(task.contradiction("rank " + std::to_string(rank) + " sends " +
                                     std::to_string(count) + " elements, but " +
                                     std::to_string((*counts)[rank]) + " are received"));
    const Array x = task.values("x");
    if (auto inside = check_stretch(task, who, first, count, x.elements()); !inside)
      return fail(inside.error());
    if (auto written = out->write(task, (*places)[rank], std::span(x.data).subspan(first, count));
        !written)
      return fail(written.error());
  }
  return task.give({out->finish()});
}

Result<Expected> send(Task& task) {
  task.note("what is sent arrives at rank " + std::to_string(task.param().integer("destRank", 0)) +
            ", so nothing is compared here");
  return task.give(std::vector<Output>{});
}

Result<Expected> recv(Task& task) {
  const auto group = read_group(task);
  if (!group) return fail(group.error());
  auto out = x_of_rank(task, *group, "srcRank");
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

}  // namespace ait::golden
