#include "match/sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "formats/file_cache.h"
#include "metrics/elements.h"

namespace ait::match {
namespace {

using formats::SharedFile;

// Wider rows than any vocabulary are no rows of tokens.
constexpr size_t kMaxColumns = size_t{1} << 21;

// More tokens than any prompt has.
constexpr size_t kMostTokens = size_t{1} << 22;

// A round of so few tokens may have as many as there are ranks, so that a shape can mean either.
constexpr size_t kMostShards = 8;

// Below this nothing can be told from a stretch of numbers.
constexpr size_t kFewestElements = 8;

// Distances up to this count as agreement however few elements there are: in 8 dimensions, the
// fewest that are looked at, unrelated directions come within 0.2 of each other in 2 of 10^6 pairs
// (the part of the sphere within that angle).
constexpr double kNear = 0.2;

// Beyond this a faulty tensor and an unrelated one cannot be told apart.
constexpr double kFar = 0.8;

// Between the two, the cosine must be this many standard deviations (1/sqrt(elements)) above that
// of unrelated data: once in 10^9.
constexpr double kDeviations = 6;

// Rows are searched for in as many others, by so much of them as tells tokens apart.
constexpr size_t kMostTableRows = 8192;
constexpr size_t kTableColumns = 32;

// Elements compared at each place when a narrow tensor is searched in a wide one.
constexpr size_t kSearchElements = 32;

size_t product(std::span<const int64_t> dims) { return count_elements(dims).value_or(0); }

// Whether the first dimensions multiply to `rows`.
bool has_rows(const Shape& shape, size_t rows) {
  size_t so_far = 1;
  for (const int64_t size : shape) {
    so_far *= static_cast<size_t>(std::max<int64_t>(size, 0));
    if (so_far == rows) return true;
    if (so_far == 0 || so_far > rows) break;
  }
  return rows == 1;
}

// The last few files of many tensors, as long as they do not change: a file may hold the statistics of
// a whole run, and is looked into for every round.
SharedFile open_recent(const std::string& path) {
  struct Recent {
    std::string path;
    std::filesystem::file_time_type written;
    uintmax_t bytes;
    SharedFile file;
  };
  constexpr size_t kRecent = 16;
  static std::mutex mutex;
  static std::deque<Recent> recent;
  std::error_code ignored;
  const auto written = std::filesystem::last_write_time(path, ignored);
  const uintmax_t bytes = std::filesystem::file_size(path, ignored);
  const std::lock_guard lock(mutex);
  for (const Recent& each : recent)
    if (each.path == path && each.written == written && each.bytes == bytes) return each.file;
  recent.push_front({path, written, bytes, formats::open_indexed(path)});
  if (recent.size() > kRecent) recent.pop_back();
  return recent.front().file;
}

// A tensor and the file that it is in; nothing where it cannot be found.
struct FoundTensor {
  SharedFile open;
  size_t index;
};
std::optional<FoundTensor> find_tensor(const capture::TensorRecord& record) {
  auto open = record.member.empty() ? formats::open_indexed(record.path) : open_recent(record.path);
  if (!*open) return std::nullopt;
  if (record.member.empty())  // the only one of a file needs no name
    return (*open)->file->size() == 1 ? std::optional(FoundTensor{std::move(open), 0})
                                      : std::nullopt;
  const auto found = (*open)->find(record.member);
  if (!found) return std::nullopt;
  return FoundTensor{std::move(open), *found};
}

// Of a tensor whose data were not kept.
std::optional<Shape> described_shape(const capture::TensorRecord& record) {
  const auto found = find_tensor(record);
  if (!found) return std::nullopt;
  auto description = (*found->open)->file->describe(found->index);
  return description ? std::optional(std::move(description->shape)) : std::nullopt;
}

std::vector<float> read_row(const TensorView& view, size_t first, size_t columns) {
  std::vector<double> wide;
  metrics::read_elements(view, first, columns, wide);
  return {wide.begin(), wide.begin() + static_cast<ptrdiff_t>(columns)};
}

// A view, with the two dimensions before the last exchanged where heads come first.
struct Arranged {
  Shape shape;
  Strides strides;
  TensorView view;

