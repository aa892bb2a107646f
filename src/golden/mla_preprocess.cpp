// MlaPreprocessOperation: from hidden states to the queries and cached rows of latent attention, a
// chain of operations in one kernel. Every intermediate result is rounded, to int8 or to the type of
// the input; where that is nearly a tie the neighbour is as good, and what follows may be off by it.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "golden/cache_layout.h"
#include "golden/families.h"
#include "golden/matmul.h"
#include "golden/norm.h"
#include "golden/product_slack.h"
#include "golden/quantise.h"
#include "golden/rotation.h"
#include "golden/rounder.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using CacheMode = graph::LatentCacheMode;
using QuantMode = graph::LatentQuantMode;

// Devices differ in these, and a dump does not tell.
struct Device {
  double epsilon;
  bool cut_scales;
  std::string name;
};

// Scales, an offset and what is multiplied with, of one of the two products of int8.
struct Layer {
  Scale scale;             // of the norm before it
  double quant_scale = 1;  // of its result
  double quant_offset = 0;
  Weight weight;
  Scales dequant;            // one for each column
  std::vector<double> bias;  // the same; empty: none
};

struct Inputs {
  size_t rows = 0;
  size_t heads = 0;
  size_t latent = 0;  // numbers of a row of the cache without position
  size_t rope = 0;    // and of the rotated ones
  size_t plain = 0;   // of a query's head without position
  DType type = DType::kFloat16;
  CacheMode cache = CacheMode::kKvCache;
  bool per_token = false;
  Array x, cos, sin;
  Layer down, up;
  Scale latent_scale;
  Weight absorb;  // one matrix for each head
  double latent_quant_scale = 1;
  std::vector<double> query_scales;  // one for each head
};

Result<void> has_elements(const Task& task, std::string_view name, size_t found, size_t wanted) {
  if (found == wanted) return {};
  return fail(task.contradiction(std::string(name) + " has " + std::to_string(found) +
                                 " elements, not " + std::to_string(wanted)));
}

// By the inputs' names, each with the number of its layer.
Result<Layer> read_layer(Task& task, const std::string& number, bool per_token,
                         std::string_view weight, size_t depth, size_t columns) {
  Layer layer;
  layer.scale = {task.values("gamma" + number), task.values("beta" + number)};
  if (auto fits = has_elements(task, "gamma" + number, layer.scale.gamma.elements(), depth); !fits)
    return fail(fits.error());
  if (const size_t count = layer.scale.beta.elements(); count != 0)
    if (auto fits = has_elements(task, "beta" + number, count, depth); !fits)
      return fail(fits.error());
  if (!per_token) {
    const auto scale = single(task, "quantScale" + number);
    if (!scale) return fail(scale.error());
    const auto offset = single(task, "quantOffset" + number);
    if (!offset) return fail(offset.error());
    layer.quant_scale = *scale;
    layer.quant_offset = *offset;
  }
  auto read = read_weight(task, weight, true, depth, columns);
  if (!read) return fail(read.error());
  layer.weight = std::move(*read);
  if (layer.weight.columns != columns || layer.weight.count != 1)
    return fail(task.contradiction(std::string(weight) + " of shape " +
                                   shape_text(task.shape(weight)) + " has not " +
                                   std::to_string(columns) + " rows"));
  layer.dequant = read_scales(task, "deScale" + number);
  if (auto fits = has_elements(task, "deScale" + number, layer.dequant.values.size(), columns);
      !fits)
    return fail(fits.error());
  layer.bias = task.values("bias" + number).data;
  if (!layer.bias.empty())
    if (auto fits = has_elements(task, "bias" + number, layer.bias.size(), columns); !fits)
      return fail(fits.error());
  return layer;
}

