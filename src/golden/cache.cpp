#include <algorithm>
#include <cmath>

#include "golden/cache_layout.h"
#include "golden/families.h"
#include "golden/look.h"
#include "golden/norm.h"
#include "golden/part.h"
#include "golden/rotation.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

using graph::CompressType;
using graph::ReshapeKvCacheCfg;

// The inputs that hold new rows and the cache that they go to, of keys or of values.
struct Side {
  std::string_view rows;
  std::string_view cache;
  size_t cache_input;
  std::string_view strides;  // where rows are seen through strides
  std::string_view offset;
};

struct Mode {
  CompressType compress = CompressType::kUndefined;
  ReshapeKvCacheCfg config = ReshapeKvCacheCfg::kCaches;
  bool with_stride = false;
  bool drops = false;  // what is compressed is left out, and no mean stands for it

  bool key_only() const { return config == ReshapeKvCacheCfg::kKeyCacheOnly; }
  std::vector<std::string_view> inputs() const;
  std::vector<Side> sides() const;
};

std::vector<std::string_view> Mode::inputs() const {
  std::vector<std::string_view> names = {"key", "value", "~keyCache", "~valueCache", "slots"};
  if (compress != CompressType::kUndefined) names.insert(names.end(), {"wins", "seqLen"});
  if (compress == CompressType::kKvHeadRope) names.emplace_back("offsetIndex");
  if (with_stride)
    names.insert(names.end(), {"keyStrides", "valueStrides", "keyOffset", "valueOffset"});
  if (key_only())
    std::erase_if(
        names, [](std::string_view name) { return name.find("value") != std::string_view::npos; });
  return names;
}

std::vector<Side> Mode::sides() const {
  if (key_only()) return {{"key", "keyCache", 1, "keyStrides", "keyOffset"}};
  return {{"key", "keyCache", 2, "keyStrides", "keyOffset"},
          {"value", "valueCache", 3, "valueStrides", "valueOffset"}};
}

// The new rows as [tokens, heads, width]; with two dimensions there is one head.
Result<Array> rows_of(Task& task, const Side& side, const Mode& mode) {
  const Shape& shape = task.shape(side.rows);
  Array rows;
  if (mode.with_stride) {
    const auto strides = whole_numbers(task, side.strides);
    if (!strides) return fail(strides.error());
    const auto offset = whole_numbers(task, side.offset);
    if (!offset) return fail(offset.error());
    auto seen = read_strided(task, side.rows, {shape, *strides, offset->front()});
    if (!seen) return fail(seen.error());
    rows = std::move(*seen);
  } else {
    rows = task.values(side.rows);
  }
  if (shape.size() == 2) rows.shape = {shape[0], 1, shape[1]};
  if (shape.size() == 4) rows.shape = {shape[0] * shape[1], shape[2], shape[3]};
  if (rows.rank() != 3)
    return fail(task.contradiction(std::string(side.rows) + " has the shape " + shape_text(shape) +
                                   ", not [tokens, heads, width]"));
  return rows;
}

// Every token to its slot.
Result<Output> written_by_slots(Task& task, const Side& side, const Mode& mode) {
  const auto rows = rows_of(task, side, mode);
  if (!rows) return fail(rows.error());
  const bool is_fractal = mode.config == ReshapeKvCacheCfg::kCachesNz;
  return write_slots(task, {side.cache, side.cache_input, is_fractal}, "slots",
                     {rows->data, {}, rows->dim(0)});
}

// Tokens [first, first + count) of a sequence, of which one row is made: itself or their mean.
struct Source {
  size_t first;
  size_t count;
};

// What one head of one sequence keeps.
std::vector<Source> kept(const Mode& mode, size_t length, size_t window,
                         std::optional<size_t> from) {
  std::vector<Source> sources;
  const auto copy = [&](size_t first, size_t end) {
    for (size_t token = first; token < end; ++token) sources.push_back({token, 1});
  };
  if (mode.compress == CompressType::kKvHead) {
    copy(length - window, length);
  } else if (!from) {
    copy(0, length);
  } else {
    copy(0, *from);
    if (!mode.drops && window > 0) sources.push_back({*from, window});
    copy(*from + window, length);
  }
  return sources;
}

// The rows of one entry (a head of a sequence) of compressed caches.
struct Entry {
  size_t token;  // where its sequence begins
  size_t head;
  size_t slot;
  std::vector<Source> sources;
};

