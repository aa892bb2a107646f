// PagedAttentionOperation: the last tokens of sequences against keys and values in blocks of caches.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "golden/attention_mask.h"
#include "golden/attention_output.h"
#include "golden/attention_rows.h"
#include "golden/families.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using Mask = graph::PagedAttentionMaskType;
using Quant = graph::AttentionQuantType;
using Compress = graph::CompressType;

struct Keys {
  Heads heads;
  Mask mask;
  Quant quant;
  Compress compress;
  double scale;
  bool query_scaled;
  bool several_queries;  // of each sequence, else one
  bool with_status;
  bool quant_offset;
  bool heads_first;
  bool log_n;
  size_t latent_size;  // of values that are the first numbers of the keys

  bool quantised() const { return quant == Quant::kQkvOffline || quant == Quant::kQkvOnline; }
  // Caches of which every sequence and head has its own.
  bool compressed() const { return compress != Compress::kUndefined; }
  // As many sequences, each with a part of the heads, stand for one of the batch.
  size_t parts() const { return compressed() ? heads.keys : 1; }
  bool mask_tensor() const {
    return mask == Mask::kNorm || mask == Mask::kAlibi || mask == Mask::kSpec;
  }
};

Result<Keys> read_keys(Task& task) {
  graph::AtbParam& param = task.param();
  Keys keys{};
  const auto heads = read_heads(task);
  if (!heads) return fail(heads.error());
  keys.heads = *heads;
  keys.mask = param.choice("maskType", Mask::kUndefined);
  keys.quant = param.choice("quantType", Quant::kUndefined);
  keys.compress = param.choice("compressType", Compress::kUndefined);
  keys.scale = param.number("qkScale", 1);
  // 0 and 1 mean that there is none; the library does not write it down.
  const double query_scale = param.number("qScale", 0);
  keys.query_scaled = query_scale != 0 && query_scale != 1;
  if (keys.query_scaled) keys.scale *= query_scale;
  using Calc = graph::PagedAttentionCalcType;
  keys.several_queries = param.choice("calcType", Calc::kUndefined) == Calc::kSpec;
  keys.with_status = param.flag("batchRunStatusEnable", false);
  keys.quant_offset = param.flag("hasQuantOffset", false);
  using Layout = graph::AttentionInputLayout;
  keys.heads_first = param.choice("inputLayout", Layout::kBsnd) == Layout::kBnsd;
  using Scale = graph::AttentionScaleType;
  keys.log_n = param.choice("scaleType", Scale::kTor) == Scale::kLogN;
  const int64_t latent = param.integer("mlaVHeadSize", 0);
  if (keys.quantised() && keys.compressed())
    return fail(task.no_golden("quantType " + std::to_string(static_cast<int>(keys.quant)) +
                               " with compressType " +
                               std::to_string(static_cast<int>(keys.compress))));
  if (latent < 0) return fail(task.contradiction("mlaVHeadSize is " + std::to_string(latent)));
  keys.latent_size = static_cast<size_t>(latent);
  return keys;
}

// Names the inputs, of which the library leaves out what is not used.
Result<void> take_inputs(Task& task, Keys& keys) {
  std::vector<std::string_view> names = {"~query", "~keyCache"};
  if (keys.latent_size == 0) names.emplace_back("~valueCache");
  names.insert(names.end(), {"blockTables", "contextLens"});
  if (keys.mask != Mask::kUndefined) names.emplace_back(keys.mask_tensor() ? "~mask" : "?mask");
  if (keys.with_status) names.emplace_back("batchRunStatus");
  if (keys.quant != Quant::kUndefined) {
    names.emplace_back("kDescale");
    if (keys.quant_offset) names.emplace_back("kOffset");
    names.emplace_back("vDescale");
    if (keys.quant_offset) names.emplace_back("vOffset");
  }
  if (keys.several_queries) names.emplace_back("qSeqLens");
  if (keys.compress == Compress::kKvHeadRope) names.emplace_back("~razorOffset");
  if (keys.quant == Quant::kQkvOffline) names.emplace_back("pScale");
  const bool one_more = task.input_count() == names.size() + 1;
  if (one_more && !keys.log_n) task.note("scaleType LOGN was inferred from one more input");
  keys.log_n = keys.log_n || one_more;
  if (keys.log_n) names.emplace_back("logN");
  return task.takes(names);
}

// Scales in int64 hold the bits of a float32 in their low word.
std::vector<double> read_scales(const Task& task, std::string_view name) {
  std::vector<double> scales = task.values(name).data;
  if (task.dtype(name) != DType::kInt64 && task.dtype(name) != DType::kUInt64) return scales;
  for (double& scale : scales) {
    constexpr double kWord = 0x1p32;
    const double low = std::fmod(scale, kWord);
    scale = std::bit_cast<float>(static_cast<uint32_t>(low < 0 ? low + kWord : low));
  }
  return scales;
}

