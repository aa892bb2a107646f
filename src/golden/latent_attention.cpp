// MultiLatentAttentionOperation: all heads of the queries read one head of latent keys, which is
// split into a part without position and a rotated one; the first is the values, too. Or, for whole
// sequences (PREFILL), heads that are split so with values of their own.
#include <algorithm>
#include <optional>

#include "golden/attention_mask.h"
#include "golden/attention_output.h"
#include "golden/attention_rows.h"
#include "golden/families.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using Mask = graph::LatentMaskType;
using Calc = graph::LatentCalcType;
using CacheMode = graph::LatentCacheMode;

struct Keys {
  size_t heads;  // of the queries
  double scale;
  Mask mask;
  Calc calc;
  CacheMode cache;
  size_t window;
  bool with_status;  // says for each sequence whether its mask is used

  bool several_queries() const { return calc == Calc::kSpec || calc == Calc::kSpecAndRing; }
  bool ring() const { return calc == Calc::kRing || calc == Calc::kSpecAndRing; }
  bool int8() const { return cache == CacheMode::kSplitInt8Nz; }
  bool pieces() const { return int8() || cache == CacheMode::kSplitNz; }
};

Result<Keys> read_keys(Task& task) {
  graph::AtbParam& param = task.param();
  Keys keys{};
  const auto heads = read_heads(task);
  if (!heads) return fail(heads.error());
  keys.heads = heads->queries;
  keys.scale = param.number("qkScale", 1);
  keys.mask = param.choice("maskType", Mask::kUndefined);
  keys.calc = param.choice("calcType", Calc::kUndefined);
  keys.cache = param.choice("cacheMode", CacheMode::kKvCache);
  using Status = graph::MaskUseStatusType;
  keys.with_status = param.choice("maskUseStatusType", Status::kUndefined) == Status::kBatchMask;
  const int64_t window = param.integer("windowSize", 0);
  if (window < 0 || (keys.mask == Mask::kSlidingWindow && window == 0))
    return fail(task.contradiction("windowSize is " + std::to_string(window) + " with maskType " +
                                   std::to_string(static_cast<int>(keys.mask))));
  keys.window = static_cast<size_t>(window);
  return keys;
}

struct Batch {
  std::vector<size_t> queries;
  std::vector<size_t> keys;
  std::vector<size_t> starts;  // of the queries

  size_t most_queries() const { return *std::max_element(queries.begin(), queries.end()); }
  size_t most_keys() const { return *std::max_element(keys.begin(), keys.end()); }
};

// Lengths of as many sequences, whose queries are packed in `rows` rows.
Result<Batch> packed_batch(const Task& task, std::vector<size_t> queries, std::vector<size_t> keys,
                           size_t rows) {
  if (queries.size() != keys.size())
    return fail(task.contradiction(std::to_string(queries.size()) + " lengths of queries and " +
                                   std::to_string(keys.size()) + " of keys"));
  Batch batch{std::move(queries), std::move(keys), {}};
  size_t start = 0;
  for (const size_t count : batch.queries) {
    if (count > rows - start)
      return fail(task.contradiction("the sequences need more rows than the " +
                                     std::to_string(rows) + " of the queries"));
    batch.starts.push_back(start);
    start += count;
  }
  return batch;
}

// Both parts of the queries.
struct SplitRows {
  TokenLayout first;
  TokenLayout second;
};

Result<SplitRows> split_queries(const Task& task, std::string_view first, std::string_view second,
                                size_t heads, size_t sequences) {
  const auto a = token_layout(task, first, heads, sequences, false);
  if (!a) return fail(a.error());
  const auto b = token_layout(task, second, heads, sequences, false);
  if (!b) return fail(b.error());
  if (a->padded() || b->padded() || a->rows != b->rows)
    return fail(task.contradiction(std::string(first) + " of shape " +
                                   shape_text(task.shape(first)) + " and " + std::string(second) +
                                   " of shape " + shape_text(task.shape(second)) +
                                   " are not the rows of as many tokens"));
  return SplitRows{*a, *b};
}

// Of the cached latent keys: which each query of a sequence sees, and what is added.
class LatentMask {
 public:
  static Result<LatentMask> of(Task& task, const Keys& keys, size_t sequences) {
    LatentMask mask;
    mask.keys_ = keys;
    if (keys.mask == Mask::kSpec) {
      auto tensor = MaskTensor::of(task, "mask", sequences, keys.heads,
                                   MaskTensor::First::kSequences, MaskTensor::Style::kFlagsOrTerms);
      if (!tensor) return fail(tensor.error());
      mask.tensor_ = std::move(*tensor);
    }
    if (!keys.with_status) return mask;
    auto status = whole_numbers(task, "maskUseStatus");
    if (!status) return fail(status.error());
    if (status->size() != sequences)
      return fail(task.contradiction("maskUseStatus has " + std::to_string(status->size()) +
                                     " elements for " + std::to_string(sequences) + " sequences"));
    mask.status_ = std::move(*status);
    return mask;
  }

