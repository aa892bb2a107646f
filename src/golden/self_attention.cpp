// SelfAttentionOperation: whole sequences at once (encoders), or one more token of each (decoders),
// against keys and values that are given, in a cache, or in blocks of a cache.
#include <algorithm>
#include <optional>

#include "golden/attention_output.h"
#include "golden/attention_rows.h"
#include "golden/families.h"
#include "golden/rounding.h"
#include "golden/self_mask.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using Calc = graph::SelfAttentionCalcType;
using Mask = graph::SelfAttentionMaskType;
using Quant = graph::AttentionQuantType;

struct Keys {
  Heads heads;
  Calc calc;
  Mask mask;
  Quant quant;
  double query_scale;
  double scale;
  bool bypass;
  bool with_status;
  bool triangle;
  bool heads_first;
  bool log_n;
  bool high_precision;
  bool ring_cache;
  std::optional<std::pair<double, double>> clamp;
  size_t window;
  size_t latent_size;  // of values that are the first numbers of the keys

  bool decodes() const { return calc == Calc::kDecoder; }
  bool slopes() const { return has_slopes(mask); }
  bool slides() const {
    return mask == Mask::kSlidingWindowNorm || mask == Mask::kSlidingWindowCompress;
  }
};

Result<Keys> read_keys(Task& task) {
  graph::AtbParam& param = task.param();
  Keys keys{};
  const auto heads = read_heads(task);
  if (!heads) return fail(heads.error());
  keys.heads = *heads;
  keys.calc = param.choice("calcType", Calc::kUndefined);
  keys.mask = param.choice("maskType", Mask::kUndefined);
  keys.quant = param.choice("quantType", Quant::kUndefined);
  keys.query_scale = param.number("qScale", 1);
  keys.scale = param.number("qkScale", 1);
  using Cfg = graph::SelfAttentionKvCacheCfg;
  keys.bypass = param.choice("kvcacheCfg", Cfg::kCaches) == Cfg::kBypass;
  keys.with_status = param.flag("batchRunStatusEnable", false);
  keys.triangle = param.integer("isTriuMask", 0) != 0;
  using Layout = graph::AttentionInputLayout;
  keys.heads_first = param.choice("inputLayout", Layout::kBsnd) == Layout::kBnsd;
  using Scale = graph::AttentionScaleType;
  keys.log_n = param.choice("scaleType", Scale::kTor) == Scale::kLogN;
  using Kernel = graph::SelfAttentionKernelType;
  keys.high_precision = param.choice("kernelType", Kernel::kDefault) == Kernel::kHighPrecision;
  using CacheType = graph::SelfAttentionCacheType;
  keys.ring_cache = param.choice("cacheType", CacheType::kNorm) == CacheType::kSwa;
  using Clamp = graph::SelfAttentionClampType;
  if (param.choice("clampType", Clamp::kUndefined) == Clamp::kMinMax)
    keys.clamp = {param.number("clampMin", 0), param.number("clampMax", 0)};
  const int64_t window = param.integer("windowSize", 0);
  const int64_t latent = param.integer("mlaVHeadSize", 0);
  if (window < 0 || latent < 0 || (keys.slides() && window == 0))
    return fail(task.contradiction(
        "windowSize is " + std::to_string(window) + ", mlaVHeadSize is " + std::to_string(latent) +
        " with maskType " + std::to_string(static_cast<int>(keys.mask))));
  keys.window = static_cast<size_t>(window);
  keys.latent_size = static_cast<size_t>(latent);
  return keys;
}

// All that an operation knows of its sequences.
struct Batch {
  TokenLayout layout;             // of the queries
  std::vector<size_t> queries;    // how many each sequence has
  std::vector<size_t> starts;     // where its queries begin
  std::vector<size_t> keys;       // how many it has
  std::vector<bool> runs;         // whether it is computed at all
  std::vector<size_t> positions;  // the row of the mask of its first query
  bool masked = true;
  bool log_n_of_sequence = false;  // one factor for each sequence, else one for each query
};

// The keys and values of one sequence, and what they were read into.
struct KeyValues {
  CachedRows key_rows;
  CachedRows value_rows;
  HeadRows keys;
  HeadRows values;
};
using ReadKeys = std::function<Result<KeyValues>(size_t sequence)>;