  Arranged(const TensorView& from, bool heads_first)
      : shape(from.shape.begin(), from.shape.end()),
        strides(from.strides.begin(), from.strides.end()),
        view(from) {
    if (!heads_first) return;
    const size_t last = shape.size() - 1;
    std::swap(shape[last - 2], shape[last - 1]);
    std::swap(strides[last - 2], strides[last - 1]);
    view.shape = shape;
    view.strides = strides;
  }
};

// [heads, rows, size], [1, heads, rows, size] or [batch, heads, rows, size]
bool can_have_heads_first(const Shape& shape, size_t rows) {
  if (shape.size() < 3 || shape.size() > 4) return false;
  const size_t last = shape.size() - 1;
  const size_t batch = shape.size() == 4 ? static_cast<size_t>(shape[0]) : 1;
  return shape[last - 2] > 1 && batch * static_cast<size_t>(shape[last - 1]) == rows;
}

// Layouts that a shape allows; the rows of their samples are yet to be read.
std::vector<Sample> layouts_of(const Shape& shape, const Tokens& tokens) {
  std::vector<Sample> out;
  const auto add = [&](bool last_only, bool once, bool heads_first) {
    Sample& sample = out.emplace_back();
    sample.last_only = last_only;
    sample.once = once;
    sample.heads_first = heads_first;
  };
  const bool has_lasts = tokens.sequences != tokens.count;
  const bool has_all = has_rows(shape, tokens.count);
  if (has_all) add(false, false, false);
  // Some of the tokens, which an expert of a mixture was given, or each of them several times.
  const auto rows = static_cast<size_t>(shape.size() == 2 ? shape[0] : 0);
  if (!has_all && rows > 1 && rows != tokens.sequences) {
    add(false, false, false);
    out.back().own_rows = rows;
    return out;
  }
  // [2, 1, 151] of two tokens can be what two shards have of the last one.
  const bool is_ambiguous = shape.size() == 3 && tokens.count <= kMostShards;
  if (has_lasts && (!has_all || is_ambiguous) && has_rows(shape, tokens.sequences))
    add(true, false, false);
  if (can_have_heads_first(shape, tokens.count))
    add(false, false, true);
  else if (has_lasts && can_have_heads_first(shape, tokens.sequences))
    add(true, false, true);
  const size_t length = tokens.count / std::max<size_t>(tokens.sequences, 1);
  if (!has_all && tokens.sequences > 1 && length * tokens.sequences == tokens.count &&
      has_rows(shape, length))
    add(false, true, false);
  return out;
}

double square(double x) { return x * x; }

// Of one row; negative where it holds no finite elements, or zeros alone.
double row_distance(const float* a, const float* b, size_t columns, size_t& elements) {
  double aa = 0;
  double bb = 0;
  double dd = 0;
  size_t finite = 0;
  for (size_t i = 0; i < columns; ++i) {
    const double x = a[i];
    const double y = b[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    ++finite;
    aa += x * x;
    bb += y * y;
    dd += square(x - y);
  }
  if (finite == 0 || (aa == 0 && bb == 0)) return -1;
  elements += finite;
  return std::sqrt(dd / std::max(aa, bb));
}

}  // namespace

std::optional<Tensor> load_tensor(const capture::TensorRecord& record) {
  if (record.kept != capture::Kept::kBytes) return std::nullopt;
  const auto found = find_tensor(record);
  if (!found) return std::nullopt;
  auto tensor = (*found->open)->file->load(found->index);
  if (!tensor || tensor->elements() == 0) return std::nullopt;
  const DTypeKind kind = info(tensor->dtype()).kind;
  if (kind == DTypeKind::kComplex || kind == DTypeKind::kPacked) return std::nullopt;
  return std::move(*tensor);
}

Tokens guess_tokens(std::span<const Shape> shapes, capture::Traits::Batch batch) {
  const bool apart = batch == capture::Traits::Batch::kApart;
  std::map<std::pair<size_t, size_t>, size_t> seen;
  for (const Shape& shape : shapes) {
    if (shape.size() == 3 && apart && shape[0] > 0)
      ++seen[{product(std::span(shape).first(2)), static_cast<size_t>(shape[0])}];
    if (shape.size() == 2 && !apart) ++seen[{static_cast<size_t>(shape[0]), 1}];
    if (shape.size() == 3 && !apart && shape[0] == 1) ++seen[{static_cast<size_t>(shape[1]), 1}];
  }
  Tokens best;
  size_t votes = 0;
  for (const auto& [tokens, count] : seen) {
    if (count <= votes) continue;
    votes = count;
    best = {tokens.first, tokens.second};
  }
  return best;
}

bool may_have(std::span<const Shape> shapes, const Tokens& tokens) {
  return tokens.count > 0 && std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
           return has_rows(shape, tokens.count) || can_have_heads_first(shape, tokens.count);
         });
}