  // `start` counts the queries of the sequences before it.
  Result<void> set(const Task& task, size_t number, size_t start, Sequence& sequence) const {
    if (!status_.empty() && status_[number] == 0) return {};
    const size_t total = sequence.keys.rows;
    const size_t position = total - sequence.queries.rows;
    const bool always_causal = keys_.int8() && keys_.several_queries();
    if (tensor_) {
      const size_t last = start + sequence.queries.rows;
      if (last > tensor_->rows() || total > tensor_->columns())
        return fail(task.contradiction(
            "sequence " + std::to_string(number) + " needs " + std::to_string(last) +
            " rows of a mask for " + std::to_string(total) + " keys, and the mask has " +
            std::to_string(tensor_->rows()) + " for " + std::to_string(tensor_->columns())));
      sequence.add_mask = [this, number, start](size_t head, size_t row, KeyRange range,
                                                double* scores) {
        return tensor_->add(number, head, start + row, range, scores);
      };
    } else if (keys_.mask == Mask::kSlidingWindow) {
      sequence.visible = [position, total, window = keys_.window](size_t row) {
        return window_keys(position + row, window, total);
      };
    } else if (keys_.mask != Mask::kUndefined || always_causal) {
      sequence.visible = [position, total](size_t row) {
        return causal_keys(position + row, total);
      };
    }
    return {};
  }

 private:
  Keys keys_{};
  std::optional<MaskTensor> tensor_;
  std::vector<int64_t> status_;
};

// Scales for each head of the queries.
Result<std::vector<double>> head_scales(const Task& task, std::string_view name, size_t heads) {
  std::vector<double> scales = task.values(name).data;
  if (scales.size() != heads)
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(scales.size()) +
                                   " elements for " + std::to_string(heads) + " heads"));
  return scales;
}

