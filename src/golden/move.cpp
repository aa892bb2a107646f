#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/families.h"
#include "golden/look.h"
#include "golden/part.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

// An output that shows the elements of an input in another order.
Result<Output> moved(Task& task, const Tensor& from, const Look& look, Shape shape) {
  auto elements = read_look(task, from, look);
  if (!elements) return fail(elements.error());
  return exact_output(std::move(shape), std::move(elements->data));
}

// Inputs whose elements lie in the order of their dimensions. What is stored in fractals is not
// moved by dimensions.
Result<void> takes_rows(Task& task, const std::vector<std::string_view>& names) {
  if (auto given = task.takes(names); !given) return given;
  for (std::string_view name : names) {
    if (name.starts_with('?') || name.starts_with('~')) name.remove_prefix(1);
    if (task.has(name) && task.fractal(name))
      return fail(task.no_golden(std::string(name) + " is stored as FRACTAL_NZ"));
  }
  return {};
}

constexpr double kLargestHalf = 65504;
constexpr double kLargestBfloat16 = 0x1.fep127;

size_t product(std::span<const int64_t> dims) {
  size_t elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<size_t>(dim);
  return elements;
}

Result<void> has_rank(const Task& task, std::string_view key, size_t count, std::string_view name) {
  const Shape& shape = task.shape(name);
  if (count == shape.size()) return {};
  return fail(task.contradiction(std::string(key) + " has " + std::to_string(count) +
                                 " elements, and " + std::string(name) + " the shape " +
                                 shape_text(shape)));
}

// Part [first, first + size) of one dimension.
Look cut(const Tensor& x, size_t axis, int64_t first, int64_t size) {
  Look look{x.shape(), x.strides(), first * x.strides()[axis]};
  look.shape[axis] = size;
  return look;
}

}  // namespace

Result<Expected> gather(Task& task) {
  const int64_t given_axis = task.param().integer("axis", 0);
  const int64_t batch_dims = task.param().integer("batchDims", 0);
  if (auto given = takes_rows(task, {"~x", "indices"}); !given) return fail(given.error());
  const Shape& x = task.shape("x");
  const Shape& places = task.shape("indices");
  const auto axis = axis_of(task, "axis", given_axis, x.size());
  if (!axis) return fail(axis.error());
  if (batch_dims < 0 || static_cast<size_t>(batch_dims) > std::min(*axis, places.size()))
    return fail(task.contradiction("batchDims " + std::to_string(batch_dims) + " is beyond axis " +
                                   std::to_string(*axis) + " or the dimensions of indices, " +
                                   shape_text(places)));
  const auto common = static_cast<size_t>(batch_dims);
  if (!std::equal(places.begin(), places.begin() + batch_dims, x.begin()))
    return fail(task.contradiction("the first " + std::to_string(batch_dims) +
                                   " dimensions of x, " + shape_text(x) + ", and of indices, " +
                                   shape_text(places) + ", differ"));
  const auto length = static_cast<size_t>(x[*axis]);
  const auto rows = indices(task, "indices", length);
  if (!rows) return fail(rows.error());
  Shape shape(x.begin(), x.begin() + static_cast<ptrdiff_t>(*axis));
  shape.insert(shape.end(), places.begin() + batch_dims, places.end());
  shape.insert(shape.end(), x.begin() + static_cast<ptrdiff_t>(*axis) + 1, x.end());
  const auto elements = count_elements(shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(*elements); !room) return fail(room.error());
  const std::span<const int64_t> dims = x;
  const size_t batches = product(dims.first(common));
  const size_t before = product(dims.subspan(common, *axis - common));
  const size_t after = product(dims.subspan(*axis + 1));
  const size_t picks = rows->size() / batches;
  std::vector<double> out, stretch;
  out.reserve(*elements);
  for (size_t batch = 0; batch < batches; ++batch)
    for (size_t i = 0; i < before; ++i)
      for (size_t pick = 0; pick < picks; ++pick) {
        const size_t row = (batch * before + i) * length + (*rows)[batch * picks + pick];
        task.read("x", row * after, after, stretch);
        out.insert(out.end(), stretch.begin(), stretch.begin() + static_cast<ptrdiff_t>(after));
      }
  return task.give({exact_output(std::move(shape), std::move(out))});
}