std::vector<size_t> sampled_rows(const Tokens& tokens) {
  if (tokens.count == 0) return {};
  const RowChoice* choice = tokens.choice.get();
  const size_t end = choice != nullptr      ? choice->compared() - 1
                     : tokens.looked_at > 0 ? tokens.looked_at - 1
                                            : tokens.count - 1;
  const size_t whole = (end + 1) / std::max<size_t>(tokens.sequences, 1);
  const size_t length = std::max<size_t>(tokens.length > 0 ? tokens.length : whole, 1);
  const auto row = [&](size_t i) {
    return choice == nullptr || choice->rows.empty() ? i : choice->rows[i];
  };
  const auto begins_sequence = [&](size_t i) {
    if (choice == nullptr) return i % length == 0;
    return i == 0 ||
           std::find(choice->last.begin(), choice->last.end(), row(i - 1)) != choice->last.end();
  };
  // The first token of a sequence sees itself alone and is not turned: at most one of them counts.
  const auto inside = [&](size_t i) { return row(begins_sequence(i) && i < end ? i + 1 : i); };
  const size_t first_last = choice != nullptr ? choice->last.front() : length - 1;
  const size_t last_last = choice != nullptr ? choice->last.back() : end;
  return {row(0), inside((end + 2) / 3), inside((2 * end + 2) / 3), first_last, last_last};
}

bool Sample::informative() const {
  if (rows.empty() || columns * rows.size() < kFewestElements) return false;
  const float first = rows[0].empty() ? 0 : rows[0][0];
  for (const auto& row : rows)
    for (const float value : row)
      if (value != first && std::isfinite(value)) return true;
  return false;
}

std::optional<float> Sample::constant() const {
  if (rows.empty() || rows[0].empty() || !std::isfinite(rows[0][0])) return std::nullopt;
  for (const auto& row : rows)
    for (const float value : row)
      if (value != rows[0][0]) return std::nullopt;
  return rows[0][0];
}

uint64_t Sample::hash() const {
  uint64_t seed = columns * 8 + (last_only ? 1 : 0) + (heads_first ? 2 : 0) + (once ? 4 : 0);
  seed += own_rows << 32;
  for (const auto& row : rows) {
    const std::string_view bytes(reinterpret_cast<const char*>(row.data()),
                                 row.size() * sizeof(float));
    seed = seed * 0x9E3779B97F4A7C15u + std::hash<std::string_view>()(bytes);
  }
  return seed;
}

std::optional<Shape> read_shape(const capture::TensorRecord& record) {
  if (record.kept != capture::Kept::kBytes) return described_shape(record);
  const auto tensor = load_tensor(record);
  if (!tensor) return std::nullopt;
  return tensor->shape();
}

std::optional<Integers> read_integers(const capture::TensorRecord& record) {
  const auto tensor = load_tensor(record);
  if (!tensor || info(tensor->dtype()).kind != DTypeKind::kInteger ||
      tensor->elements() > kMostTokens)
    return std::nullopt;
  std::vector<double> numbers(tensor->elements());
  metrics::read_elements(tensor->view(), 0, numbers.size(), numbers.data());
  return Integers{tensor->shape(), {numbers.begin(), numbers.end()}};
}

std::vector<Sample> read_samples(const capture::TensorRecord& record, const Tokens& tokens) {
  const auto tensor = load_tensor(record);
  if (!tensor || tokens.count == 0) return {};
  std::vector<Sample> out = layouts_of(tensor->shape(), tokens);
  for (Sample& sample : out) {
    sample.is_float = info(tensor->dtype()).kind == DTypeKind::kFloat;
    const size_t rows = sample.last_only      ? tokens.sequences
                        : sample.once         ? tokens.count / tokens.sequences
                        : sample.own_rows > 0 ? sample.own_rows
                                              : tokens.count;
    sample.columns = tensor->elements() / rows;
    if (sample.columns > kMaxColumns) continue;
    const Arranged arranged(tensor->view(), sample.heads_first);
    const Tokens own = sample.own_rows > 0 ? Tokens{sample.own_rows, 1} : tokens;
    for (const size_t row : sample.last_only ? std::vector<size_t>{0, rows - 1} : sampled_rows(own))
      sample.rows.push_back(read_row(arranged.view, row % rows * sample.columns, sample.columns));
  }
  std::erase_if(out, [](const Sample& sample) { return sample.columns > kMaxColumns; });
  return out;
}

std::optional<Sample> read_sample(const capture::TensorRecord& record, const Tokens& tokens) {
  for (Sample& sample : read_samples(record, tokens))
    if (!sample.heads_first && !sample.once && sample.own_rows == 0) return std::move(sample);
  return std::nullopt;
}

