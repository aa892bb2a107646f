// RingMLAOperation: attention to a part of the keys, joined with the result for the parts before it;
// FaUpdateOperation: the results for all parts, joined.
#include <algorithm>
#include <cmath>

#include "golden/attention_mask.h"
#include "golden/attention_output.h"
#include "golden/attention_rows.h"
#include "golden/families.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

// The result so far, to be joined with that of more keys.
struct Previous {
  Array out;
  Array lse;  // [heads, rows]
};

// One row of one head: out = a * out + b * previous, where a and b are the shares of the sums of
// exponentials of both. With NaN where both are nothing, as kernels have it.
void join_row(const double* previous, double previous_lse, size_t size, double* out, double* slack,
              double& lse, double& lse_slack) {
  const double largest = std::max(lse, previous_lse);
  const double own = std::exp(lse - largest);
  const double other = std::exp(previous_lse - largest);
  const double share = own / (own + other);
  const double other_share = other / (own + other);
  // What the shares may be off, relative to each other: as much as the exponents are.
  const double off =
      lse_slack + kMargin * kFloat32Unit *
                      (kFunctionUnits + std::abs(lse - largest) + std::abs(previous_lse - largest));
  for (size_t d = 0; d < size; ++d) {
    const double both = std::abs(share * out[d]) + std::abs(other_share * previous[d]);
    const double moved = share * other_share * std::abs(out[d] - previous[d]) * off;
    slack[d] = share * slack[d] + moved + kMargin * kFloat32Unit * kFunctionUnits * both;
    if (!std::isfinite(slack[d])) slack[d] = 0;
    out[d] = share * out[d] + other_share * previous[d];
  }
  lse = largest + std::log(own + other);
  lse_slack = share * lse_slack +
              kMargin * kFloat32Unit * kFunctionUnits * (1 + std::abs(largest) + std::abs(lse));
  if (!std::isfinite(lse_slack)) lse_slack = 0;
}

struct RingKeys {
  Heads heads;
  double scale;
  bool first;
  bool triangle;
  bool high_precision;
};

Result<RingKeys> read_keys(Task& task) {
  graph::AtbParam& param = task.param();
  RingKeys keys{};
  const auto heads = read_heads(task);
  if (!heads) return fail(heads.error());
  keys.heads = *heads;
  keys.scale = param.number("qkScale", 1);
  using Calc = graph::RingCalcType;
  keys.first = param.choice("calcType", Calc::kDefault) == Calc::kFirstRing;
  using Mask = graph::RingMaskType;
  keys.triangle = param.choice("maskType", Mask::kTriangle) == Mask::kTriangle;
  using Kernel = graph::SelfAttentionKernelType;
  keys.high_precision =
      param.choice("kernelType", Kernel::kHighPrecision) == Kernel::kHighPrecision;
  using Layout = graph::AttentionInputLayout;
  if (param.choice("inputLayout", Layout::kBsnd) != Layout::kBsnd)
    return fail(task.no_golden("inputLayout BNSD"));
  return keys;
}

Result<void> take_inputs(Task& task, const RingKeys& keys) {
  std::vector<std::string_view> names = {"~q1", "~q2", "~k1", "~k2", "~value", "?mask", "seqLen"};
  if (!keys.first) names.insert(names.end(), {"prevOut", "prevLse"});
  // Hosts that have no mask may leave its place out.
  if (!keys.triangle && task.input_count() < names.size()) names.erase(names.begin() + 5);
  return task.takes(names);
}

// Rows of one part of the queries or keys, packed.
Result<TokenLayout> packed_layout(const Task& task, std::string_view name, size_t heads,
                                  size_t sequences) {
  auto layout = token_layout(task, name, heads, sequences, false);
  if (layout && layout->padded())
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(task.shape(name)) +
                                   " is not packed"));
  return layout;
}

struct RingRows {
  TokenLayout q1, q2, k1, k2, value;
};