// The last tokens of sequences against latent keys in blocks of caches.
Result<Expected> attend_to_caches(Task& task, const Keys& keys) {
  if (keys.cache == CacheMode::kKvCache) return fail(task.no_golden("cacheMode KVCACHE"));
  std::vector<std::string_view> names = {"~qNope",      "~qRope",      "~ctKvCache",
                                         "~kRopeCache", "blockTables", "contextLens"};
  if (keys.mask != Mask::kUndefined && keys.mask != Mask::kCausal)
    names.emplace_back(keys.mask == Mask::kSpec ? "~mask" : "?mask");
  if (keys.several_queries()) names.emplace_back("qSeqLen");
  if (keys.int8()) names.insert(names.end(), {"qkDescale", "pvDescale"});
  if (keys.with_status) names.emplace_back("maskUseStatus");
  if (auto given = task.takes(names); !given) return fail(given.error());

  auto key_counts = lengths(task, "contextLens");
  if (!key_counts) return fail(key_counts.error());
  std::vector<size_t> query_counts(key_counts->size(), 1);
  if (keys.several_queries()) {
    auto counts = lengths(task, "qSeqLen");
    if (!counts) return fail(counts.error());
    query_counts = std::move(*counts);
  }
  for (size_t b = 0; b < std::min(query_counts.size(), key_counts->size()); ++b) {
    if ((*key_counts)[b] == 0) query_counts[b] = 0;  // such a sequence has no row
    if ((*key_counts)[b] < query_counts[b])
      return fail(task.contradiction("contextLens of sequence " + std::to_string(b) + " is " +
                                     std::to_string((*key_counts)[b]) + ", less than its " +
                                     std::to_string(query_counts[b]) + " queries"));
  }
  const auto layout = split_queries(task, "qNope", "qRope", keys.heads, query_counts.size());
  if (!layout) return fail(layout.error());
  const auto batch =
      packed_batch(task, std::move(query_counts), std::move(*key_counts), layout->first.rows);
  if (!batch) return fail(batch.error());
  const size_t count = batch->queries.size();
  const Cache::Known known{false, keys.pieces()};
  const auto latent = Cache::of_blocks(task, "ctKvCache", 1, layout->first.size, known);
  if (!latent) return fail(latent.error());
  const auto rotated = Cache::of_blocks(task, "kRopeCache", 1, layout->second.size, known);
  if (!rotated) return fail(rotated.error());
  if (latent->pages() != rotated->pages() || latent->page_rows() != rotated->page_rows())
    return fail(task.contradiction("ctKvCache has " + std::to_string(latent->pages()) +
                                   " blocks of " + std::to_string(latent->page_rows()) +
                                   ", and kRopeCache " + std::to_string(rotated->pages()) + " of " +
                                   std::to_string(rotated->page_rows())));
  const auto table = block_table(task, "blockTables", count);
  if (!table) return fail(table.error());
  const auto mask = LatentMask::of(task, keys, count);
  if (!mask) return fail(mask.error());

  Sequence base;
  base.scale = keys.scale;
  base.weight_type = task.dtype("ctKvCache");
  std::vector<double> first_scales;
  if (keys.int8()) {
    auto of_keys = head_scales(task, "qkDescale", keys.heads);
    if (!of_keys) return fail(of_keys.error());
    auto of_values = head_scales(task, "pvDescale", keys.heads);
    if (!of_values) return fail(of_values.error());
    first_scales = std::move(*of_keys);
    base.value_scales = std::move(*of_values);
    base.weight_type = DType::kFloat32;
    base.quantise = [](size_t, std::span<double> weights, std::span<double> off) {
      Int8Weights kind;
      kind.half = true;
      quantise_weights(kind, weights, off);
    };
  }
  auto output = AttentionOutput::of(task, layout->first, task.shape("qNope"));
  if (!output) return fail(output.error());
  if (keys.ring())
    output->add_lse({static_cast<int64_t>(layout->first.rows), static_cast<int64_t>(keys.heads), 1},
                    false);
  base.queries.heads = keys.heads;
  base.queries.size = layout->first.size + layout->second.size;
  base.keys.heads = 1;
  base.values.size = layout->first.size;
  // Queries and keys, read and joined.
  if (auto room = task.make_room(batch->most_queries() * keys.heads + batch->most_keys(),
                                 2 * base.queries.size);
      !room)
    return fail(room.error());
  if (auto room = make_attend_room(task, base, batch->most_queries(), batch->most_keys()); !room)
    return fail(room.error());

  std::vector<std::vector<HiddenRow>> hidden(count);
  const auto attend_to = [&](size_t b, size_t threads) -> Result<void> {
    if (batch->queries[b] == 0) return {};
    const size_t start = batch->starts[b];
    const CachedRows queries = join_heads(
        rows_of(task, "qNope", layout->first, b, start, batch->queries[b]),
        rows_of(task, "qRope", layout->second, b, start, batch->queries[b]), first_scales);
    const auto first = read_blocks(task, *latent, *table, b, batch->keys[b]);
    if (!first) return fail(first.error());
    const auto second = read_blocks(task, *rotated, *table, b, batch->keys[b]);
    if (!second) return fail(second.error());
    const CachedRows joined = join_heads(first->view(), second->view(), {});
    Sequence sequence = base;
    sequence.queries = queries.view();
    sequence.keys = joined.view();
    sequence.values = joined.view();
    sequence.values.size = layout->first.size;
    if (auto set = mask->set(task, b, start, sequence); !set) return set;
    hidden[b] = attend(task, sequence, output->place(0, start), threads);
    return {};
  };
  if (auto done = for_each_sequence(task, count, attend_to); !done) return fail(done.error());
  for (size_t b = 0; b < count; ++b) output->add(0, batch->starts[b], batch->queries[b], hidden[b]);
  return task.give(std::move(*output).finish(task));
}

// Rows of which every sequence has as many: [sequences, rows, heads * size], or with the heads
// apart. `size` or `heads` is 0 where it is not known.
Result<TokenLayout> padded_layout(const Task& task, std::string_view name, size_t sequences,
                                  size_t heads, size_t size) {
  const Shape& shape = task.shape(name);
  TokenLayout layout;
  layout.sequences = sequences;
  const bool apart = shape.size() == 4;
  if ((shape.size() == 3 || apart) && static_cast<size_t>(shape[0]) == sequences) {
    layout.rows = static_cast<size_t>(shape[1]);
    const auto row = static_cast<size_t>(apart ? shape[2] * shape[3] : shape[2]);
    layout.heads = heads != 0 ? heads : row / size;
    layout.size = layout.heads == 0 ? 0 : row / layout.heads;
    if (layout.heads * layout.size == row && layout.heads != 0 &&
        (size == 0 || layout.size == size))
      return layout;
  }
  return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                 " has no rows of " + std::to_string(sequences) + " sequences"));
}