// Where the rows of each sequence begin. Fails where the tensor has too few.
Result<std::vector<size_t>> starts_of(const Task& task, std::string_view name,
                                      const TokenLayout& layout,
                                      const std::vector<size_t>& counts) {
  std::vector<size_t> starts;
  size_t start = 0;
  for (const size_t count : counts) {
    starts.push_back(start);
    if (count > layout.rows || (!layout.padded() && count > layout.rows - start))
      return fail(task.contradiction("the sequences need more rows than the " +
                                     std::to_string(layout.rows) + " of " + std::string(name)));
    start += count;
  }
  return starts;
}

Error wrong_count(const Task& task, std::string_view name, size_t count, size_t wanted) {
  return task.contradiction(std::string(name) + " has " + std::to_string(count) +
                            " elements, not " + std::to_string(wanted));
}

Result<Batch> read_batch(const Task& task, const Keys& keys, std::vector<size_t> queries,
                         std::vector<size_t> key_counts) {
  const size_t count = queries.size();
  if (key_counts.size() != count)
    return fail(task.contradiction(std::to_string(count) + " lengths of queries and " +
                                   std::to_string(key_counts.size()) + " of keys"));
  const auto layout = token_layout(task, "query", keys.heads.queries, count, keys.heads_first);
  if (!layout) return fail(layout.error());
  auto starts = starts_of(task, "query", *layout, queries);
  if (!starts) return fail(starts.error());
  Batch batch;
  batch.layout = *layout;
  batch.queries = std::move(queries);
  batch.starts = std::move(*starts);
  batch.keys = std::move(key_counts);
  batch.runs.assign(count, true);
  batch.positions.assign(count, 0);
  return batch;
}

// Where keys or values lie that are given as rows of tokens.
struct GivenRows {
  TokenLayout layout;
  std::vector<size_t> starts;
};

Result<GivenRows> given_rows(const Task& task, std::string_view name, const Keys& keys, size_t size,
                             const std::vector<size_t>& counts) {
  const auto layout = token_layout(task, name, keys.heads.keys, counts.size(), keys.heads_first);
  if (!layout) return fail(layout.error());
  if (size != 0 && layout->size != size)
    return fail(task.contradiction(std::string(name) + " has heads of " +
                                   std::to_string(layout->size) + ", not of " +
                                   std::to_string(size)));
  auto starts = starts_of(task, name, *layout, counts);
  if (!starts) return fail(starts.error());
  return GivenRows{*layout, std::move(*starts)};
}

// What does not depend on the sequence.
Sequence base_sequence(const Task& task, const Keys& keys, DType weight_type) {
  Sequence sequence;
  sequence.scale = keys.scale;
  sequence.clamp = keys.clamp;
  sequence.weight_type = weight_type;
  sequence.half_scores = task.dtype("query") == DType::kFloat16 && !keys.high_precision;
  return sequence;
}

Result<void> set_log_n(const Task& task, const Array& log_n, bool of_sequence, size_t number,
                       Sequence& sequence) {
  const size_t rows = sequence.queries.rows;
  const size_t needed = of_sequence ? number + 1 : rows;
  if (log_n.elements() < needed)
    return fail(task.contradiction("logN has " + std::to_string(log_n.elements()) +
                                   " elements, and sequence " + std::to_string(number) + " needs " +
                                   std::to_string(needed)));
  if (of_sequence)
    sequence.row_scales.assign(rows, log_n.data[number]);
  else
    sequence.row_scales.assign(log_n.data.begin(),
                               log_n.data.begin() + static_cast<ptrdiff_t>(rows));
  return {};
}

// The shape of the result: that of the query, with heads of the values' size. The library joins the
// heads of a query with four dimensions.
Shape result_shape(const Task& task, const Keys& keys, size_t value_size) {
  Shape shape = task.shape("query");
  const auto size = static_cast<int64_t>(value_size);
  if (shape.size() == 2) shape[1] = static_cast<int64_t>(keys.heads.queries) * size;
  if (shape.size() == 3 || (shape.size() == 4 && keys.heads_first)) shape.back() = size;
  if (shape.size() == 4 && !keys.heads_first) {
    shape[2] *= size;
    shape.pop_back();
  }
  return shape;
}