Result<RingRows> read_rows(const Task& task, const RingKeys& keys, size_t sequences) {
  RingRows rows;
  for (const auto& [name, layout, heads] :
       {std::tuple("q1", &rows.q1, keys.heads.queries),
        std::tuple("q2", &rows.q2, keys.heads.queries), std::tuple("k1", &rows.k1, keys.heads.keys),
        std::tuple("k2", &rows.k2, keys.heads.keys),
        std::tuple("value", &rows.value, keys.heads.keys)}) {
    auto own = packed_layout(task, name, heads, sequences);
    if (!own) return fail(own.error());
    *layout = *own;
  }
  if (rows.q1.size != rows.k1.size || rows.q2.size != rows.k2.size)
    return fail(task.contradiction("the parts of the queries have " + std::to_string(rows.q1.size) +
                                   " and " + std::to_string(rows.q2.size) +
                                   " numbers, those of the keys " + std::to_string(rows.k1.size) +
                                   " and " + std::to_string(rows.k2.size)));
  return rows;
}

}  // namespace

Result<Expected> ring_mla(Task& task) {
  const auto keys = read_keys(task);
  if (!keys) return fail(keys.error());
  if (auto given = take_inputs(task, *keys); !given) return fail(given.error());
  auto query_counts = lengths(task, "seqLen");
  if (!query_counts) return fail(query_counts.error());
  std::vector<size_t> key_counts = *query_counts;
  const Shape& lengths = task.shape("seqLen");
  if (lengths.size() == 2 && lengths[0] == 2) {  // those of the queries, then those of the keys
    const auto half = static_cast<ptrdiff_t>(query_counts->size() / 2);
    key_counts.assign(query_counts->begin() + half, query_counts->end());
    query_counts->resize(query_counts->size() / 2);
  }
  const size_t count = query_counts->size();
  const auto rows = read_rows(task, *keys, count);
  if (!rows) return fail(rows.error());
  std::vector<size_t> starts, key_starts;
  size_t queries = 0, total_keys = 0;
  const size_t query_rows = std::min(rows->q1.rows, rows->q2.rows);
  const size_t key_rows = std::min({rows->k1.rows, rows->k2.rows, rows->value.rows});
  for (size_t b = 0; b < count; ++b) {
    starts.push_back(queries);
    key_starts.push_back(total_keys);
    if ((*query_counts)[b] > query_rows - queries || key_counts[b] > key_rows - total_keys)
      return fail(task.contradiction("the sequences need more rows than the " +
                                     std::to_string(query_rows) + " of the queries and the " +
                                     std::to_string(key_rows) + " of the keys"));
    queries += (*query_counts)[b];
    total_keys += key_counts[b];
  }
  TokenLayout out_layout = rows->q1;
  out_layout.size = rows->value.size;
  const Shape shape = {static_cast<int64_t>(out_layout.rows),
                       static_cast<int64_t>(keys->heads.queries),
                       static_cast<int64_t>(out_layout.size)};
  auto output = AttentionOutput::of(task, out_layout, shape);
  if (!output) return fail(output.error());
  output->add_lse({shape[1], shape[0]}, true);
  Previous previous{task.values("prevOut"), task.values("prevLse")};
  if (!keys->first && (previous.out.elements() != out_layout.elements() ||
                       previous.lse.elements() != out_layout.rows * out_layout.heads))
    return fail(task.contradiction("prevOut of shape " + shape_text(previous.out.shape) +
                                   " and prevLse of shape " + shape_text(previous.lse.shape) +
                                   " are not those of a result of shape " + shape_text(shape)));

  Sequence base;
  base.scale = keys->scale;
  base.weight_type = task.dtype("value");
  base.half_scores = task.dtype("q1") == DType::kFloat16 && !keys->high_precision;
  base.queries.heads = keys->heads.queries;
  base.queries.size = rows->q1.size + rows->q2.size;
  base.keys.heads = keys->heads.keys;
  base.values.size = rows->value.size;
  const size_t most_queries = *std::max_element(query_counts->begin(), query_counts->end());
  const size_t most_keys = *std::max_element(key_counts.begin(), key_counts.end());
  const size_t joined_rows = most_queries * keys->heads.queries + most_keys * keys->heads.keys;
  if (auto room = task.make_room(joined_rows, base.queries.size); !room) return fail(room.error());
  if (auto room = make_attend_room(task, base, most_queries, most_keys); !room)
    return fail(room.error());

  std::vector<std::vector<HiddenRow>> hidden(count);
  const auto attend_to = [&](size_t b, size_t threads) -> Result<void> {
    const size_t own = (*query_counts)[b];
    const size_t total = key_counts[b];
    const Place place = output->place(0, starts[b]);
    if (own > 0 && total > 0) {
      const CachedRows query = join_heads(rows_of(task, "q1", rows->q1, b, starts[b], own),
                                          rows_of(task, "q2", rows->q2, b, starts[b], own), {});
      const CachedRows key = join_heads(rows_of(task, "k1", rows->k1, b, key_starts[b], total),
                                        rows_of(task, "k2", rows->k2, b, key_starts[b], total), {});
      Sequence sequence = base;
      sequence.queries = query.view();
      sequence.keys = key.view();
      sequence.values = rows_of(task, "value", rows->value, b, key_starts[b], total);
      if (keys->triangle)
        sequence.visible = [total](size_t row) { return causal_keys(row, total); };
      hidden[b] = attend(task, sequence, place, threads);
    }
    if (keys->first) return {};
    for (size_t row = 0; row < own; ++row)
      for (size_t head = 0; head < out_layout.heads; ++head) {
        const size_t at = row * place.row_step + head * place.head_step;
        const size_t lse = row * place.lse_row_step + head * place.lse_head_step;
        const size_t token = starts[b] + row;
        const double* before =
            previous.out.data.data() + (token * out_layout.heads + head) * out_layout.size;
        const double before_lse = previous.lse.data[head * out_layout.rows + token];
        if (total == 0) {  // nothing to join with
          std::copy_n(before, out_layout.size, place.values + at);
          place.lse[lse] = before_lse;
        } else {
          join_row(before, before_lse, out_layout.size, place.values + at, place.slack + at,
                   place.lse[lse], place.lse_slack[lse]);
        }
      }
    return {};
  };
  if (auto done = for_each_sequence(task, count, attend_to); !done) return fail(done.error());
  for (size_t b = 0; b < count; ++b) output->add(0, starts[b], (*query_counts)[b], hidden[b]);
  return task.give(std::move(*output).finish(task));
}