Result<std::vector<Entry>> entries_of(const Task& task, const Mode& mode, size_t tokens,
                                      size_t heads) {
  const auto slots = whole_numbers(task, "slots");
  if (!slots) return fail(slots.error());
  const auto windows = whole_numbers(task, "wins");
  if (!windows) return fail(windows.error());
  const auto sequences = lengths(task, "seqLen", tokens, "tokens", /*exactly=*/false);
  if (!sequences) return fail(sequences.error());
  const bool with_index = mode.compress == CompressType::kKvHeadRope;
  auto from = whole_numbers(task, "offsetIndex");
  if (!from) return fail(from.error());
  if (!with_index) from->assign(slots->size(), -1);
  const size_t count = sequences->size() * heads;
  if (slots->size() != count || windows->size() != count || from->size() != count)
    return fail(task.contradiction("there are " + std::to_string(slots->size()) + " slots, " +
                                   std::to_string(windows->size()) + " wins and " +
                                   std::to_string(from->size()) + " indices for " +
                                   std::to_string(heads) + " heads of " +
                                   std::to_string(sequences->size()) + " sequences"));
  std::vector<Entry> entries;
  size_t token = 0;
  for (size_t batch = 0; batch < sequences->size(); token += (*sequences)[batch++])
    for (size_t head = 0; head < heads; ++head) {
      const size_t i = batch * heads + head;
      const auto length = static_cast<int64_t>((*sequences)[batch]);
      const int64_t window = (*windows)[i];
      const int64_t first = (*from)[i];
      const bool whole = with_index && first == -1;
      if (first < -1 || (!whole && (window < 0 || window > length - std::max<int64_t>(first, 0))))
        return fail(task.contradiction("entry " + std::to_string(i) + " compresses " +
                                       std::to_string(window) + " tokens from " +
                                       std::to_string(first) + " on in a sequence of " +
                                       std::to_string(length)));
      if ((*slots)[i] < 0) continue;
      const auto at = first < 0 ? std::nullopt : std::optional(static_cast<size_t>(first));
      entries.push_back(
          {token, head, static_cast<size_t>((*slots)[i]),
           kept(mode, (*sequences)[batch], whole ? 0 : static_cast<size_t>(window), at)});
    }
  return entries;
}

// Of every head as many tokens as it keeps, one after the other; the cache has one head.
Result<Output> written_compressed(Task& task, const Side& side, const Mode& mode) {
  const auto rows = rows_of(task, side, mode);
  if (!rows) return fail(rows.error());
  const size_t heads = rows->dim(1), width = rows->dim(2);
  const auto layout = cache_layout(task, side.cache, width, /*is_fractal=*/false);
  if (!layout) return fail(layout.error());
  const auto entries = entries_of(task, mode, rows->dim(0), heads);
  if (!entries) return fail(entries.error());
  if (auto room = task.make_room(rows->elements(), 4); !room) return fail(room.error());
  Writes writes(side.cache_input, task.shape(side.cache), layout->piece_elements);
  const bool with_means = mode.compress == CompressType::kKvHeadRope && !mode.drops;
  std::vector<double> values(width), slack(with_means ? width : 0);
  for (const Entry& entry : *entries) {
    if (entry.slot > layout->rows() || entry.sources.size() > layout->rows() - entry.slot)
      return fail(task.contradiction(
          std::to_string(entry.sources.size()) + " rows from slot " + std::to_string(entry.slot) +
          " on leave the " + std::to_string(layout->rows()) + " of " + std::string(side.cache)));
    size_t row = entry.slot;
    for (const Source& source : entry.sources) {
      for (size_t i = 0; i < width; ++i) {
        double total = 0, magnitude = 0;
        for (size_t token = entry.token + source.first, end = token + source.count; token < end;
             ++token) {
          const double value = rows->data[(token * heads + entry.head) * width + i];
          total += value;
          magnitude += std::abs(value);
        }
        const auto count = static_cast<double>(source.count);
        values[i] = total / count;
        if (with_means)
          slack[i] = source.count == 1 ? 0 : sum_slack(source.count + 1, magnitude / count);
      }
      write_row(writes, *layout, row++, values, slack);
    }
  }
  return std::move(writes).finish(task);
}

Mode mode_of(graph::AtbParam& param, bool with_stride) {
  Mode mode;
  mode.compress = param.choice("compressType", CompressType::kUndefined);
  mode.config = param.choice("kvCacheCfg", ReshapeKvCacheCfg::kCaches);
  mode.with_stride = with_stride;
  return mode;
}