Result<void> read_keys(Task& task, Inputs& in) {
  graph::AtbParam& param = task.param();
  in.cache = param.choice("cacheMode", CacheMode::kKvCache);
  const auto quant = param.choice("quantMode", QuantMode::kPerTensorAsymmetric);
  in.per_token = quant == QuantMode::kPerTokenSymmetric;
  if (quant != QuantMode::kPerTensorAsymmetric && !in.per_token)
    return fail(task.no_golden("quantMode " + std::to_string(static_cast<int>(quant)) +
                               ", which the library does not take"));
  for (const std::string_view key : {"qRotaryCoeff", "kRotaryCoeff"})
    if (const int64_t coefficient = param.integer(key, 2); coefficient != 2)
      return fail(task.no_golden(std::string(key) + " " + std::to_string(coefficient) +
                                 ", where kernels always turn halves"));
  for (const std::string_view key : {"transposeWdq", "transposeWuq", "transposeWuk"})
    if (!param.flag(key, true))
      return fail(task.no_golden(std::string(key) + " false, which kernels do not read"));
  return {};
}

Result<Inputs> read_inputs(Task& task) {
  Inputs in;
  if (auto keys = read_keys(task, in); !keys) return fail(keys.error());
  if (auto given = task.takes({"input",         "gamma0",      "?beta0",       "?quantScale0",
                               "?quantOffset0", "~wdqkv",      "deScale0",     "?bias0",
                               "gamma1",        "?beta1",      "?quantScale1", "?quantOffset1",
                               "~wuq",          "deScale1",    "?bias1",       "gamma2",
                               "cos",           "sin",         "~wuk",         "~kvCache",
                               "~?kvCacheRope", "slotMapping", "?ctkvScale",   "?qNopeScale"});
      !given)
    return fail(given.error());
  in.x = task.values("input");
  in.cos = task.values("cos");
  in.sin = task.values("sin");
  in.latent_scale.gamma = task.values("gamma2");
  in.type = task.dtype("input");
  in.rows = in.x.rows();
  in.latent = in.latent_scale.gamma.elements();
  in.rope = in.cos.row_elements();
  if (!is_half(in.type) || in.x.rank() != 2)
    return fail(task.no_golden("input of type " + std::string(name(in.type)) + " and shape " +
                               shape_text(in.x.shape)));
  if (in.cos.elements() != in.rows * in.rope || in.sin.elements() != in.cos.elements() ||
      in.rope % 2 != 0)
    return fail(task.contradiction("cos and sin of the shapes " + shape_text(in.cos.shape) +
                                   " and " + shape_text(in.sin.shape) + " are not angles of " +
                                   std::to_string(in.rows) + " tokens"));
  const Shape& absorb = task.shape("wuk");
  if (absorb.size() < 3)
    return fail(
        task.contradiction("wuk of shape " + shape_text(absorb) + " has no matrix for each head"));
  in.heads = static_cast<size_t>(absorb[0]);
  // [heads, plain, latent], or FRACTAL_NZ [heads, latent / 16, plain, 16].
  in.plain = static_cast<size_t>(absorb[absorb.size() == 4 ? 2 : 1]);
  const size_t queries = task.values("gamma1").elements();
  auto weight = read_weight(task, "wuk", false, in.plain, in.latent);
  if (!weight) return fail(weight.error());
  in.absorb = std::move(*weight);
  if (in.absorb.columns != in.latent)
    return fail(task.contradiction("wuk of shape " + shape_text(absorb) + " does not go with the " +
                                   std::to_string(in.latent) + " elements of gamma2"));
  auto down =
      read_layer(task, "0", in.per_token, "wdqkv", in.x.dim(1), in.latent + in.rope + queries);
  if (!down) return fail(down.error());
  in.down = std::move(*down);
  auto up = read_layer(task, "1", in.per_token, "wuq", queries, in.heads * (in.plain + in.rope));
  if (!up) return fail(up.error());
  in.up = std::move(*up);
  if (in.cache == CacheMode::kSplitInt8Nz) {
    const auto scale = single(task, "ctkvScale");
    if (!scale) return fail(scale.error());
    in.latent_quant_scale = *scale;
    in.query_scales = task.values("qNopeScale").data;
    if (auto fits = has_elements(task, "qNopeScale", in.query_scales.size(), in.heads); !fits)
      return fail(fits.error());
  }
  // Intermediate results with what each may be off, and what comes out, in all forms.
  const size_t widest = std::max(in.down.weight.columns, in.up.weight.columns);
  const auto elements = count_elements(
      Shape{static_cast<int64_t>(in.rows), static_cast<int64_t>(widest + in.heads * in.latent)});
  constexpr size_t kCopies = 12;
  if (!elements) return fail(task.contradiction("the output would be too large"));
  if (auto room = task.make_room(*elements, kCopies); !room) return fail(room.error());
  return in;
}

