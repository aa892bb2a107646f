#include "compare/engine.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"
#include "base/read_ahead.h"
#include "compare/transform.h"
#include "formats/file_cache.h"
#include "metrics/extremes.h"

namespace ait::compare {
namespace {

using capture::TensorRecord;
using formats::FileCache;
using formats::SharedFile;
using formats::TensorFile;

// Batches on their way per thread: whoever takes the rows may keep one thread busy for a while.
constexpr size_t kInFlightPerThread = 8;

// Pairs up to this size go so many together, where so many in a row were that small.
constexpr uint64_t kSmallPairBytes = uint64_t{128} << 10;
constexpr size_t kSmallPairs = 32;

// Pairs that are known before their turn, so that the disk can be asked for the large ones.
constexpr size_t kPairsAhead = 64;

// Files that hold many tensors are opened once for all of them, the last ones of each side: more
// than a checkpoint has shards, as tensors next to each other need not lie in the same shard.
constexpr size_t kCachedFiles = 256;

// One side of a pair between opening and its rows.
using OpenSide = std::vector<SharedFile>;

using Emit = std::function<void(Row&& row, uint64_t bytes, size_t pair)>;

// One pair between opening and its rows.
struct Item {
  using Measured = std::pair<Row, uint64_t>;
  size_t number = 0;
  match::Pair pair;  // what its only row says was moved there
  OpenSide golden;
  OpenSide actual;
  // Nearly all pairs have one row: it needs no memory of its own, for which threads would wait for each other.
  std::optional<Measured> row;
  std::vector<Measured> more_rows;
  bool opened = false;
  bool stopped = false;
};

Result<Content> missing(std::string_view option) {
  return fail(Error(ErrorCode::kNotFound) << "no counterpart in " << option << ".");
}

// The tensor, or what the file keeps in its place.
Result<Content> load(const TensorFile& file, size_t index) {
  auto tensor = file.load(index);
  if (tensor) return Content(std::move(*tensor));
  if (const auto description = file.describe(index); description && !description->has_data)
    return Content(*description);
  return fail(tensor.error());
}

Result<Content> load(const SharedFile& file, const TensorRecord& record, const std::string& name) {
  if (!*file) return fail(file->error());
  const formats::IndexedFile& opened = **file;
  if (opened.file->size() == 1 && (name.empty() || opened.file->name(0) == name))
    return load(*opened.file, 0);
  const auto found = opened.find(name);
  if (!found)
    return fail(Error(ErrorCode::kNotFound, record.path)
                << "holds no tensor named " << printable(name));
  return load(*opened.file, *found);
}

uint64_t size_of(const Result<Content>& content) {
  return content && content->tensor ? content->tensor->view().bytes() : 0;
}

// A side that is one file, and not one tensor of it by name: it may turn out to hold several.
bool is_whole_file(const match::Side& side) {
  return !side.present() || (side.plain() && side.records.front().member.empty());
}

bool holds_several(const OpenSide& files) {
  return files.size() == 1 && *files[0] && (*files[0])->file->size() > 1;
}

// A run that was converted has [minimum, maximum] in place of each tensor.
bool holds_extremes(const match::Side& side, const Result<Content>& content) {
  return side.plain() && side.records[0].kept == capture::Kept::kStatistics && content &&
         content->tensor && content->tensor->shape() == Shape{2};
}

// The same of a side that may have more.
Result<Content> extremes_of(Result<Content> content, const match::Side& side) {
  if (!content) return content;
  if (!content->tensor)
    return fail(Error(ErrorCode::kUnsupported, side.records[0].path)
                << "the two sides hold different kinds of statistics (min_max and stat); convert "
                   "both to the same kind");
  auto extremes = metrics::extremes_of(content->tensor->view());
  if (!extremes) return fail(extremes.error().set_path(side.records[0].path));
  auto array = metrics::array_of(*extremes);
  if (!array) return fail(array.error());
  return Content(std::move(*array));
}

// Taking columns and joining shards leaves the rows alone.
bool rows_are_as_recorded(const match::Pair& pair) {
  return !pair.golden.transform.heads_first && !pair.actual.transform.heads_first &&
         !pair.actual.dequantise;
}

// All the parts of a side as one tensor.
Result<Content> load_side(const match::Side& side, const OpenSide& files) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    auto part = load(files[i], side.records[i], side.records[i].member);
    if (!part || side.plain()) return part;
    if (!part->tensor)
      return fail(Error(ErrorCode::kUnsupported, side.records[i].path)
                  << "tensor has no data. Without data it cannot be cut or put together");
    parts.push_back(std::move(*part->tensor));
  }
  auto tensor = side.dequantise ? dequantised(parts) : transformed(parts, side.transform);
  if (!tensor) return fail(tensor.error());
  return Content(std::move(*tensor));
}