// `query` holds the queries where they are not those of the input.
Result<Expected> attend_to_all(Task& task, const Keys& keys, const Batch& batch, const Array* query,
                               const Sequence& given_base, size_t value_size,
                               const ReadKeys& read) {
  const auto mask = SelfMask::of(task, {keys.mask, keys.triangle, keys.window}, keys.heads.queries,
                                 batch.queries.size());
  if (!mask) return fail(mask.error());
  TokenLayout layout = batch.layout;
  layout.size = value_size;
  auto output = AttentionOutput::of(task, layout, result_shape(task, keys, value_size));
  if (!output) return fail(output.error());
  Sequence base = given_base;
  base.queries.heads = keys.heads.queries;
  base.queries.size = batch.layout.size;
  base.keys.heads = keys.heads.keys;
  base.values.size = value_size;
  const size_t most_queries = *std::max_element(batch.queries.begin(), batch.queries.end());
  const size_t most_keys = *std::max_element(batch.keys.begin(), batch.keys.end());
  if (auto room = make_attend_room(task, base, most_queries, most_keys); !room)
    return fail(room.error());
  const Array log_n = task.values("logN");
  std::vector<std::vector<HiddenRow>> hidden(batch.queries.size());
  const auto runs = [&](size_t b) {
    return batch.runs[b] && batch.queries[b] > 0 && batch.keys[b] > 0;
  };
  const auto attend_to = [&](size_t b, size_t threads) -> Result<void> {
    if (!runs(b)) return {};
    const auto given = read(b);
    if (!given) return fail(given.error());
    Sequence sequence = base;
    sequence.queries =
        query != nullptr
            ? rows_of(*query, batch.layout, b, batch.starts[b], batch.queries[b])
            : rows_of(task, "query", batch.layout, b, batch.starts[b], batch.queries[b]);
    sequence.keys = given->keys;
    sequence.values = given->values;
    if (keys.log_n) {
      if (auto set = set_log_n(task, log_n, batch.log_n_of_sequence, b, sequence); !set) return set;
    }
    if (batch.masked) {
      if (auto set = mask->set(task, b, batch.positions[b], sequence); !set) return set;
    }
    hidden[b] = attend(task, sequence, output->place(b, batch.starts[b]), threads);
    return {};
  };
  if (auto done = for_each_sequence(task, batch.queries.size(), attend_to); !done)
    return fail(done.error());
  for (size_t b = 0; b < batch.queries.size(); ++b)
    if (runs(b)) output->add(b, batch.starts[b], batch.queries[b], hidden[b]);
  return task.give(std::move(*output).finish(task));
}

// The sequences that run.
Result<void> read_status(const Task& task, bool decodes, Batch& batch) {
  const auto status = whole_numbers(task, "batchRunStatus");
  if (!status) return fail(status.error());
  if (status->size() != batch.runs.size())
    return fail(wrong_count(task, "batchRunStatus", status->size(), batch.runs.size()));
  for (size_t b = 0; b < batch.runs.size(); ++b) {
    batch.runs[b] = (*status)[b] != 0;
    // The library's kernels and its own reference disagree on the rows of such a sequence.
    if (!batch.runs[b] && !decodes && batch.queries[b] != 0)
      return fail(task.no_golden("batchRunStatus 0 for sequence " + std::to_string(b) + " with " +
                                 std::to_string(batch.queries[b]) + " queries"));
  }
  return {};
}