bool is_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

// Rows in int8, and what of it a sound kernel may have otherwise.
struct Int8Rows {
  std::vector<double> numbers;
  std::vector<double> scales;               // of each row; empty: none
  std::vector<double> scale_slack;          // relative
  std::vector<std::vector<size_t>> unsure;  // of each row the numbers that may be off by one
};

void round_row(std::span<const double> steps, std::span<const double> slack, Int8Rows& out) {
  std::vector<size_t> unsure;
  for (size_t i = 0; i < steps.size(); ++i) {
    out.numbers.push_back(quantised(steps[i]));
    const double from_tie = std::abs(steps[i] - std::floor(steps[i]) - 0.5);
    if (from_tie <= slack[i] && quantised(steps[i] - slack[i]) != quantised(steps[i] + slack[i]))
      unsure.push_back(i);
  }
  out.unsure.push_back(std::move(unsure));
}

// The norm of each row of `x` in int8: with one scale and offset for all, or every row by its own
// largest number, after a rounding to half.
Int8Rows quantised_norm(const Inexact& x, const Layer& layer, bool per_token, double epsilon) {
  const size_t width = layer.weight.depth;
  const Inexact normed = rms_normed(x, width, layer.scale, {epsilon}).y;
  const Rounder half(DType::kFloat16);
  Int8Rows out;
  std::vector<double> steps(width), slack(width);
  for (size_t first = 0; first < normed.slack.size(); first += width) {
    double largest = 0, largest_slack = 0;
    if (per_token) {
      for (size_t i = 0; i < width; ++i) {
        const double exact = normed.values.data[first + i];
        steps[i] = half.round(exact);
        slack[i] = half.slack_of_rounded(exact, normed.slack[first + i]);
        largest = std::max(largest, std::abs(steps[i]));
      }
      for (size_t i = 0; i < width; ++i)
        if (std::abs(steps[i]) + slack[i] >= largest)
          largest_slack = std::max(largest_slack, slack[i]);
      out.scales.push_back(largest / 127);
      const double relative = largest > 0 ? largest_slack / largest : 0;
      out.scale_slack.push_back(relative + kMargin * 2 * kFloat32Unit);
    }
    for (size_t i = 0; i < width; ++i) {
      if (per_token) {
        const double factor = largest > 0 ? 127 / largest : 0;
        slack[i] = slack[i] * factor + std::abs(steps[i]) * factor * out.scale_slack.back();
        steps[i] *= factor;
      } else {
        const double quotient = normed.values.data[first + i] / layer.quant_scale;
        steps[i] = quotient + layer.quant_offset;
        slack[i] = normed.slack[first + i] / std::abs(layer.quant_scale) +
                   kMargin * kFloat32Unit * (2 * std::abs(quotient) + std::abs(steps[i]));
      }
    }
    round_row(steps, slack, out);
  }
  return out;
}

