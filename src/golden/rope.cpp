#include <cmath>

#include "golden/families.h"
#include "golden/rotation.h"
#include "golden/rounder.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

// Cosines and sines, one row for each token.
struct Angles {
  Array cos;
  Array sin;
  size_t width() const { return cos.row_elements(); }
};

Result<Angles> angles_of(const Task& task, size_t tokens) {
  Angles angles{task.values("cos"), task.values("sin")};
  if (angles.sin.shape != angles.cos.shape)
    return fail(task.contradiction("cos has the shape " + shape_text(angles.cos.shape) +
                                   " and sin " + shape_text(angles.sin.shape)));
  if (angles.cos.rows() != tokens)
    return fail(task.contradiction("cos has " + std::to_string(angles.cos.rows()) + " rows for " +
                                   std::to_string(tokens) + " tokens"));
  return angles;
}

// The angles of the even elements for their neighbours, too.
Angles of_even_elements(Angles angles) {
  for (Array* each : {&angles.cos, &angles.sin})
    for (size_t i = 1; i < each->elements(); i += 2) each->data[i] = each->data[i - 1];
  return angles;
}

struct Rotation {
  size_t half = 1;             // of a segment in which two halves are turned into each other
  bool half_products = false;  // products rounded to half, as devices do that work in this type
};

// x * cos + rot(x) * sin for every head of every token.
std::vector<double> turned(const Array& x, const Angles& angles, Rotation rotation,
                           std::vector<double>* magnitudes = nullptr) {
  const size_t width = angles.width();
  const size_t heads = x.elements() / angles.cos.elements();
  // Products as they are in double stay so.
  const Rounder product(rotation.half_products ? DType::kFloat16 : DType::kFloat64);
  std::vector<TurnedWith> others;
  others.reserve(width);
  for (size_t i = 0; i < width; ++i) others.push_back(turned_with(i, rotation.half));
  std::vector<double> out(x.elements());
  if (magnitudes != nullptr) magnitudes->resize(x.elements());
  for (size_t head = 0; head * width < x.elements(); ++head) {
    const auto cos = angles.cos.row(head / heads);
    const auto sin = angles.sin.row(head / heads);
    const double* from = x.data.data() + head * width;
    for (size_t i = 0; i < width; ++i) {
      const double straight = product.round(from[i] * cos[i]);
      const double crossed = product.round(others[i].sign * from[others[i].index] * sin[i]);
      out[head * width + i] = straight + crossed;
      if (magnitudes != nullptr)
        (*magnitudes)[head * width + i] = std::abs(straight) + std::abs(crossed);
    }
  }
  return out;
}

// How the heads of an input are turned, in every form that devices have.
Result<Output> rope_output(Task& task, std::string_view name, const Angles& angles,
                           size_t coefficient) {
  const Array x = task.values(name);
  const size_t width = angles.width();
  const size_t per_row = angles.cos.rows() * width;
  if (per_row == 0 || x.elements() % per_row != 0)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(x.shape) +
                                   " does not consist of heads of " + std::to_string(width) +
                                   " elements, as cos has them"));
  const bool in_half = task.dtype(name) == DType::kFloat16;
  const Angles paired = of_even_elements(angles);
  const bool unpaired = coefficient == width && width > 2 &&
                        (paired.cos.data != angles.cos.data || paired.sin.data != angles.sin.data);
  const size_t forms = size_t{in_half ? 2U : 1U} * (unpaired ? 2 : 1);
  if (auto room = task.make_room((forms + 2) * x.elements()); !room) return fail(room.error());
  const size_t half = width / coefficient;
  std::vector<double> magnitudes;
  std::vector<double> y = turned(x, angles, {half}, &magnitudes);
  Output out = function_output(x.shape, std::move(y), magnitudes);
  if (!in_half && !unpaired) return out;
  out.form = "rope in float32";
  if (in_half)
    out.forms.push_back({"rope with products in float16", turned(x, angles, {half, true})});
  // Of pairs of neighbours some kernels read the angle of the first only.
  if (unpaired)
    out.forms.push_back({"rope with the angles of even elements", turned(x, paired, {half})});
  if (in_half && unpaired)
    out.forms.push_back({"rope with the angles of even elements, products in float16",
                         turned(x, paired, {half, true})});
  return out;
}

// Rows of one or several heads come as [tokens, heads * width], [tokens, heads, width] or [batch,
// tokens, heads, width].
Result<size_t> tokens_of(const Task& task, std::string_view name) {
  const Shape& shape = task.shape(name);
  if (shape.size() < 2 || shape.size() > 4)
    return fail(task.contradiction(std::string(name) + " has the shape " + shape_text(shape) +
                                   ", not two to four dimensions"));
  const auto first = static_cast<size_t>(shape[0]);
  return shape.size() == 4 ? first * static_cast<size_t>(shape[1]) : first;
}

}  // namespace