// Keys and values in a cache of their own for each sequence: the new ones are given beside it
// (kvcacheCfg 0), or in it already (1). The rows of the cache that the operation writes are not
// read, so it does not matter whether the cache was recorded before or after it.
Result<Expected> cached_attention(Task& task, const Keys& keys) {
  // A decoder with a window needs no mask: it sees the last tokens.
  const bool last_keys = keys.decodes() && keys.mask == Mask::kSlidingWindowNorm;
  const bool ring = last_keys && keys.ring_cache;
  std::vector<std::string_view> names = {"~query"};
  if (!keys.bypass) names.insert(names.end(), {"key", "value"});
  names.insert(names.end(), {"~cacheK", "~cacheV"});
  if (keys.mask != Mask::kUndefined && keys.mask != Mask::kCausal && !last_keys)
    names.emplace_back("~mask");
  names.insert(names.end(), {"tokenOffset", "seqLen", "layerId"});
  if (keys.with_status) names.emplace_back("batchRunStatus");
  if (keys.slopes()) names.emplace_back("slopes");
  if (keys.log_n) names.emplace_back("logN");
  // The mask's row of a decoder is the first, so these would hide all keys but one.
  if (keys.decodes() && !last_keys && keys.mask != Mask::kUndefined && keys.mask != Mask::kNorm &&
      keys.mask != Mask::kAlibi)
    return fail(task.no_golden("maskType " + std::to_string(static_cast<int>(keys.mask)) +
                               " with calcType DECODER"));
  if (keys.quant != Quant::kUndefined || keys.latent_size != 0)
    return fail(task.no_golden("quantType or mlaVHeadSize with calcType " +
                               std::to_string(static_cast<int>(keys.calc))));
  if (auto given = task.takes(names); !given) return fail(given.error());

  auto key_counts = lengths(task, "tokenOffset");
  if (!key_counts) return fail(key_counts.error());
  auto query_counts = lengths(task, "seqLen");
  if (!query_counts) return fail(query_counts.error());
  const auto layer = indices(task, "layerId", ~size_t{0});
  if (!layer) return fail(layer.error());
  if (layer->size() != 1) return fail(wrong_count(task, "layerId", layer->size(), 1));
  auto read = read_batch(task, keys, std::move(*query_counts), std::move(*key_counts));
  if (!read) return fail(read.error());
  Batch& batch = *read;
  batch.masked = !last_keys;
  const bool decodes = keys.decodes() || (keys.calc == Calc::kUndefined &&
                                          std::all_of(batch.queries.begin(), batch.queries.end(),
                                                      [](size_t count) { return count <= 1; }));
  batch.log_n_of_sequence = decodes;
  if (keys.with_status) {
    if (auto status = read_status(task, decodes, batch); !status) return fail(status.error());
  }

  const Cache::Dense dense{batch.queries.size(), layer->front(), keys.heads_first,
                           keys.with_status};
  const auto key_cache =
      Cache::of_layers(task, "cacheK", keys.heads.keys, batch.layout.size, dense);
  if (!key_cache) return fail(key_cache.error());
  const auto value_cache = Cache::of_layers(task, "cacheV", keys.heads.keys, 0, dense);
  if (!value_cache) return fail(value_cache.error());
  GivenRows key_given, value_given;
  if (!keys.bypass) {
    auto key_rows = given_rows(task, "key", keys, key_cache->size(), batch.queries);
    if (!key_rows) return fail(key_rows.error());
    auto value_rows = given_rows(task, "value", keys, value_cache->size(), batch.queries);
    if (!value_rows) return fail(value_rows.error());
    key_given = std::move(*key_rows);
    value_given = std::move(*value_rows);
  }
  const size_t cache_rows = std::min(key_cache->page_rows(), value_cache->page_rows());
  size_t most_keys = 0;
  for (size_t b = 0; b < batch.queries.size(); ++b) {
    const size_t stored = ring ? std::min(batch.keys[b], keys.window) : batch.keys[b];
    if (batch.keys[b] < batch.queries[b] || stored > cache_rows)
      return fail(task.contradiction("tokenOffset of sequence " + std::to_string(b) + " is " +
                                     std::to_string(batch.keys[b]) + " with seqLen " +
                                     std::to_string(batch.queries[b]) + ", and the caches have " +
                                     std::to_string(cache_rows) + " rows"));
    most_keys = std::max(most_keys, stored);
  }
  const size_t row_size = keys.heads.keys * (key_cache->size() + value_cache->size());
  if (auto room = task.make_room(most_keys, 2 * row_size); !room) return fail(room.error());

  const Array key = task.values("key");
  const Array value = task.values("value");
  Sequence base = base_sequence(task, keys, task.dtype("cacheV"));
  Array query;
  const bool scaled = keys.query_scale != 1;
  if (scaled) {  // a step of its own in the library, rounded
    if (auto room = task.make_room(batch.layout.elements()); !room) return fail(room.error());
    query = task.values("query");
    for (double& number : query.data)
      number = round_to(task.dtype("query"), number * keys.query_scale);
    base.operand_unit = half_step(task.dtype("query"), 1);
  }
  const auto read_rows = [&](size_t b, const Cache& cache, const Array& fresh,
                             const GivenRows& given) {
    KeyRange seen{0, batch.keys[b]};
    if (ring) seen.last = std::min(seen.last, keys.window);
    if (last_keys && !ring) seen.first = seen.last - std::min(seen.last, keys.window);
    const size_t old = keys.bypass ? batch.keys[b] : batch.keys[b] - batch.queries[b];
    CachedRows rows;
    if (seen.first < old) cache.append(b, seen.first, std::min(seen.last, old) - seen.first, rows);
    rows.heads = cache.heads();
    rows.size = cache.size();
    rows.rows = seen.count();
    if (keys.bypass) return rows;
    const HeadRows fresh_rows = rows_of(fresh, given.layout, b, given.starts[b], batch.queries[b]);
    for (size_t j = std::max(seen.first, old); j < seen.last; ++j)
      for (size_t head = 0; head < fresh_rows.heads; ++head) {
        const double* row =
            fresh_rows.data + (j - old) * fresh_rows.row_step + head * fresh_rows.head_step;
        rows.data.insert(rows.data.end(), row, row + fresh_rows.size);
      }
    return rows;
  };
  if (ring)
    task.note("the cache was taken for a ring of the last " + std::to_string(keys.window) +
              " tokens");
  return attend_to_all(task, keys, batch, scaled ? &query : nullptr, base, value_cache->size(),
                       [&](size_t b) -> Result<KeyValues> {
                         KeyValues out;
                         out.key_rows = read_rows(b, *key_cache, key, key_given);
                         out.value_rows = read_rows(b, *value_cache, value, value_given);
                         out.keys = out.key_rows.view();
                         out.values = out.value_rows.view();
                         return out;
                       });
}