// Its product with the weight, made real and rounded to the type of the input.
Inexact product_of_int8(const Task& task, const Int8Rows& rows, const Layer& layer, bool cut_scales,
                        DType type) {
  const size_t count = rows.unsure.size();
  const size_t columns = layer.weight.columns;
  const Matrix weight = layer.weight.matrix(0);
  const std::vector<double>& scales =
      cut_scales && !layer.dequant.cut.empty() ? layer.dequant.cut : layer.dequant.values;
  const Rounder rounder(type);
  Inexact out;
  out.values.shape = {static_cast<int64_t>(count), static_cast<int64_t>(columns)};
  out.values.data.resize(count * columns);
  out.slack.resize(count * columns);
  task.multiply(row_major(rows.numbers.data(), count, layer.weight.depth), weight,
                out.values.data.data());
  parallel_for(count, 0, [&](size_t row) {
    std::vector<double> off(columns, 0.0), memory;
    for (const size_t i : rows.unsure[row]) {
      const Matrix line = in_memory(part_of(weight, i, 1, 0, columns), memory);
      for (size_t column = 0; column < columns; ++column)
        off[column] += std::abs(line.at(0, column));
    }
    const bool scaled = !rows.scales.empty();
    // The sum to float32, and two products.
    const double relative = kMargin * 3 * kFloat32Unit + (scaled ? rows.scale_slack[row] : 0);
    for (size_t column = 0; column < columns; ++column) {
      const size_t place = row * columns + column;
      const double scale = scales[column] * (scaled ? rows.scales[row] : 1);
      // With scales of their own for rows kernels add no bias.
      const double bias = layer.bias.empty() || scaled ? 0 : layer.bias[column];
      const double value = (out.values.data[place] + bias) * scale;
      const double slack = relative * std::abs(value) + off[column] * std::abs(scale);
      out.values.data[place] = rounder.round(value);
      out.slack[place] = rounder.slack_of_rounded(value, slack);
    }
  });
  return out;
}

// `count` columns of each row.
Inexact columns_of(const Inexact& all, size_t first, size_t count) {
  const size_t width = all.values.row_elements();
  Inexact out;
  out.values.shape = {all.values.shape[0], static_cast<int64_t>(count)};
  for (size_t row = 0; row < all.values.rows(); ++row) {
    const auto start = static_cast<ptrdiff_t>(row * width + first);
    const auto end = start + static_cast<ptrdiff_t>(count);
    const auto& data = all.values.data;
    out.values.data.insert(out.values.data.end(), data.begin() + start, data.begin() + end);
    out.slack.insert(out.slack.end(), all.slack.begin() + start, all.slack.begin() + end);
  }
  return out;
}

// Every head of `heads` heads turned by the angles of its token; a row has `width` numbers, of which
// those of a head begin at `first` and are `step` apart.
Inexact turned(const Inputs& in, const Inexact& rows, size_t heads, size_t first, size_t step) {
  const size_t width = rows.values.row_elements();
  Inexact out;
  out.values.shape = {static_cast<int64_t>(in.rows), static_cast<int64_t>(heads * in.rope)};
  out.values.data.resize(in.rows * heads * in.rope);
  out.slack.resize(out.values.data.size());
  for (size_t row = 0; row < in.rows; ++row)
    for (size_t head = 0; head < heads; ++head) {
      const size_t from = row * width + head * step + first;
      const size_t to = (row * heads + head) * in.rope;
      turn_head({std::span(rows.values.data).subspan(from, in.rope),
                 std::span(rows.slack).subspan(from, in.rope)},
                in.cos.row(row), in.sin.row(row), in.type, out.values.data.data() + to,
                out.slack.data() + to);
    }
  return out;
}

// What is left of a head without position, times the head's matrix: [rows, heads * latent].
Inexact absorbed(const Task& task, const Inputs& in, const Inexact& queries) {
  const size_t step = in.plain + in.rope;
  const size_t width = in.heads * step;
  Inexact out;
  out.values.shape = {static_cast<int64_t>(in.rows), static_cast<int64_t>(in.heads * in.latent)};
  out.values.data.resize(in.rows * in.heads * in.latent);
  out.slack.resize(out.values.data.size());
  std::vector<double> product(in.rows * in.latent), norms, memory;
  for (size_t head = 0; head < in.heads; ++head) {
    const Matrix a = {queries.values.data.data() + head * step, in.rows, in.plain, width, 1};
    const Matrix b = in.absorb.matrix(head);
    task.multiply(a, b, product.data(), &norms);
    const ProductSlack slack(a, b, norms);
    const Matrix matrix = in_memory(b, memory);
    for (size_t row = 0; row < in.rows; ++row) {
      const size_t to = (row * in.heads + head) * in.latent;
      for (size_t i = 0; i < in.latent; ++i) {
        const double value = product[row * in.latent + i];
        out.values.data[to + i] = value;
        out.slack[to + i] = slack.at(row, i, value);
      }
      for (size_t k = 0; k < in.plain; ++k)
        if (const double off = queries.slack[row * width + head * step + k]; off != 0)
          for (size_t i = 0; i < in.latent; ++i)
            out.slack[to + i] += off * std::abs(matrix.at(k, i));
    }
  }
  return out;
}