// Takes the texts of a pair that is not needed any more.
void describe(Row& row, match::Pair&& pair) {
  if (pair.complete()) {
    row.certainty = pair.certainty;
    row.certainty_reason = std::move(pair.why);
  }
  row.token = std::move(pair.token);
  row.phase = pair.phase;
  row.subject = std::move(pair.subject);
  row.origin = std::move(pair.origin);
  const auto from = [](Side& side, match::Side& paired) {
    side.records = std::move(paired.records);
    side.transform = paired.transform;
  };
  from(row.golden, pair.golden);
  from(row.actual, pair.actual);
}

void describe(Row& row, const match::Pair& pair) { describe(row, match::Pair(pair)); }

class Run {
 public:
  Run(const match::Pairs& pairs, const Options& options, const std::atomic<bool>& stop)
      : pairs_(pairs), options_(options), stop_(stop) {
    options_.threads = 0;  // those of the pipeline
    options_.stop = &stop;
  }

  size_t run(size_t threads, const Emit& emit) {
    size_t finished = 0;
    with_threads(threads, [&] {
      const size_t in_flight = kInFlightPerThread * available_threads();
      batches_.resize(in_flight);
      run_pipeline(pairs_.count, in_flight,
                   {[&](size_t i) { return prepare(batch(i)); },
                    [&](size_t i) {
                      for (Item& at : batch(i)) work(at);
                    },
                    [&](size_t i) {
                      for (Item& at : batch(i)) finished += finish(at, emit) ? 1 : 0;
                    }});
    });
    return finished;
  }

 private:
  using Batch = std::vector<Item>;
  struct Ahead {
    Batch items;
    bool is_asked_for = false;
  };
  Batch& batch(size_t i) { return batches_[i % batches_.size()]; }

  bool prepare(Batch& into) {
    // One more than is taken, so that the first need not wait for all.
    for (size_t i = 0; i < 2 && next_ - taken_ < kPairsAhead; ++i) look_ahead();
    into.clear();
    if (stop_ || ahead_.empty()) return false;
    if (ahead_.front().is_asked_for) disk_.take();
    into = std::move(ahead_.front().items);
    ahead_.pop_front();
    taken_ += into.size();
    for (Item& at : into)
      if (!at.pair.unread && has_members(at.pair)) open_files(at);
    return true;
  }

  // Large pairs go one at a time. Small ones, of which there may be millions, go many together to the
  // thread that measures them.
  void look_ahead() {
    if (next_ >= pairs_.count) return;
    const bool small = small_in_a_row_ >= kSmallPairs;
    Ahead& next = ahead_.emplace_back();
    next.items.resize(std::min(small ? kSmallPairs : 1, pairs_.count - next_));
    next.is_asked_for = !small;
    for (Item& at : next.items) {
      at.number = next_++;
      at.pair = pairs_.at(at.number);
    }
    if (next.is_asked_for) disk_.want(paths_of(next.items[0].pair));
  }

  static std::vector<std::string> paths_of(const match::Pair& pair) {
    std::vector<std::string> paths;
    if (pair.unread) return paths;
    for (const match::Side* side : {&pair.golden, &pair.actual})
      for (const TensorRecord& record : side->records)
        if (record.member.empty()) paths.push_back(record.path);
    return paths;
  }

  static bool has_members(const match::Pair& pair) {
    const auto is_member = [](const TensorRecord& record) { return !record.member.empty(); };
    return std::ranges::any_of(pair.golden.records, is_member) ||
           std::ranges::any_of(pair.actual.records, is_member);
  }

  void open_files(Item& at) {
    at.golden = open_side(at.pair.golden, golden_files_);
    at.actual = open_side(at.pair.actual, actual_files_);
    at.opened = true;
  }