Result<Expected> rope(Task& task) {
  const int64_t coefficient = task.param().integer("rotaryCoeff", 4);
  if (auto given = task.takes({"query", "key", "cos", "sin", "?seqLen"}); !given)
    return fail(given.error());
  const auto tokens = tokens_of(task, "query");
  if (!tokens) return fail(tokens.error());
  const auto angles = angles_of(task, *tokens);
  if (!angles) return fail(angles.error());
  const auto width = static_cast<int64_t>(angles->width());
  if (coefficient != 2 && coefficient != 4 && coefficient != width)
    return fail(task.no_golden("rotaryCoeff " + std::to_string(coefficient) +
                               " (2, 4 or the last dimension of cos, " + std::to_string(width) +
                               ")"));
  if (coefficient % 2 != 0 || width % coefficient != 0)
    return fail(task.contradiction("heads of " + std::to_string(width) +
                                   " elements cannot be cut into " + std::to_string(coefficient) +
                                   " parts"));
  std::vector<Output> outputs;
  for (const std::string_view name : {"query", "key"}) {
    const auto rows = tokens_of(task, name);
    if (!rows) return fail(rows.error());
    if (*rows != *tokens)
      return fail(task.contradiction("query has " + std::to_string(*tokens) + " tokens and key " +
                                     std::to_string(*rows)));
    auto out = rope_output(task, name, *angles, static_cast<size_t>(coefficient));
    if (!out) return fail(out.error());
    outputs.push_back(std::move(*out));
  }
  return task.give(std::move(outputs));
}

Result<Expected> rope_q_concat(Task& task) {
  if (auto given = task.takes({"query", "cos", "sin", "concat"}); !given)
    return fail(given.error());
  const auto tokens = tokens_of(task, "query");
  if (!tokens) return fail(tokens.error());
  const auto angles = angles_of(task, *tokens);
  if (!angles) return fail(angles.error());
  const size_t width = angles->width();
  if (width % 2 != 0)
    return fail(
        task.contradiction("heads of " + std::to_string(width) + " elements have no halves"));
  const auto rotated = rope_output(task, "query", *angles, 2);
  if (!rotated) return fail(rotated.error());
  const Array tail = task.values("concat");
  const size_t heads = rotated->values.size() / (*tokens * width);
  if (tail.rank() != 3 || tail.dim(0) != *tokens || tail.dim(1) != heads)
    return fail(task.contradiction("concat has the shape " + shape_text(tail.shape) + " beside " +
                                   std::to_string(*tokens) + " tokens of " + std::to_string(heads) +
                                   " heads"));
  Output out;
  out.shape = {tail.shape[0], tail.shape[1], static_cast<int64_t>(width) + tail.shape[2]};
  if (auto room = task.make_room(3 * (rotated->values.size() + tail.elements())); !room)
    return fail(room.error());
  const auto joined = [&](const std::vector<double>& front, bool with_tail) {
    std::vector<double> all;
    all.reserve(front.size() + tail.elements());
    for (size_t row = 0; row < tail.rows(); ++row) {
      all.insert(all.end(), front.begin() + static_cast<ptrdiff_t>(row * width),
                 front.begin() + static_cast<ptrdiff_t>((row + 1) * width));
      const auto moved = tail.row(row);
      if (with_tail)
        all.insert(all.end(), moved.begin(), moved.end());
      else
        all.insert(all.end(), moved.size(), 0);
    }
    return all;
  };
  out.values = joined(rotated->values, true);
  out.slack = joined(rotated->slack, false);
  out.form = rotated->form;
  for (const Form& form : rotated->forms)
    out.forms.push_back({form.name, joined(form.values, true)});
  return task.give({std::move(out)});
}

Result<Expected> dynamic_ntk(Task& task) {
  if (auto given = task.takes({"positionIds", "invFreq", "seqLens"}); !given)
    return fail(given.error());
  const Array positions = task.values("positionIds");
  const Array frequencies = task.values("invFreq");
  const auto tokens = lengths(task, "seqLens", positions.elements(), "positions", true);
  if (!tokens) return fail(tokens.error());
  if (frequencies.rank() != 2 || frequencies.rows() != tokens->size())
    return fail(task.contradiction("invFreq has the shape " + shape_text(frequencies.shape) +
                                   " for " + std::to_string(tokens->size()) + " sequences"));
  const size_t half = frequencies.row_elements();
  if (auto room = task.make_room(positions.elements(), 8 * half); !room) return fail(room.error());
  Output sin, cos;
  sin.shape =
      cos.shape = {static_cast<int64_t>(positions.elements()), static_cast<int64_t>(2 * half)};
  size_t token = 0;
  for (size_t batch = 0; batch < tokens->size(); ++batch)
    for (const size_t end = token + (*tokens)[batch]; token < end; ++token)
      for (size_t i = 0; i < 2 * half; ++i) {
        // The angle is a float32 everywhere, and at large positions far from the exact one.
        const double angle =
            round_to(DType::kFloat32, positions.data[token] * frequencies.row(batch)[i % half]);
        const double slack = kMargin * kFloat32Unit * (kFunctionUnits + std::abs(angle));
        sin.values.push_back(std::sin(angle));
        cos.values.push_back(std::cos(angle));
        sin.slack.push_back(slack);
        cos.slack.push_back(slack);
      }
  return task.give({std::move(sin), std::move(cos)});
}

}  // namespace ait::golden