// Times the scale of its head, to int8, after a rounding to the type of the input. Devices with
// float16 multiply in it.
Output quantised_queries(const Inputs& in, const Inexact& queries) {
  const Rounder rounder(in.type);
  std::vector<double> steps(queries.slack.size()), slack(queries.slack.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const double scale = in.query_scales[i / in.latent % in.heads];
    const double value = queries.values.data[i];
    steps[i] = rounder.round(value) * scale;
    slack[i] = rounder.slack_of_rounded(value, queries.slack[i]) * std::abs(scale) +
               kMargin * kFloat32Unit * std::abs(steps[i]);
    if (in.type == DType::kFloat16) slack[i] += half_step(in.type, steps[i]);
  }
  const auto count = [](size_t value) { return static_cast<int64_t>(value); };
  return int8_output({count(in.rows), count(in.heads), count(in.latent)}, std::move(steps),
                     std::move(slack));
}

// Divided by one scale, rounded to half, to int8.
Inexact quantised_latent(const Inputs& in, const Inexact& latent) {
  const Rounder rounder(in.type), half(DType::kFloat16);
  Inexact out = latent;
  for (size_t i = 0; i < out.slack.size(); ++i) {
    const double value = latent.values.data[i];
    const double scale = std::abs(in.latent_quant_scale);
    const double step = rounder.round(value) / in.latent_quant_scale;
    const double slack = rounder.slack_of_rounded(value, latent.slack[i]) / scale +
                         kMargin * 2 * kFloat32Unit * std::abs(step);
    out.values.data[i] = std::clamp(half.round(step), -128.0, 127.0);
    out.slack[i] = half.slack_of_rounded(step, slack);
  }
  return out;
}

// Rows of one beside those of the other, `parts` times in each row.
Inexact side_by_side(const Inexact& a, const Inexact& b, size_t parts) {
  const size_t a_width = a.values.row_elements() / parts, b_width = b.values.row_elements() / parts;
  Inexact out;
  out.values.shape = a.values.shape;
  out.values.shape.back() += b.values.shape.back();
  const auto add = [](const std::vector<double>& from, size_t first, size_t count,
                      std::vector<double>& to) {
    const auto start = from.begin() + static_cast<ptrdiff_t>(first);
    to.insert(to.end(), start, start + static_cast<ptrdiff_t>(count));
  };
  for (size_t part = 0; part < a.values.rows() * parts; ++part) {
    add(a.values.data, part * a_width, a_width, out.values.data);
    add(b.values.data, part * b_width, b_width, out.values.data);
    add(a.slack, part * a_width, a_width, out.slack);
    add(b.slack, part * b_width, b_width, out.slack);
  }
  return out;
}

Output heads_output(const Inputs& in, Inexact queries) {
  const auto rows = static_cast<int64_t>(in.rows), heads = static_cast<int64_t>(in.heads);
  queries.values.shape = {rows, heads, queries.values.shape.back() / heads};
  return output_of(std::move(queries));
}