// Scales for each head of the queries, and int8 weights.
Result<void> set_quantised(const Task& task, const Keys& keys, Sequence& base) {
  base.head_scales = task.values("qkDescale").data;
  base.value_scales = task.values("vpvDescale").data;
  const std::vector<double> steps = task.values("pScale").data;
  for (const std::string_view name : {"qkDescale", "vpvDescale", "pScale"})
    if (task.has(name) && count_elements(task.shape(name)) != keys.heads.queries)
      return fail(wrong_count(task, name, *count_elements(task.shape(name)), keys.heads.queries));
  base.half_products = true;
  base.half_scores = true;
  base.weight_type = DType::kFloat32;
  base.quantise = [steps](size_t head, std::span<double> weights, std::span<double> off) {
    Int8Weights kind;
    kind.rounds = !steps.empty();
    if (kind.rounds) kind = {1 / steps[head], steps[head]};
    quantise_weights(kind, weights, off);
  };
  return {};
}

// Whole sequences, whose keys and values are given beside their queries.
Result<Expected> whole_sequences(Task& task, const Keys& keys) {
  const bool quantised = keys.quant == Quant::kQkvOffline || keys.quant == Quant::kQkvOnline;
  if (keys.quant != Quant::kUndefined && !quantised)
    return fail(task.no_golden("quantType " + std::to_string(static_cast<int>(keys.quant)) +
                               " with calcType PA_ENCODER"));
  std::vector<std::string_view> names = {"~query", "~key"};
  if (keys.latent_size == 0) names.emplace_back("~value");
  const size_t mask_place = names.size();
  if (keys.mask != Mask::kUndefined && keys.mask != Mask::kCausal) names.emplace_back("~mask");
  names.emplace_back("seqLen");
  if (keys.slopes()) names.emplace_back("slopes");
  if (keys.log_n) names.emplace_back("logN");
  if (quantised) names.insert(names.end(), {"qkDescale", "?qkOffset", "vpvDescale", "?vpvOffset"});
  if (keys.quant == Quant::kQkvOffline) names.emplace_back("pScale");
  // The library counts an input for the mask that follows from positions alone, and hosts leave it
  // out.
  if (keys.mask == Mask::kCausal && task.input_count() > names.size())
    names.insert(names.begin() + static_cast<ptrdiff_t>(mask_place), "?mask");
  if (auto given = task.takes(names); !given) return fail(given.error());

  auto counts = lengths(task, "seqLen");
  if (!counts) return fail(counts.error());
  const Shape& shape = task.shape("seqLen");
  std::vector<size_t> key_counts = *counts;
  if (shape.size() == 2 && shape[0] == 2) {  // those of the queries, then those of the keys
    const auto half = static_cast<ptrdiff_t>(counts->size() / 2);
    key_counts.assign(counts->begin() + half, counts->end());
    counts->resize(counts->size() / 2);
  }
  const auto batch = read_batch(task, keys, std::move(*counts), std::move(key_counts));
  if (!batch) return fail(batch.error());
  const auto key_rows = given_rows(task, "key", keys, batch->layout.size, batch->keys);
  if (!key_rows) return fail(key_rows.error());
  GivenRows value_rows = *key_rows;
  if (keys.latent_size == 0) {
    auto rows = given_rows(task, "value", keys, 0, batch->keys);
    if (!rows) return fail(rows.error());
    value_rows = std::move(*rows);
  } else if (keys.latent_size > key_rows->layout.size) {
    return fail(task.contradiction("mlaVHeadSize is " + std::to_string(keys.latent_size) +
                                   ", and the heads of key have " +
                                   std::to_string(key_rows->layout.size)));
  }
  const std::string_view value_name = keys.latent_size == 0 ? "value" : "key";
  const size_t value_size = keys.latent_size == 0 ? value_rows.layout.size : keys.latent_size;
  Sequence base = base_sequence(task, keys, task.dtype(value_name));
  if (quantised) {
    if (auto set = set_quantised(task, keys, base); !set) return fail(set.error());
    if (keys.quant == Quant::kQkvOnline)
      task.note(
          "the steps of weights in int8 are found as the kernel goes, so the golden does not "
          "round them; the bound allows for it");
  }
  return attend_to_all(
      task, keys, *batch, nullptr, base, value_size, [&](size_t b) -> Result<KeyValues> {
        KeyValues out;
        out.keys = rows_of(task, "key", key_rows->layout, b, key_rows->starts[b], batch->keys[b]);
        out.values =
            rows_of(task, value_name, value_rows.layout, b, value_rows.starts[b], batch->keys[b]);
        out.values.size = value_size;
        return out;
      });
}