Result<Expected> concat(Task& task) {
  const int64_t given_axis = task.param().integer("concatDim", 0);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::max<size_t>(task.input_count(), 2); ++i)
    names.push_back("x" + std::to_string(i));
  std::vector<std::string> optional;
  optional.reserve(names.size());
  for (const std::string& name : names) optional.push_back("?" + name);
  if (auto given = takes_rows(task, {optional.begin(), optional.end()}); !given)
    return fail(given.error());
  // A tensor without elements has no file, and adds nothing.
  std::erase_if(names, [&](const std::string& name) { return !task.has(name); });
  if (names.empty()) return fail(task.contradiction("no input was recorded"));
  if (names.size() < optional.size()) task.note("an input that was not recorded has no elements");
  const auto axis = axis_of(task, "concatDim", given_axis, task.shape(names[0]).size());
  if (!axis) return fail(axis.error());
  Shape shape = task.shape(names[0]);
  shape[*axis] = 0;
  size_t elements = 0;
  for (const std::string& name : names) {
    Shape expected = shape;
    if (task.shape(name).size() == shape.size()) expected[*axis] = task.shape(name)[*axis];
    if (task.shape(name) != expected)
      return fail(task.contradiction("the shapes " + shape_text(task.shape(names[0])) + " and " +
                                     shape_text(task.shape(name)) +
                                     " cannot be joined along dimension " + std::to_string(*axis)));
    elements += product(task.shape(name));
  }
  for (const std::string& name : names) shape[*axis] += task.shape(name)[*axis];
  if (auto room = task.make_room(elements); !room) return fail(room.error());
  const std::span<const int64_t> dims = shape;
  const size_t before = product(dims.first(*axis));
  std::vector<double> out(elements);
  size_t start = 0;
  for (const std::string& name : names) {
    const Array x = task.values(name);
    const size_t piece = x.elements() / before;
    for (size_t i = 0; i < before; ++i)
      std::copy_n(x.data.begin() + static_cast<ptrdiff_t>(i * piece), piece,
                  out.begin() + static_cast<ptrdiff_t>(i * elements / before + start));
    start += piece;
  }
  return task.give({exact_output(std::move(shape), std::move(out))});
}

Result<Expected> split(Task& task) {
  const int64_t given_axis = task.param().integer("splitDim", 0);
  const int64_t parts = task.param().integer("splitNum", 2);
  std::vector<int64_t> sizes = task.param().integers("splitSizes", {});
  if (auto given = takes_rows(task, {"~x"}); !given) return fail(given.error());
  const Tensor& x = task.tensor("x");
  const auto axis = axis_of(task, "splitDim", given_axis, x.shape().size());
  if (!axis) return fail(axis.error());
  const int64_t length = x.shape()[*axis];
  if (sizes.empty()) {
    if (parts < 1 || length % parts != 0)
      return fail(task.contradiction("the dimension " + std::to_string(*axis) + " of x, " +
                                     std::to_string(length) + ", has no " + std::to_string(parts) +
                                     " equal parts"));
    sizes.assign(static_cast<size_t>(parts), length / parts);
  }
  int64_t left = length;
  for (const int64_t size : sizes) left = size < 0 || size > left ? -1 : left - size;
  if (left != 0)
    return fail(task.contradiction("splitSizes do not add up to the dimension " +
                                   std::to_string(*axis) + " of x, " + std::to_string(length)));
  std::vector<Output> outputs;
  int64_t first = 0;
  for (const int64_t size : sizes) {
    const Look look = cut(x, *axis, first, size);
    auto out = moved(task, x, look, look.shape);
    if (!out) return fail(out.error());
    outputs.push_back(std::move(*out));
    first += size;
  }
  return task.give(std::move(outputs));
}