Result<std::vector<Output>> outputs_of(Task& task, const Inputs& in, const Device& device) {
  const auto run = [&](const Inexact& x, const Layer& layer) {
    return product_of_int8(task, quantised_norm(x, layer, in.per_token, device.epsilon), layer,
                           device.cut_scales, in.type);
  };
  const Inexact down = run({in.x, std::vector<double>(in.x.elements(), 0.0)}, in.down);
  const Inexact up = run(columns_of(down, in.latent + in.rope, in.up.weight.depth), in.up);
  if (!is_finite(down.values.data) || !is_finite(up.values.data))
    return fail(task.no_golden("an intermediate result beyond " + std::string(name(in.type))));
  const Inexact queries = absorbed(task, in, up);
  const Inexact turned_queries = turned(in, up, in.heads, in.plain, in.plain + in.rope);
  const Inexact turned_key = turned(in, down, 1, in.latent, in.rope);
  Inexact latent =
      rms_normed(columns_of(down, 0, in.latent), in.latent, in.latent_scale, {device.epsilon}).y;
  const auto write = [&](const WrittenCache& cache, const Inexact& rows) {
    return write_slots(task, cache, "slotMapping", {rows.values.data, rows.slack, in.rows});
  };
  std::vector<Output> outputs;
  if (in.cache == CacheMode::kKvCache) {
    auto cache = write({"kvCache", 19}, side_by_side(latent, turned_key, 1));
    if (!cache) return fail(cache.error());
    outputs.push_back(heads_output(in, side_by_side(queries, turned_queries, in.heads)));
    outputs.push_back(std::move(*cache));
    return outputs;
  }
  const bool int8 = in.cache == CacheMode::kSplitInt8Nz;
  const bool pieces = int8 || in.cache == CacheMode::kSplitNz;
  if (int8) latent = quantised_latent(in, latent);
  auto cache = write({"kvCache", 19, pieces}, latent);
  if (!cache) return fail(cache.error());
  auto rope_cache = write({"kvCacheRope", 20, pieces}, turned_key);
  if (!rope_cache) return fail(rope_cache.error());
  outputs.push_back(int8 ? quantised_queries(in, queries) : heads_output(in, queries));
  outputs.push_back(std::move(*cache));
  outputs.push_back(heads_output(in, turned_queries));
  outputs.push_back(std::move(*rope_cache));
  return outputs;
}

// The library's own kernels have this epsilon built in, newer ones are given the parameter.
std::vector<Device> devices_of(const Inputs& in, double epsilon) {
  constexpr double kBuiltIn = 1e-6;
  std::vector<Device> devices = {{epsilon, false, "epsilon of the parameters"}};
  if (std::abs(epsilon - kBuiltIn) > kFloat32Unit * kBuiltIn)
    devices.push_back({kBuiltIn, false, "epsilon 1e-6"});
  if (in.down.dequant.cut.empty() && in.up.dequant.cut.empty()) return devices;
  for (size_t i = 0, count = devices.size(); i < count; ++i) {
    devices.push_back({devices[i].epsilon, true, devices[i].name + ", " + std::string(kCutScales)});
    devices[i].name += ", " + std::string(kWholeScales);
  }
  return devices;
}

}  // namespace

Result<Expected> mla_preprocess(Task& task) {
  const double epsilon = task.param().number("epsilon", 1e-5);
  const auto in = read_inputs(task);
  if (!in) return fail(in.error());
  if (!is_finite(in->x.data))
    return fail(task.no_golden("input with numbers that are not finite, of which int8 has none"));
  const std::vector<Device> devices = devices_of(*in, epsilon);
  auto outputs = outputs_of(task, *in, devices[0]);
  if (!outputs) return fail(outputs.error());
  for (size_t device = 1; device < devices.size(); ++device) {
    auto others = outputs_of(task, *in, devices[device]);
    if (!others) return fail(others.error());
    for (size_t i = 0; i < outputs->size(); ++i) {
      Output& output = (*outputs)[i];
      output.form = devices[0].name;
      for (size_t j = 0; j < output.slack.size(); ++j)
        output.slack[j] = std::max(output.slack[j], (*others)[i].slack[j]);
      output.forms.push_back({devices[device].name, std::move((*others)[i].values)});
    }
  }
  return task.give(std::move(*outputs));
}

}  // namespace ait::golden