// Keys or values in int8 that are made numbers again: (number + offset) * scale, each of the
// channels of a row by its own.
struct Channels {
  std::vector<double> scales;
  std::vector<double> offsets;  // empty: none
};

Result<Channels> read_channels(const Task& task, const Keys& keys, bool of_keys, size_t size) {
  const std::string_view scale_name = of_keys ? "kDescale" : "vDescale";
  const std::string_view offset_name = of_keys ? "kOffset" : "vOffset";
  Channels channels{read_scales(task, scale_name), task.values(offset_name).data};
  const size_t count = keys.heads.keys * size;
  for (const auto& [name, numbers] :
       {std::pair(scale_name, &channels.scales), std::pair(offset_name, &channels.offsets)})
    if (numbers->size() != count && (name == scale_name || keys.quant_offset))
      return fail(task.contradiction(std::string(name) + " has " + std::to_string(numbers->size()) +
                                     " elements for " + std::to_string(count) + " channels"));
  return channels;
}

void dequantise(const Channels& channels, size_t first_head, CachedRows& rows) {
  const size_t row_elements = rows.heads * rows.size;
  for (size_t i = 0; i < rows.data.size(); ++i) {
    const size_t channel = first_head * rows.size + i % row_elements;
    const double offset = channels.offsets.empty() ? 0 : channels.offsets[channel];
    rows.data[i] = (rows.data[i] + offset) * channels.scales[channel];
  }
}

// Scales for each head of the queries, and int8 weights.
Result<void> set_quantised(const Task& task, const Keys& keys, Sequence& base) {
  base.head_scales = read_scales(task, "kDescale");
  base.value_scales = read_scales(task, "vDescale");
  const std::vector<double> factors = task.values("pScale").data;
  const bool offline = keys.quant == Quant::kQkvOffline;
  for (const auto& [name, numbers] :
       {std::pair("kDescale", &base.head_scales), std::pair("vDescale", &base.value_scales)})
    if (numbers->size() != keys.heads.queries)
      return fail(task.contradiction(std::string(name) + " has " + std::to_string(numbers->size()) +
                                     " elements for " + std::to_string(keys.heads.queries) +
                                     " heads"));
  if (offline && factors.size() != keys.heads.queries)
    return fail(task.contradiction("pScale has " + std::to_string(factors.size()) +
                                   " elements for " + std::to_string(keys.heads.queries) +
                                   " heads"));
  base.weight_type = DType::kFloat32;
  base.quantise = [offline, factors](size_t head, std::span<double> weights,
                                     std::span<double> off) {
    Int8Weights kind;
    kind.half = true;
    if (offline) kind.factor = factors[head], kind.unit = 1;
    quantise_weights(kind, weights, off);
  };
  return {};
}

// All sequences: with compressed caches one for each head of keys.
struct Batch {
  TokenLayout layout;           // of the queries; a row has the heads of one sequence
  std::vector<size_t> keys;     // how many each sequence has; where it has none, it has no row
  std::vector<size_t> queries;  // how many it has
  std::vector<size_t> starts;
};

Result<Batch> read_batch(const Task& task, const Keys& keys) {
  Batch batch;
  auto counts = lengths(task, "contextLens");
  if (!counts) return fail(counts.error());
  batch.keys = std::move(*counts);
  const size_t count = batch.keys.size();
  if (count % keys.parts() != 0)
    return fail(task.contradiction("contextLens has " + std::to_string(count) +
                                   " elements for sequences with " + std::to_string(keys.parts()) +
                                   " heads of keys"));
  batch.queries.assign(count, 1);
  if (keys.several_queries) {
    auto queries = lengths(task, "qSeqLens");
    if (!queries) return fail(queries.error());
    if (queries->size() != count)
      return fail(task.contradiction("qSeqLens has " + std::to_string(queries->size()) +
                                     " elements for " + std::to_string(count) + " sequences"));
    batch.queries = std::move(*queries);
  }
  auto layout = token_layout(task, "query", keys.heads.queries, count, false);
  if (!layout) return fail(layout.error());
  if (layout->padded())
    return fail(
        task.contradiction("query of shape " + shape_text(task.shape("query")) + " is not packed"));
  layout->rows *= keys.parts();
  layout->heads /= keys.parts();
  batch.layout = *layout;
  size_t start = 0;
  for (size_t b = 0; b < count; ++b) {
    if (batch.keys[b] == 0) batch.queries[b] = 0;
    if (batch.keys[b] < batch.queries[b])
      return fail(task.contradiction("contextLens of sequence " + std::to_string(b) + " is " +
                                     std::to_string(batch.keys[b]) + ", less than its " +
                                     std::to_string(batch.queries[b]) + " queries"));
    if (batch.queries[b] > layout->rows - start)
      return fail(task.contradiction("the sequences need more rows than the " +
                                     std::to_string(layout->rows) + " of query"));
    batch.starts.push_back(start);
    start += batch.queries[b];
  }
  return batch;
}