Result<Expected> slice(Task& task) {
  const std::vector<int64_t> offsets = task.param().integers("offsets", {});
  const std::vector<int64_t> sizes = task.param().integers("size", {});
  if (auto given = takes_rows(task, {"~x"}); !given) return fail(given.error());
  const Tensor& x = task.tensor("x");
  if (auto rank = has_rank(task, "offsets", offsets.size(), "x"); !rank) return fail(rank.error());
  if (auto rank = has_rank(task, "size", sizes.size(), "x"); !rank) return fail(rank.error());
  Look look{x.shape(), x.strides()};
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t length = x.shape()[i];
    const int64_t first = offsets[i] < 0 ? offsets[i] + length : offsets[i];
    const int64_t size = sizes[i] == -1 ? length - first : sizes[i];
    if (offsets[i] < -length || first > length || size < 0 || size > length - first)
      return fail(task.contradiction("offset " + std::to_string(offsets[i]) + " and size " +
                                     std::to_string(sizes[i]) + " leave the dimension " +
                                     std::to_string(i) + " of x, " + std::to_string(length)));
    look.shape[i] = size;
    look.offset += first * x.strides()[i];
  }
  auto out = moved(task, x, look, look.shape);
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

Result<Expected> transpose(Task& task) {
  const std::vector<int64_t> perm = task.param().integers("perm", {});
  if (auto given = takes_rows(task, {"~x"}); !given) return fail(given.error());
  const Tensor& x = task.tensor("x");
  if (auto rank = has_rank(task, "perm", perm.size(), "x"); !rank) return fail(rank.error());
  Look look;
  std::vector<bool> used(perm.size(), false);
  for (const int64_t from : perm) {
    const auto axis = axis_of(task, "perm", from, perm.size());
    if (!axis) return fail(axis.error());
    if (used[*axis])
      return fail(
          task.contradiction("perm names the dimension " + std::to_string(from) + " twice"));
    used[*axis] = true;
    look.shape.push_back(x.shape()[*axis]);
    look.strides.push_back(x.strides()[*axis]);
  }
  auto out = moved(task, x, look, look.shape);
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

Result<Expected> as_strided(Task& task) {
  const std::vector<int64_t> size = task.param().integers("size", {});
  const std::vector<int64_t> stride = task.param().integers("stride", {});
  const std::vector<int64_t> offset = task.param().integers("offset", {0});
  if (auto given = takes_rows(task, {"~x"}); !given) return fail(given.error());
  if (offset.size() != 1)
    return fail(
        task.contradiction("offset has " + std::to_string(offset.size()) + " elements, not one"));
  auto seen = read_strided(task, "x", {size, stride, offset[0]});
  if (!seen) return fail(seen.error());
  return task.give({exact_output(size, std::move(seen->data))});
}

Result<Expected> repeat(Task& task) {
  const std::vector<int64_t> multiples = task.param().integers("multiples", {});
  if (auto given = takes_rows(task, {"~x"}); !given) return fail(given.error());
  const Tensor& x = task.tensor("x");
  const size_t rank = x.shape().size();
  if (multiples.size() < rank)
    return fail(task.contradiction("multiples have " + std::to_string(multiples.size()) +
                                   " elements for x of shape " + shape_text(x.shape())));
  // Every dimension is preceded by one that repeats it.
  Look look;
  Shape shape;
  for (size_t i = 0; i < multiples.size(); ++i) {
    const size_t new_dims = multiples.size() - rank;
    const int64_t length = i < new_dims ? 1 : x.shape()[i - new_dims];
    look.shape.insert(look.shape.end(), {multiples[i], length});
    look.strides.insert(look.strides.end(), {0, i < new_dims ? 0 : x.strides()[i - new_dims]});
    if (multiples[i] < 0 || multiples[i] > std::numeric_limits<int64_t>::max() / length)
      return fail(
          task.contradiction("x cannot be repeated " + std::to_string(multiples[i]) + " times"));
    shape.push_back(multiples[i] * length);
  }
  auto out = moved(task, x, look, std::move(shape));
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

Result<Expected> set_value(Task& task) {
  const std::vector<int64_t> starts = task.param().integers("starts", {});
  const std::vector<int64_t> ends = task.param().integers("ends", {});
  const std::vector<int64_t> strides = task.param().integers("strides", {});
  if (auto given = takes_rows(task, {"~dst", "src"}); !given) return fail(given.error());
  const Shape& dst = task.shape("dst");
  if (auto rank = has_rank(task, "starts", starts.size(), "dst"); !rank) return fail(rank.error());
  if (auto rank = has_rank(task, "ends", ends.size(), "dst"); !rank) return fail(rank.error());
  if (std::any_of(strides.begin(), strides.end(), [](int64_t each) { return each != 1; }))
    return fail(task.no_golden("strides other than 1"));
  Shape region;
  for (size_t i = 0; i < dst.size(); ++i) {
    if (starts[i] < 0 || ends[i] < starts[i] || ends[i] > dst[i])
      return fail(task.contradiction("start " + std::to_string(starts[i]) + " and end " +
                                     std::to_string(ends[i]) + " leave the dimension " +
                                     std::to_string(i) + " of dst, " + std::to_string(dst[i])));
    region.push_back(ends[i] - starts[i]);
  }
  const Array src = task.values("src");
  if (product(region) != src.elements())
    return fail(task.contradiction("src has the shape " + shape_text(src.shape) +
                                   " for a region of " + shape_text(region)));
  if (auto room = task.make_room(2 * src.elements()); !room) return fail(room.error());
  const Strides steps = row_major_strides(dst);
  const size_t width = region.empty() ? 1 : static_cast<size_t>(region.back());
  Writes writes(0, dst, width);
  for (size_t row = 0; row * width < src.elements(); ++row) {
    int64_t place = starts.empty() ? 0 : starts.back();
    size_t rest = row;
    for (size_t axis = region.size(); axis-- > 0;) {
      if (axis + 1 == region.size()) continue;
      const auto length = static_cast<size_t>(region[axis]);
      place += (starts[axis] + static_cast<int64_t>(rest % length)) * steps[axis];
      rest /= length;
    }
    writes.add(static_cast<size_t>(place), std::span(src.data).subspan(row * width, width));
  }
  return task.give({std::move(writes).finish(task)});
}

Result<Expected> fill(Task& task) {
  const bool with_mask = task.param().flag("withMask", true);
  const std::vector<double> given_value = task.param().numbers("value", {});
  const std::vector<int64_t> dims = task.param().integers("outDim", {});
  const auto read = with_mask ? takes_rows(task, {"x", "mask"}) : task.takes({});
  if (!read) return fail(read.error());
  if (given_value.size() != 1)
    return fail(task.contradiction("value has " + std::to_string(given_value.size()) +
                                   " elements, not one"));
  const DType type = task.output_type(0, with_mask ? task.dtype("x") : DType::kFloat16);
  const double value = round_to(type, round_to(DType::kFloat32, given_value[0]));
  Array x, mask;
  Shape shape = dims;
  if (with_mask) {
    x = task.values("x");
    mask = task.values("mask");
    const auto common = broadcast_shape(x.shape, mask.shape);
    if (!common)
      return fail(task.contradiction("the shapes " + shape_text(x.shape) + " of x and " +
                                     shape_text(mask.shape) + " of mask do not go together"));
    shape = *common;
  }
  const auto elements = count_elements(shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(*elements, 4); !room) return fail(room.error());
  const auto filled = [&](double with) {
    if (!with_mask) return std::vector<double>(*elements, with);
    std::vector<double> out = broadcast_to(x, shape).data;
    const Array where = broadcast_to(mask, shape);
    for (size_t i = 0; i < out.size(); ++i)
      if (where.data[i] != 0) out[i] = with;
    return out;
  };
  Output out = exact_output(shape, filled(value));
  // What is too large for the type becomes infinite on some devices and the largest on others.
  if (std::isinf(value) && !std::isinf(given_value[0])) {
    out.form = "filled with infinity";
    double largest = std::numeric_limits<float>::max();
    if (type == DType::kFloat16) largest = kLargestHalf;
    if (type == DType::kBFloat16) largest = kLargestBfloat16;
    out.forms.push_back({"filled with the largest value", filled(std::copysign(largest, value))});
  }
  return task.give({std::move(out)});
}

Result<Expected> where(Task& task) {
  if (auto given = takes_rows(task, {"condition", "x", "y"}); !given) return fail(given.error());
  const Array condition = task.values("condition");
  const Array x = task.values("x");
  const Array y = task.values("y");
  auto shape = broadcast_shape(x.shape, y.shape);
  if (shape) shape = broadcast_shape(*shape, condition.shape);
  if (!shape)
    return fail(task.contradiction("the shapes " + shape_text(condition.shape) + ", " +
                                   shape_text(x.shape) + " and " + shape_text(y.shape) +
                                   " do not go together"));
  const auto elements = count_elements(*shape);
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(*elements, 3); !room) return fail(room.error());
  const Array which = broadcast_to(condition, *shape);
  Array out = broadcast_to(y, *shape);
  const Array chosen = broadcast_to(x, *shape);
  for (size_t i = 0; i < out.elements(); ++i)
    if (which.data[i] != 0) out.data[i] = chosen.data[i];
  return task.give({exact_output(*shape, std::move(out.data))});
}

// The row of the last token of every sequence.
Result<Expected> pad(Task& task) {
  if (auto given = takes_rows(task, {"~x", "?paddingOffset", "seqLen", "?inputIds"}); !given)
    return fail(given.error());
  const Shape& x = task.shape("x");
  if (x.size() != 2)
    return fail(task.contradiction("x has the shape " + shape_text(x) + ", not two dimensions"));
  const auto tokens =
      lengths(task, "seqLen", static_cast<size_t>(x[0]), "rows of x", /*exactly=*/false);
  if (!tokens) return fail(tokens.error());
  const auto width = static_cast<size_t>(x[1]);
  if (auto room = task.make_room(tokens->size() * width); !room) return fail(room.error());
  Output out;
  out.shape = {static_cast<int64_t>(tokens->size()), x[1]};
  std::vector<double> row;
  size_t end = 0;
  for (const size_t length : *tokens) {
    end += length;
    if (end == 0) {  // no token yet, so there is no row
      out.values.resize(out.values.size() + width, 0);
      out.undefined.resize(out.values.size(), true);
      continue;
    }
    task.read("x", (end - 1) * width, width, row);
    out.values.insert(out.values.end(), row.begin(), row.begin() + static_cast<ptrdiff_t>(width));
  }
  if (!out.undefined.empty()) out.undefined.resize(out.values.size());
  return task.give({std::move(out)});
}

// The ids of sequences of different lengths, one after the other.
Result<Expected> unpad(Task& task) {
  if (auto given = takes_rows(task, {"inputIds", "cumOffsetsNow", "tokenNum", "seqLen"}); !given)
    return fail(given.error());
  const Array ids = task.values("inputIds");
  const Array offsets = task.values("cumOffsetsNow");
  if (ids.rank() != 2)
    return fail(task.contradiction("inputIds have the shape " + shape_text(ids.shape) +
                                   ", not two dimensions"));
  const auto tokens = lengths(task, "seqLen", ids.elements(), "ids", /*exactly=*/false);
  if (!tokens) return fail(tokens.error());
  if (tokens->size() != ids.rows() || offsets.elements() != ids.rows())
    return fail(task.contradiction("seqLen and cumOffsetsNow have " +
                                   std::to_string(tokens->size()) + " and " +
                                   std::to_string(offsets.elements()) + " elements for " +
                                   std::to_string(ids.rows()) + " sequences"));
  if (auto room = task.make_room(ids.elements(), 3); !room) return fail(room.error());
  std::vector<double> packed, shifts, before(ids.rows(), 0);
  for (size_t batch = 0; batch < ids.rows(); ++batch) {
    const size_t length = (*tokens)[batch];
    if (length > ids.row_elements())
      return fail(task.contradiction("seqLen has the element " + std::to_string(length) +
                                     " for rows of " + std::to_string(ids.row_elements())));
    if (batch > 0) before[batch] = offsets.data[batch - 1];
    const auto valid = ids.row(batch).first(length);
    packed.insert(packed.end(), valid.begin(), valid.end());
    shifts.insert(shifts.end(), length, before[batch]);
  }
  const double count = task.values("tokenNum").data[0];
  if (count != static_cast<double>(packed.size()))
    return fail(task.contradiction("the elements of seqLen add up to " +
                                   std::to_string(packed.size()) + ", unlike tokenNum"));
  packed.resize(ids.elements(), 0);
  shifts.resize(ids.elements(), 0);
  const Shape row = {1, static_cast<int64_t>(ids.elements())};
  const Shape column = {static_cast<int64_t>(ids.rows()), 1};
  return task.give({exact_output(row, std::move(packed)), exact_output(column, std::move(before)),
                    exact_output(row, std::move(shifts))});
}

Result<Expected> transdata(Task& task) {
  const auto type = task.param().choice("transdataType", graph::TransdataType::kUndefined);
  const std::vector<int64_t> crops = task.param().integers("outCrops", {0, 0});
  if (type == graph::TransdataType::kUndefined) return fail(task.no_golden("transdataType 0"));
  if (auto given = task.takes({"x"}); !given) return fail(given.error());
  const Array x = task.values("x");
  if (type == graph::TransdataType::kNzToNd) {
    if (x.rank() != 4)
      return fail(task.contradiction("x has the shape " + shape_text(x.shape) +
                                     ", not the four dimensions of FRACTAL_NZ"));
    const auto wide = static_cast<int64_t>(x.dim(1) * x.dim(3));
    if (crops.size() != 2 || crops[0] < 0 || crops[1] < 0 || crops[0] > x.shape[2] ||
        crops[1] > wide)
      return fail(task.contradiction("outCrops " + shape_text(crops) + " are beyond the " +
                                     std::to_string(x.dim(2)) + " rows and " +
                                     std::to_string(wide) + " columns of x"));
    Shape shape = {x.shape[0], crops[0], crops[1]};
    if (auto room = task.make_room(x.elements()); !room) return fail(room.error());
    Array rows = from_fractal(x, static_cast<size_t>(crops[0]), static_cast<size_t>(crops[1]));
    return task.give({exact_output(std::move(shape), std::move(rows.data))});
  }
  if (x.rank() != 2 && x.rank() != 3)
    return fail(task.contradiction("x has the shape " + shape_text(x.shape) +
                                   ", not two or three dimensions"));
  constexpr size_t kRows = 16;  // a fractal has as many
  const size_t width = fractal_width(task.dtype("x"));
  const size_t batches = x.rank() == 3 ? x.dim(0) : 1;
  const size_t rows = x.dim(-2), columns = x.dim(-1);
  const size_t stored_rows = (rows + kRows - 1) / kRows * kRows;
  const size_t pieces = (columns + width - 1) / width;
  const Shape shape = {static_cast<int64_t>(batches), static_cast<int64_t>(pieces),
                       static_cast<int64_t>(stored_rows), static_cast<int64_t>(width)};
  const size_t one = pieces * stored_rows * width;
  if (auto room = task.make_room(batches * one); !room) return fail(room.error());
  std::vector<double> out(batches * one, 0);
  for (size_t batch = 0; batch < batches; ++batch)
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        out[batch * one + fractal_offset(row, column, stored_rows, width)] =
            x.data[(batch * rows + row) * columns + column];
  return task.give({exact_output(shape, std::move(out))});
}

}  // namespace ait::golden