RowTable read_table(const capture::TensorRecord& record, const Tokens& tokens,
                    const Transform& of) {
  const auto tensor = load_tensor(record);
  if (!tensor || tokens.count == 0 || tokens.count > kMostTableRows ||
      info(tensor->dtype()).kind != DTypeKind::kFloat || !has_rows(tensor->shape(), tokens.count))
    return {};
  const size_t columns = tensor->elements() / tokens.count;
  const auto first = static_cast<size_t>(of.first);
  const size_t taken = of.taken > 0 ? static_cast<size_t>(of.taken) : columns;
  if (taken < kFewestElements || first + taken > columns) return {};
  RowTable out;
  for (size_t row = 0; row < tokens.count; ++row)
    out.push_back(read_row(tensor->view(), row * columns + first, std::min(taken, kTableColumns)));
  return out;
}

bool Distance::agrees() const {
  if (elements < kFewestElements || value > kFar) return false;
  if (value <= kNear) return true;
  const double cosine = 1 - square(value) / 2;
  return cosine * std::sqrt(static_cast<double>(elements)) >= kDeviations;
}

Distance distance(const Sample& golden, size_t golden_first, const Sample& actual,
                  size_t actual_first, size_t columns) {
  if (golden.own_rows != actual.own_rows) return {};
  Distance out;
  std::vector<double> rows;
  const auto add = [&](const std::vector<float>& g, const std::vector<float>& a) {
    const double d =
        row_distance(g.data() + golden_first, a.data() + actual_first, columns, out.elements);
    if (d >= 0) rows.push_back(d);
  };
  if (golden.last_only == actual.last_only) {
    for (size_t i = 0; i < golden.rows.size() && i < actual.rows.size(); ++i)
      add(golden.rows[i], actual.rows[i]);
  } else {
    // The last two sampled rows of all tokens are those of the first and the last sequence.
    const Sample& all = golden.last_only ? actual : golden;
    const Sample& last = golden.last_only ? golden : actual;
    for (size_t i = 0; i < 2 && all.rows.size() >= 2 && i < last.rows.size(); ++i) {
      const auto& row = all.rows[all.rows.size() - 2 + i];
      golden.last_only ? add(last.rows[i], row) : add(row, last.rows[i]);
    }
  }
  if (rows.empty()) return {};
  std::nth_element(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(rows.size() / 2),
                   rows.end());
  out.value = rows[rows.size() / 2];
  return out;
}

std::optional<size_t> find_columns(const Sample& narrow, size_t first, size_t columns,
                                   const Sample& wide, size_t within) {
  if (!narrow.same_rows(wide) || narrow.rows.empty() || wide.rows.empty() ||
      wide.columns < within || within < columns || columns < kFewestElements)
    return std::nullopt;
  // A token in the middle: the first one of a sequence has more outliers.
  const size_t row = narrow.rows.size() / 2;
  const size_t looked_at = std::min(kSearchElements, columns);
  const float* wanted = narrow.rows[row].data() + first;
  size_t best = 0;
  double best_distance = 2;
  for (size_t at = 0; at + columns <= within; ++at) {
    size_t ignored = 0;
    const double d = row_distance(wanted, wide.rows[row].data() + at, looked_at, ignored);
    if (d >= 0 && d < best_distance) {
      best_distance = d;
      best = at;
    }
  }
  if (best_distance > kFar) return std::nullopt;
  return best;
}

bool may_add_up(const Sample& one, const Sample& other, const Sample& sum) {
  const bool alike = one.same_rows(sum) && other.same_rows(sum);
  const size_t rows = sum.rows.size();
  if (!alike || rows == 0 || one.rows.size() != rows || other.rows.size() != rows) return true;
  const size_t row = rows / 2;  // as in find_columns
  std::array<float, kSearchElements> total;
  const size_t count = std::min({kSearchElements, one.columns, other.columns, sum.columns});
  for (size_t i = 0; i < count; ++i) total[i] = one.rows[row][i] + other.rows[row][i];
  size_t ignored = 0;
  return row_distance(total.data(), sum.rows[row].data(), count, ignored) <= kFar;
}

Sample side_by_side(std::span<const Sample> shards) {
  Sample out = shards[0];
  for (size_t i = 1; i < shards.size(); ++i) {
    out.columns += shards[i].columns;
    for (size_t row = 0; row < out.rows.size() && row < shards[i].rows.size(); ++row)
      out.rows[row].insert(out.rows[row].end(), shards[i].rows[row].begin(),
                           shards[i].rows[row].end());
  }
  return out;
}

Sample sum_of(std::span<const Sample> parts) {
  Sample out = parts[0];
  for (size_t i = 1; i < parts.size(); ++i)
    for (size_t row = 0; row < out.rows.size() && row < parts[i].rows.size(); ++row)
      for (size_t c = 0; c < out.columns && c < parts[i].columns; ++c)
        out.rows[row][c] += parts[i].rows[row][c];
  return out;
}

}  // namespace ait::match