// The last tokens of sequences, the keys and values of which are all in blocks of a cache.
Result<Expected> after_prefix(Task& task, const Keys& keys) {
  if (keys.quant != Quant::kUndefined || keys.latent_size != 0 || keys.log_n || keys.heads_first ||
      keys.query_scale != 1)
    return fail(task.no_golden(
        "calcType PREFIX_ENCODER with quantType, mlaVHeadSize, LOGN, BNSD or qScale"));
  std::vector<std::string_view> names = {"~query", "~keyCache", "~valueCache", "blockTables"};
  if (keys.mask != Mask::kUndefined && keys.mask != Mask::kCausal) names.emplace_back("~mask");
  names.insert(names.end(), {"seqLen", "kvSeqLen"});
  if (keys.slopes()) names.emplace_back("slopes");
  if (auto given = task.takes(names); !given) return fail(given.error());

  auto query_counts = lengths(task, "seqLen");
  if (!query_counts) return fail(query_counts.error());
  auto key_counts = lengths(task, "kvSeqLen");
  if (!key_counts) return fail(key_counts.error());
  auto batch = read_batch(task, keys, std::move(*query_counts), std::move(*key_counts));
  if (!batch) return fail(batch.error());
  size_t most_keys = 0;
  for (size_t b = 0; b < batch->queries.size(); ++b) {
    if (batch->keys[b] < batch->queries[b])
      return fail(task.contradiction("kvSeqLen of sequence " + std::to_string(b) + " is " +
                                     std::to_string(batch->keys[b]) + ", less than its seqLen " +
                                     std::to_string(batch->queries[b])));
    batch->positions[b] = batch->keys[b] - batch->queries[b];
    most_keys = std::max(most_keys, batch->keys[b]);
  }
  const auto key_cache =
      Cache::of_blocks(task, "keyCache", keys.heads.keys, batch->layout.size, {});
  if (!key_cache) return fail(key_cache.error());
  const auto value_cache = Cache::of_blocks_like(task, "valueCache", *key_cache);
  if (!value_cache) return fail(value_cache.error());
  const auto table = block_table(task, "blockTables", batch->queries.size());
  if (!table) return fail(table.error());
  const size_t row_size = keys.heads.keys * (key_cache->size() + value_cache->size());
  if (auto room = task.make_room(most_keys, 2 * row_size); !room) return fail(room.error());
  return attend_to_all(
      task, keys, *batch, nullptr, base_sequence(task, keys, task.dtype("valueCache")),
      value_cache->size(), [&](size_t b) -> Result<KeyValues> {
        KeyValues out;
        auto key_rows = read_blocks(task, *key_cache, *table, b, batch->keys[b]);
        if (!key_rows) return fail(key_rows.error());
        auto value_rows = read_blocks(task, *value_cache, *table, b, batch->keys[b]);
        if (!value_rows) return fail(value_rows.error());
        out.key_rows = std::move(*key_rows);
        out.value_rows = std::move(*value_rows);
        out.keys = out.key_rows.view();
        out.values = out.value_rows.view();
        return out;
      });
}

}  // namespace

Result<Expected> self_attention(Task& task) {
  const auto keys = read_keys(task);
  if (!keys) return fail(keys.error());
  switch (keys->calc) {
    case Calc::kPaEncoder:
      return whole_sequences(task, *keys);
    case Calc::kPrefixEncoder:
      return after_prefix(task, *keys);
    default:
      return cached_attention(task, *keys);
  }
}

}  // namespace ait::golden