// The row of a mask that belongs to the first query of a sequence.
Result<size_t> mask_row(const Task& task, const Keys& keys, const Batch& batch, size_t sequence,
                        const MaskTensor& mask) {
  const size_t queries = batch.queries[sequence];
  const size_t total = batch.keys[sequence];
  const size_t rank = task.shape("mask").size();
  size_t row = 0;
  if (keys.mask == Mask::kSpec)
    row = batch.starts[sequence];  // one for each query
  else if (keys.several_queries)
    row = total - queries;
  else if (rank == 2)
    row = sequence / keys.parts();  // one for each sequence
  const bool fits = mask.rows() == 1 || row + queries <= mask.rows();
  if (!fits || total > mask.columns())
    return fail(task.contradiction(
        "sequence " + std::to_string(sequence) + " needs " + std::to_string(row + queries) +
        " rows of a mask for " + std::to_string(total) + " keys, and the mask has " +
        std::to_string(mask.rows()) + " for " + std::to_string(mask.columns())));
  return row;
}

Result<void> set_mask(const Task& task, const Keys& keys, const Batch& batch,
                      const std::optional<MaskTensor>& mask, size_t b, Sequence& sequence) {
  const size_t total = batch.keys[b];
  if (keys.mask == Mask::kMaskFree || keys.mask == Mask::kNormCompress) {
    const size_t position = total - batch.queries[b];
    sequence.visible = [position, total](size_t row) { return causal_keys(position + row, total); };
    return {};
  }
  if (!mask) return {};
  const auto first = mask_row(task, keys, batch, b, *mask);
  if (!first) return fail(first.error());
  // A sequence that stands for a part of the heads has the mask of these.
  const size_t whole = b / keys.parts();
  const size_t first_head = b % keys.parts() * batch.layout.heads;
  sequence.add_mask = [&tensor = *mask, whole, first_head, row = *first](
                          size_t head, size_t index, KeyRange range, double* scores) {
    return tensor.add(whole, first_head + head, row + index, range, scores);
  };
  return {};
}

// What is added to the products with the keys of one sequence.
Result<std::vector<double>> read_key_terms(const Task& task, const Cache& cache,
                                           const BlockTable& table, size_t sequence, size_t count) {
  std::vector<double> terms, read;
  for (size_t row = 0; row < count; row += cache.page_rows()) {
    const auto block =
        static_cast<size_t>(table.blocks[sequence * table.columns + row / cache.page_rows()]);
    const size_t some = std::min(cache.page_rows(), count - row);
    task.read("razorOffset", block * cache.page_rows(), some, read);
    terms.insert(terms.end(), read.begin(), read.begin() + static_cast<ptrdiff_t>(some));
  }
  return terms;
}

}  // namespace