  OpenSide open_side(const match::Side& side, FileCache& files) const {
    OpenSide out;
    for (const TensorRecord& record : side.records)
      out.push_back(record.member.empty() ? formats::open_indexed(record.path, &buffers_)
                                          : files.get(record.path));
    return out;
  }

  void work(Item& at) {
    const match::Pair& pair = at.pair;
    if (!pair.unread && !at.opened) open_files(at);
    if (pair.unread) {
      at.row.emplace(unread_row(pair), 0);
    } else if (is_whole_file(pair.golden) && is_whole_file(pair.actual) &&
               (holds_several(at.golden) || holds_several(at.actual))) {
      for (const auto& [name, sides] : names_of(at)) measure_named(name, sides, at);
    } else {
      measure_whole(at);
    }
    if (at.row && at.row->second > kSmallPairBytes)
      small_in_a_row_ = 0;
    else
      ++small_in_a_row_;
    at.golden.clear();
    at.actual.clear();
    at.stopped = stop_;
  }

  struct Sides {
    bool golden = false;
    bool actual = false;
  };

  // Names of either side, golden's order first. Two bare tensors in containers of one go together
  // whatever their names.
  static std::vector<std::pair<std::string, Sides>> names_of(const Item& at) {
    std::vector<std::pair<std::string, Sides>> names;
    std::unordered_map<std::string, size_t> place;
    const auto add = [&](const OpenSide& files, bool Sides::* side) {
      if (files.empty() || !*files[0]) return;
      const TensorFile& tensors = *(*files[0])->file;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const std::string name = tensors.name(i);
        const auto [found, is_new] = place.try_emplace(name, names.size());
        if (is_new) names.push_back({name, {}});
        names[found->second].second.*side = true;
      }
    };
    add(at.golden, &Sides::golden);
    add(at.actual, &Sides::actual);
    return names;
  }

  // One of several tensors in files that were paired as a whole.
  void measure_named(const std::string& name, const Sides& sides, Item& at) const {
    const match::Pair& pair = at.pair;
    const auto golden =
        sides.golden ? load(at.golden[0], pair.golden.records[0], name) : missing("golden-path");
    const auto actual =
        sides.actual ? load(at.actual[0], pair.actual.records[0], name) : missing("my-path");
    Row row = measure(golden, actual, options_);
    describe(row, pair);
    row.subject.member = name;
    const auto name_member = [&](Side& side, bool has_it) {
      if (!side.records.empty()) side.records[0].member = name;
      side.lacks_member = !has_it;
    };
    name_member(row.golden, sides.golden);
    name_member(row.actual, sides.actual);
    const uint64_t bytes = size_of(golden) + size_of(actual);
    if (at.row)
      at.more_rows.emplace_back(std::move(row), bytes);
    else
      at.row.emplace(std::move(row), bytes);
  }

  void measure_whole(Item& at) const {
    match::Pair& pair = at.pair;
    auto golden =
        pair.golden.present() ? load_side(pair.golden, at.golden) : lone(pair, "golden-path");
    auto actual = pair.actual.present() ? load_side(pair.actual, at.actual) : lone(pair, "my-path");
    std::string note;
    const bool golden_is_short = holds_extremes(pair.golden, golden);
    const bool actual_is_short = holds_extremes(pair.actual, actual);
    if (golden_is_short && !actual_is_short) actual = extremes_of(std::move(actual), pair.actual);
    if (actual_is_short && !golden_is_short) golden = extremes_of(std::move(golden), pair.golden);
    const std::vector<bool>* padding = rows_are_as_recorded(pair) ? pair.padding.get() : nullptr;
    std::optional<Tensor> whole_golden, whole_actual;
    if (golden && actual && golden->tensor && actual->tensor) {
      // Most tensors fit as they are, and need no copies.
      const bool may_be_fitted = (pair.golden.rows != nullptr && pair.actual.rows != nullptr) ||
                                 golden->tensor->elements() != actual->tensor->elements();
      if (may_be_fitted) whole_golden = golden->tensor;
      if (may_be_fitted) whole_actual = actual->tensor;
      note = fit(*golden->tensor, *actual->tensor, pair.fit, pair.golden.rows.get(),
                 pair.actual.rows.get());
      if (!note.empty()) padding = nullptr;  // rows were chosen or repeated
      if (golden_is_short || actual_is_short) note = reasons::kExtremes;
      if (pair.actual.dequantise) note = "my data is de-quantised.";
      if (may_be_fitted) golden = Content(std::move(*golden->tensor));
      if (may_be_fitted) actual = Content(std::move(*actual->tensor));
    }
    Row row = measure(golden, actual, options_, padding);
    if (whole_golden && whole_actual) {
      describe_unrepeated(row.golden, *whole_golden, golden->tensor->elements());
      describe_unrepeated(row.actual, *whole_actual, actual->tensor->elements());
      // As a store of rows has it, too.
      if (row.comparison) row.comparison->golden = *row.golden.statistics;
      if (row.comparison) row.comparison->actual = *row.actual.statistics;
    }
    if (!note.empty()) row.reason = note + (row.reason.empty() ? "" : " ") + row.reason;
    describe(row, std::move(pair));
    at.row.emplace(std::move(row), size_of(golden) + size_of(actual));
  }

  // A side that was repeated to be compared is shown as its file is.
  static void describe_unrepeated(Side& side, const Tensor& whole, size_t compared) {
    if (compared <= whole.elements()) return;
    side.shape = whole.shape();
    side.statistics = metrics::statistics(whole.view());
  }

  static Result<Content> lone(const match::Pair& pair, std::string_view option) {
    if (pair.alone.empty()) return missing(option);
    return fail(Error(ErrorCode::kNotFound) << pair.alone);
  }

  // Whether its rows were given out: they end at the first pair that was cut short, since a gap
  // would look like a result.
  bool finish(Item& at, const Emit& emit) {
    cut_short_ |= at.stopped;
    if (cut_short_) return false;
    if (at.row) emit(std::move(at.row->first), at.row->second, at.number);
    for (auto& [row, bytes] : at.more_rows) emit(std::move(row), bytes, at.number);
    return true;
  }

  const match::Pairs& pairs_;
  Options options_;
  const std::atomic<bool>& stop_;
  FileCache golden_files_{kCachedFiles};
  FileCache actual_files_{kCachedFiles};
  const ReadBuffers buffers_;
  std::vector<Batch> batches_;
  size_t next_ = 0;   // pair to look at
  size_t taken_ = 0;  // pairs that are worked on or done
  std::deque<Ahead> ahead_;
  ReadAhead disk_;
  std::atomic<size_t> small_in_a_row_ = 0;  // of the pairs that were measured last
  bool cut_short_ = false;
};

}  // namespace