Result<Expected> write_caches(Task& task, const Mode& mode) {
  const bool compressed = mode.compress != CompressType::kUndefined;
  if (compressed && mode.config != ReshapeKvCacheCfg::kCaches)
    return fail(task.no_golden("compressType " + std::to_string(static_cast<int>(mode.compress)) +
                               " with kvCacheCfg " +
                               std::to_string(static_cast<int>(mode.config))));
  if (auto given = task.takes(mode.inputs()); !given) return fail(given.error());
  std::vector<Output> outputs;
  for (const Side& side : mode.sides()) {
    auto out =
        compressed ? written_compressed(task, side, mode) : written_by_slots(task, side, mode);
    if (!out) return fail(out.error());
    outputs.push_back(std::move(*out));
  }
  return task.give(std::move(outputs));
}

}  // namespace

std::vector<size_t> written_caches(graph::AtbParam& param) {
  return mode_of(param, false).key_only() ? std::vector<size_t>{1} : std::vector<size_t>{2, 3};
}

Result<Expected> reshape_and_cache(Task& task) {
  return write_caches(task, mode_of(task.param(), false));
}

Result<Expected> reshape_and_cache_with_stride(Task& task) {
  return write_caches(task, mode_of(task.param(), true));
}

Result<Expected> reshape_and_cache_omni(Task& task) {
  Mode mode;
  mode.compress = CompressType::kKvHeadRope;
  mode.drops = true;
  return write_caches(task, mode);
}

// Sequences into the cache of one layer, [layers, sequences, rows, width] or FRACTAL_NZ, [layers,
// sequences, pieces, rows, piece].
Result<Expected> kv_cache(Task& task) {
  if (auto given = task.takes({"newKv", "layerId", "~past", "tokenOffset", "seqLen"}); !given)
    return fail(given.error());
  const Shape& shape = task.shape("newKv");
  const Shape& past = task.shape("past");
  const bool padded = shape.size() == 4;
  if (shape.size() != 2 && !padded)
    return fail(task.contradiction("newKv has the shape " + shape_text(shape) +
                                   ", not two or four dimensions"));
  const Array rows = task.values("newKv");
  const size_t tokens = padded ? rows.dim(0) * rows.dim(1) : rows.dim(0);
  const size_t width = rows.elements() / tokens;
  CacheLayout layout;  // a sequence is a block
  if (past.size() == 4 && !task.fractal("past"))
    layout = {static_cast<size_t>(past[0] * past[1]), static_cast<size_t>(past[2]),
              static_cast<size_t>(past[3]), static_cast<size_t>(past[3])};
  else if (past.size() == 5)
    layout = {static_cast<size_t>(past[0] * past[1]), static_cast<size_t>(past[3]),
              static_cast<size_t>(past[2] * past[4]), static_cast<size_t>(past[4])};
  if (layout.row_elements != width)
    return fail(task.contradiction("past of shape " + shape_text(past) +
                                   " is not a cache for rows of " + std::to_string(width) +
                                   " elements"));
  const auto layer = indices(task, "layerId", static_cast<size_t>(past[0]));
  if (!layer) return fail(layer.error());
  const auto sequences = lengths(task, "seqLen", tokens, "tokens", /*exactly=*/false);
  if (!sequences) return fail(sequences.error());
  const auto ends = indices(task, "tokenOffset", layout.block_rows + 1);
  if (!ends) return fail(ends.error());
  const auto batch = static_cast<size_t>(past[1]);
  if (layer->size() != 1 || ends->size() != sequences->size() || sequences->size() > batch)
    return fail(task.contradiction(
        "layerId, tokenOffset and seqLen have " + std::to_string(layer->size()) + ", " +
        std::to_string(ends->size()) + " and " + std::to_string(sequences->size()) +
        " elements for past of " + std::to_string(batch) + " sequences"));
  if (padded && std::any_of(sequences->begin(), sequences->end(),
                            [&](size_t length) { return length != rows.dim(1); }))
    return fail(task.no_golden("newKv of four dimensions with shorter sequences"));
  if (auto room = task.make_room(rows.elements(), 2); !room) return fail(room.error());
  Writes writes(2, past, layout.piece_elements);
  size_t token = 0;
  for (size_t i = 0; i < sequences->size(); ++i) {
    const size_t length = (*sequences)[i];
    if (length > (*ends)[i])
      return fail(task.contradiction("sequence " + std::to_string(i) + " has " +
                                     std::to_string(length) + " tokens that end at row " +
                                     std::to_string((*ends)[i])));
    const size_t first = (layer->front() * batch + i) * layout.block_rows + (*ends)[i] - length;
    for (size_t row = 0; row < length; ++row, ++token)
      write_row(writes, layout, first + row, std::span(rows.data).subspan(token * width, width));
  }
  return task.give({std::move(writes).finish(task)});
}