// Whole sequences, with keys and values that are given.
Result<Expected> attend_to_given(Task& task, const Keys& keys) {
  if (auto given = task.takes(
          {"~query", "~queryRope", "~key", "~keyRope", "~value", "qSeqLen", "kvSeqLen", "?mask"});
      !given)
    return fail(given.error());
  auto query_counts = lengths(task, "qSeqLen");
  if (!query_counts) return fail(query_counts.error());
  auto key_counts = lengths(task, "kvSeqLen");
  if (!key_counts) return fail(key_counts.error());
  const size_t count = query_counts->size();
  const auto layout = split_queries(task, "query", "queryRope", keys.heads, count);
  if (!layout) return fail(layout.error());
  const auto batch =
      packed_batch(task, std::move(*query_counts), std::move(*key_counts), layout->first.rows);
  if (!batch) return fail(batch.error());
  const auto key = padded_layout(task, "key", count, 0, layout->first.size);
  if (!key) return fail(key.error());
  if (keys.heads % key->heads != 0)
    return fail(task.contradiction("key has " + std::to_string(key->heads) + " heads, and query " +
                                   std::to_string(keys.heads)));
  const auto key_rope = padded_layout(task, "keyRope", count, key->heads, layout->second.size);
  if (!key_rope) return fail(key_rope.error());
  const auto value = padded_layout(task, "value", count, key->heads, 0);
  if (!value) return fail(value.error());
  const size_t rows = std::min({key->rows, key_rope->rows, value->rows});
  if (batch->most_keys() > rows)
    return fail(
        task.contradiction("kvSeqLen has the element " + std::to_string(batch->most_keys()) +
                           ", and key, keyRope and value have " + std::to_string(rows) + " rows"));
  TokenLayout out_layout = layout->first;
  out_layout.size = value->size;
  auto output =
      AttentionOutput::of(task, out_layout,
                          {static_cast<int64_t>(out_layout.rows), static_cast<int64_t>(keys.heads),
                           static_cast<int64_t>(value->size)});
  if (!output) return fail(output.error());
  Sequence base;
  base.scale = keys.scale;
  base.weight_type = task.dtype("value");
  base.queries.heads = keys.heads;
  base.queries.size = layout->first.size + layout->second.size;
  base.keys.heads = key->heads;
  base.values.size = value->size;
  const size_t joined_rows = batch->most_queries() * keys.heads + batch->most_keys() * key->heads;
  if (auto room = task.make_room(joined_rows, base.queries.size); !room) return fail(room.error());
  if (auto room = make_attend_room(task, base, batch->most_queries(), batch->most_keys()); !room)
    return fail(room.error());

  std::vector<std::vector<HiddenRow>> hidden(count);
  const auto attend_to = [&](size_t b, size_t threads) -> Result<void> {
    const size_t queries = batch->queries[b];
    const size_t total = batch->keys[b];
    if (queries == 0 || total == 0) return {};
    const CachedRows query_rows =
        join_heads(rows_of(task, "query", layout->first, b, batch->starts[b], queries),
                   rows_of(task, "queryRope", layout->second, b, batch->starts[b], queries), {});
    const CachedRows key_rows = join_heads(rows_of(task, "key", *key, b, 0, total),
                                           rows_of(task, "keyRope", *key_rope, b, 0, total), {});
    Sequence sequence = base;
    sequence.queries = query_rows.view();
    sequence.keys = key_rows.view();
    sequence.values = rows_of(task, "value", *value, b, 0, total);
    if (keys.mask == Mask::kSlidingWindow)
      sequence.visible = [total, window = keys.window](size_t row) {
        return window_keys(row, window, total);
      };
    else if (keys.mask != Mask::kUndefined)
      sequence.visible = [total](size_t row) { return causal_keys(row, total); };
    hidden[b] = attend(task, sequence, output->place(0, batch->starts[b]), threads);
    return {};
  };
  if (auto done = for_each_sequence(task, count, attend_to); !done) return fail(done.error());
  for (size_t b = 0; b < count; ++b)
    if (batch->keys[b] > 0) output->add(0, batch->starts[b], batch->queries[b], hidden[b]);
  return task.give(std::move(*output).finish(task));
}

}  // namespace

Result<Expected> multi_latent_attention(Task& task) {
  const auto keys = read_keys(task);
  if (!keys) return fail(keys.error());
  return keys->calc == Calc::kPrefill ? attend_to_given(task, *keys)
                                      : attend_to_caches(task, *keys);
}

}  // namespace ait::golden