Result<std::pair<Tensor, Tensor>> load_pair(const match::Pair& pair) {
  std::vector<Tensor> tensors;
  for (const match::Side* side : {&pair.golden, &pair.actual}) {
    if (!side->present()) return fail(Error(ErrorCode::kNotFound) << "a side is missing");
    OpenSide files;
    for (const TensorRecord& record : side->records)
      files.push_back(formats::open_indexed(record.path));
    auto content = load_side(*side, files);
    if (!content) return fail(content.error());
    if (!content->tensor)
      return fail(Error(ErrorCode::kUnsupported, side->records[0].path) << "tensor has no data");
    tensors.push_back(std::move(*content->tensor));
  }
  fit(tensors[0], tensors[1], pair.fit, pair.golden.rows.get(), pair.actual.rows.get());
  return std::pair(std::move(tensors[0]), std::move(tensors[1]));
}

Row unread_row(const match::Pair& pair) {
  Row row;
  describe(row, pair);
  row.reason = pair.alone;
  return row;
}

size_t compare_numbered(const match::Pairs& pairs, const Options& options,
                        const std::atomic<bool>& stop,
                        const std::function<void(Row&& row, uint64_t bytes, size_t pair)>& emit) {
  return Run(pairs, options, stop).run(options.threads, emit);
}

size_t compare_pairs(const match::Pairs& pairs, const Options& options,
                     const std::atomic<bool>& stop,
                     const std::function<void(Row&& row, uint64_t bytes)>& emit) {
  return compare_numbered(pairs, options, stop,
                          [&](Row&& row, uint64_t bytes, size_t) { emit(std::move(row), bytes); });
}

}  // namespace ait::compare