Result<Expected> block_copy(Task& task) {
  if (auto given = task.takes({"~keyCache", "~valueCache", "srcIndices", "dstIndices", "cumSum"});
      !given)
    return fail(given.error());
  std::vector<Output> outputs;
  for (const std::string_view name : {"keyCache", "valueCache"}) {
    const Shape& shape = task.shape(name);
    const auto blocks = shape.empty() ? 1 : static_cast<size_t>(shape[0]);
    const auto sources = indices(task, "srcIndices", blocks);
    if (!sources) return fail(sources.error());
    const auto targets = indices(task, "dstIndices", blocks);
    if (!targets) return fail(targets.error());
    const auto ends = indices(task, "cumSum", targets->size() + 1);
    if (!ends) return fail(ends.error());
    if (ends->size() != sources->size() || !std::is_sorted(ends->begin(), ends->end()))
      return fail(task.contradiction("cumSum does not tell which dstIndices belong to each of " +
                                     std::to_string(sources->size()) + " srcIndices"));
    const size_t used = ends->empty() ? 0 : ends->back();
    for (size_t i = 0; i < used; ++i)
      if (std::find(sources->begin(), sources->end(), (*targets)[i]) != sources->end())
        return fail(
            task.no_golden("block " + std::to_string((*targets)[i]) + " that is read and written"));
    const size_t length = *count_elements(shape) / blocks;
    if (auto room = task.make_room(used * length, 2); !room) return fail(room.error());
    Writes writes(outputs.size(), shape, length);
    std::vector<double> block;
    for (size_t i = 0, j = 0; i < sources->size(); ++i) {
      if (j < (*ends)[i]) task.read(name, (*sources)[i] * length, length, block);
      for (; j < (*ends)[i]; ++j)
        writes.add((*targets)[j] * length, std::span(block).first(length));
    }
    outputs.push_back(std::move(writes).finish(task));
  }
  return task.give(std::move(outputs));
}

namespace {

// How many rows of each sequence are loaded: lengths, or running sums where there is one more.
Result<std::vector<size_t>> loaded_lengths(Task& task, size_t sequences) {
  const auto given = whole_numbers(task, "contextLens");
  if (!given) return fail(given.error());
  const bool running = given->size() == sequences + 1;
  if (!running && given->size() != sequences)
    return fail(task.contradiction("contextLens has " + std::to_string(given->size()) +
                                   " elements for " + std::to_string(sequences) + " sequences"));
  if (running)
    task.note("contextLens was read as running sums, as it has one element more than sequences");
  std::vector<size_t> out;
  for (size_t i = 0; i < sequences; ++i) {
    const int64_t length = running ? (*given)[i + 1] - (*given)[i] : (*given)[i];
    if (length < 0)
      return fail(task.contradiction("sequence " + std::to_string(i) + " has " +
                                     std::to_string(length) + " rows in contextLens"));
    out.push_back(static_cast<size_t>(length));
  }
  return out;
}

struct Load {
  std::string_view cache;
  std::string_view out;
  size_t out_input;
};

Result<Output> loaded(Task& task, const Load& load, const std::vector<size_t>& counts) {
  const Shape& tables = task.shape("blockTables");
  const Shape& shape = task.shape(load.out);
  if (shape.size() < 2)
    return fail(task.contradiction(std::string(load.out) + " has the shape " + shape_text(shape) +
                                   ", not two dimensions or more"));
  const auto out_rows = static_cast<size_t>(shape[0]);
  const size_t width = *count_elements(shape) / out_rows;
  const auto layout = cache_layout(task, load.cache, width, /*is_fractal=*/false);
  if (!layout) return fail(layout.error());
  const auto sequences = static_cast<size_t>(tables[0]);
  const auto table = whole_numbers(task, "blockTables");
  if (!table) return fail(table.error());
  auto starts = whole_numbers(task, "seqStarts");
  if (!starts) return fail(starts.error());
  if (starts->empty()) starts->assign(sequences, 0);
  if (starts->size() != sequences)
    return fail(task.contradiction("seqStarts has " + std::to_string(starts->size()) +
                                   " elements for " + std::to_string(sequences) + " sequences"));
  if (auto room = task.make_room(*count_elements(shape), 2); !room) return fail(room.error());
  Writes writes(load.out_input, shape, width);
  std::vector<double> block, row(width);
  std::optional<size_t> held;
  size_t to = 0;
  const auto columns = static_cast<size_t>(tables[1]);
  for (size_t i = 0; i < sequences; ++i) {
    const int64_t start = (*starts)[i];
    for (size_t j = 0; j < counts[i]; ++j) {
      const size_t column =
          start < 0 ? columns
                    : static_cast<size_t>(start) / layout->block_rows + j / layout->block_rows;
      if (column >= columns)
        return fail(task.contradiction("row " + std::to_string(j) + " of sequence " +
                                       std::to_string(i) + ", which starts at " +
                                       std::to_string(start) + ", is beyond the " +
                                       std::to_string(columns) + " columns of blockTables"));
      const int64_t id = (*table)[i * columns + column];
      if (id < 0) continue;  // and takes no row
      if (static_cast<size_t>(id) >= layout->blocks || to >= out_rows)
        return fail(task.contradiction(
            "block " + std::to_string(id) + " for row " + std::to_string(to) + " of " +
            std::string(load.out) + ", which has " + std::to_string(out_rows) +
            " rows, and the cache " + std::to_string(layout->blocks) + " blocks"));
      if (held != static_cast<size_t>(id)) {
        held = static_cast<size_t>(id);
        task.read(load.cache, *held * layout->block_elements(), layout->block_elements(), block);
      }
      for (size_t k = 0; k < width; ++k) {
        const size_t piece = k / layout->piece_elements;
        row[k] = block[layout->start(j % layout->block_rows, piece) + k % layout->piece_elements];
      }
      writes.add(to++ * width, row);
    }
  }
  return std::move(writes).finish(task);
}

}  // namespace