Result<Expected> paged_attention(Task& task) {
  auto read = read_keys(task);
  if (!read) return fail(read.error());
  Keys& keys = *read;
  if (auto given = take_inputs(task, keys); !given) return fail(given.error());
  const auto batch = read_batch(task, keys);
  if (!batch) return fail(batch.error());
  const size_t count = batch->keys.size();
  const size_t cache_heads = keys.heads.keys / keys.parts();
  const size_t size = batch->layout.size;
  const auto key_cache =
      Cache::of_blocks(task, "keyCache", cache_heads, size, {keys.heads_first, false});
  if (!key_cache) return fail(key_cache.error());
  std::optional<Cache> value_cache;
  if (keys.latent_size == 0) {
    auto cache = Cache::of_blocks_like(task, "valueCache", *key_cache);
    if (!cache) return fail(cache.error());
    value_cache = std::move(*cache);
  } else if (keys.latent_size > size) {
    return fail(task.contradiction("mlaVHeadSize is " + std::to_string(keys.latent_size) +
                                   ", and the heads of keyCache have " + std::to_string(size)));
  }
  const size_t value_size = value_cache ? value_cache->size() : keys.latent_size;
  const auto table = block_table(task, "blockTables", count);
  if (!table) return fail(table.error());
  if (task.has("razorOffset") &&
      count_elements(task.shape("razorOffset")) != key_cache->pages() * key_cache->page_rows())
    return fail(task.contradiction("razorOffset of shape " + shape_text(task.shape("razorOffset")) +
                                   " is not of " + std::to_string(key_cache->pages()) +
                                   " blocks of " + std::to_string(key_cache->page_rows()) +
                                   " keys"));

  Sequence base;
  base.scale = keys.scale;
  base.weight_type = task.dtype(value_cache ? "valueCache" : "keyCache");
  if (keys.query_scaled) base.operand_unit = half_step(task.dtype("query"), 1);
  std::optional<Channels> key_channels, value_channels;
  if (keys.quant == Quant::kDequantFusion) {
    auto of_keys = read_channels(task, keys, true, size);
    if (!of_keys) return fail(of_keys.error());
    auto of_values = read_channels(task, keys, false, value_size);
    if (!of_values) return fail(of_values.error());
    key_channels = std::move(*of_keys);
    value_channels = std::move(*of_values);
    // Kernels multiply in the type of the queries.
    base.weight_type = task.dtype("query");
    base.operand_unit = half_step(task.dtype("query"), 1);
  } else if (keys.quantised()) {
    if (auto set = set_quantised(task, keys, base); !set) return fail(set.error());
  }
  const Array log_n = task.values("logN");
  if (keys.log_n && log_n.elements() < count)
    return fail(task.contradiction("logN has " + std::to_string(log_n.elements()) +
                                   " elements for " + std::to_string(count) + " sequences"));
  std::optional<MaskTensor> mask;
  if (keys.mask_tensor()) {
    const bool terms = keys.mask == Mask::kAlibi;
    auto tensor =
        MaskTensor::of(task, "mask", count / keys.parts(), keys.heads.queries,
                       terms ? MaskTensor::First::kHeads : MaskTensor::First::kSequences,
                       terms ? MaskTensor::Style::kTerms : MaskTensor::Style::kFlagsOrTerms);
    if (!tensor) return fail(tensor.error());
    mask = std::move(*tensor);
  }

  TokenLayout out_layout = batch->layout;
  out_layout.size = value_size;
  Shape shape = task.shape("query");
  shape.back() =
      static_cast<int64_t>(shape.size() == 2 ? keys.heads.queries * value_size : value_size);
  auto output = AttentionOutput::of(task, out_layout, std::move(shape));
  if (!output) return fail(output.error());
  base.queries.heads = batch->layout.heads;
  base.queries.size = size;
  base.keys.heads = cache_heads;
  base.values.size = value_size;
  const size_t most_keys = *std::max_element(batch->keys.begin(), batch->keys.end());
  const size_t most_queries = *std::max_element(batch->queries.begin(), batch->queries.end());
  if (auto room = task.make_room(most_keys, 2 * cache_heads * (size + value_size)); !room)
    return fail(room.error());
  if (auto room = make_attend_room(task, base, most_queries, most_keys); !room)
    return fail(room.error());

  std::vector<std::vector<HiddenRow>> hidden(count);
  const auto attend_to = [&](size_t b, size_t threads) -> Result<void> {
    const size_t total = batch->keys[b];
    if (batch->queries[b] == 0) return {};
    Sequence sequence = base;
    sequence.queries =
        rows_of(task, "query", batch->layout, 0, batch->starts[b], batch->queries[b]);
    auto key_rows = read_blocks(task, *key_cache, *table, b, total);
    if (!key_rows) return fail(key_rows.error());
    const size_t first_head = keys.compressed() ? b % keys.parts() : 0;
    if (key_channels) dequantise(*key_channels, first_head, *key_rows);
    sequence.keys = key_rows->view();
    CachedRows value_rows;
    if (value_cache) {
      auto rows = read_blocks(task, *value_cache, *table, b, total);
      if (!rows) return fail(rows.error());
      value_rows = std::move(*rows);
      if (value_channels) dequantise(*value_channels, first_head, value_rows);
      sequence.values = value_rows.view();
    } else {
      sequence.values = key_rows->view();
      sequence.values.size = value_size;
    }
    if (task.has("razorOffset")) {
      auto terms = read_key_terms(task, *key_cache, *table, b, total);
      if (!terms) return fail(terms.error());
      sequence.key_terms = std::move(*terms);
    }
    if (keys.log_n) sequence.row_scales.assign(batch->queries[b], log_n.data[b]);
    if (auto set = set_mask(task, keys, *batch, mask, b, sequence); !set) return set;
    hidden[b] = attend(task, sequence, output->place(0, batch->starts[b]), threads);
    return {};
  };
  if (auto done = for_each_sequence(task, count, attend_to); !done) return fail(done.error());
  for (size_t b = 0; b < count; ++b) output->add(0, batch->starts[b], batch->queries[b], hidden[b]);
  return task.give(std::move(*output).finish(task));
}

}  // namespace ait::golden