// The sum of all parts, each by its share of the sums of exponentials.
Result<Expected> fa_update(Task& task) {
  const int64_t type = task.param().integer("faUpdateType", 0);
  const int64_t parts = task.param().integer("sp", 1);
  if (type != 0) return fail(task.no_golden("faUpdateType " + std::to_string(type)));
  if (auto given = task.takes({"lse", "out"}); !given) return fail(given.error());
  const Array lse = task.values("lse");
  const Array out = task.values("out");
  const bool fits = parts > 0 && out.rank() >= 2 && lse.dim(0) == static_cast<size_t>(parts) &&
                    out.dim(0) == lse.dim(0) && out.rows() == lse.elements();
  if (!fits)
    return fail(task.contradiction("lse of shape " + shape_text(lse.shape) + " and out of shape " +
                                   shape_text(out.shape) + " are not those of " +
                                   std::to_string(parts) + " parts"));
  const size_t count = lse.dim(0);
  const size_t rows = lse.elements() / count;
  const size_t size = out.row_elements();
  Output result;
  result.shape.assign(out.shape.begin() + 1, out.shape.end());
  if (auto room = task.make_room(rows * size, 2); !room) return fail(room.error());
  result.values.assign(rows * size, 0.0);
  result.slack.assign(rows * size, 0.0);
  for (size_t row = 0; row < rows; ++row) {
    double largest = lse.data[row];
    for (size_t part = 1; part < count; ++part)
      largest = std::max(largest, lse.data[part * rows + row]);
    double total = 0;
    for (size_t part = 0; part < count; ++part)
      total += std::exp(lse.data[part * rows + row] - largest);
    for (size_t part = 0; part < count; ++part) {
      const double exponent = lse.data[part * rows + row];
      const double share = std::exp(exponent - largest) / total;
      // A kernel that subtracts something else, or nothing, rounds at the size of the exponent.
      const double off = kFunctionUnits + std::abs(exponent) + static_cast<double>(count);
      for (size_t d = 0; d < size; ++d) {
        const double term = share * out.data[(part * rows + row) * size + d];
        result.values[row * size + d] += term;
        result.slack[row * size + d] +=
            share == 0 ? 0 : kMargin * kFloat32Unit * off * std::abs(term);
      }
    }
  }
  for (double& slack : result.slack)
    if (!std::isfinite(slack)) slack = 0;
  return task.give({std::move(result)});
}

}  // namespace ait::golden