Result<Expected> paged_cache_load(Task& task) {
  if (auto given = task.takes({"~keyCache", "~valueCache", "blockTables", "contextLens", "~key",
                               "~value", "?seqStarts"});
      !given)
    return fail(given.error());
  const Shape& tables = task.shape("blockTables");
  if (tables.size() != 2)
    return fail(task.contradiction("blockTables has the shape " + shape_text(tables) +
                                   ", not two dimensions"));
  const auto counts = loaded_lengths(task, static_cast<size_t>(tables[0]));
  if (!counts) return fail(counts.error());
  auto key = loaded(task, {"keyCache", "key", 4}, *counts);
  if (!key) return fail(key.error());
  auto value = loaded(task, {"valueCache", "value", 5}, *counts);
  if (!value) return fail(value.error());
  return task.give({std::move(*key), std::move(*value)});
}

// Rows of a norm and of a rotated head, side by side, to their slots.
Result<Expected> norm_rope_reshape(Task& task) {
  const double epsilon = task.param().number("epsilon", 1e-5);
  const int64_t coefficient = task.param().integer("rotaryCoeff", 2);
  const int64_t precision = task.param().integer("precisionMode", 0);
  if (coefficient != 2) return fail(task.no_golden("rotaryCoeff " + std::to_string(coefficient)));
  if (precision != 0) return fail(task.no_golden("precisionMode " + std::to_string(precision)));
  if (auto given = task.takes({"x", "gamma", "keyRope", "cos", "sin", "slots", "~keyCache"});
      !given)
    return fail(given.error());
  const Array x = task.values("x");
  const Array head = task.values("keyRope");
  const Array cos = task.values("cos");
  const Array sin = task.values("sin");
  const size_t group = x.row_elements(), width = head.row_elements();
  if (head.rows() != x.rows() || cos.elements() != head.elements() ||
      sin.elements() != head.elements() || width % 2 != 0)
    return fail(task.contradiction("x, keyRope, cos and sin have the shapes " +
                                   shape_text(x.shape) + ", " + shape_text(head.shape) + ", " +
                                   shape_text(cos.shape) + " and " + shape_text(sin.shape) +
                                   ", which do not go together"));
  const auto scale = scale_of(task, group);
  if (!scale) return fail(scale.error());
  if (auto room = task.make_room(x.elements() + head.elements(), 8); !room)
    return fail(room.error());
  const Inexact normed =
      rms_normed({x, std::vector<double>(x.elements(), 0)}, group, *scale, {epsilon}).y;
  const size_t row_elements = group + width;
  std::vector<double> values(x.rows() * row_elements), slack(values.size());
  for (size_t token = 0; token < x.rows(); ++token) {
    double* row = values.data() + token * row_elements;
    double* row_slack = slack.data() + token * row_elements;
    std::copy_n(normed.values.data.data() + token * group, group, row);
    std::copy_n(normed.slack.data() + token * group, group, row_slack);
    turn_head({head.row(token), {}}, cos.row(token), sin.row(token), task.dtype("keyRope"),
              row + group, row_slack + group);
  }
  auto out = write_slots(task, {"keyCache", 6}, "slots", {values, slack, x.rows()});
  if (!out) return fail(out.error());
  return task.give({std::move(*out)});
}

}  // namespace ait::golden
