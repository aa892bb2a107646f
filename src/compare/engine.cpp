#include "compare/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"
#include "compare/transform.h"
#include "formats/registry.h"
#include "metrics/extremes.h"

namespace ait::compare {
namespace {

using capture::TensorRecord;
using formats::TensorFile;

// Batches on their way per thread: enough to keep the disk busy ahead of the threads.
constexpr size_t kInFlightPerThread = 8;

// Pairs up to this size are not read ahead; so many of them go together.
constexpr uint64_t kSmallPairBytes = uint64_t{128} << 10;
constexpr size_t kSmallPairs = 32;

// Files that hold many tensors are opened once for all of them, the last ones of each side: more
// than a checkpoint has shards, as tensors next to each other need not lie in the same shard.
constexpr size_t kCachedFiles = 256;

// A file and where each of its tensors is.
struct OpenFile {
  std::unique_ptr<TensorFile> file;
  std::unordered_map<std::string, size_t> index_of;
};

using SharedFile = std::shared_ptr<const Result<OpenFile>>;

SharedFile open(const std::string& path) {
  auto opened = formats::open_tensor_file(path);
  if (!opened) return std::make_shared<const Result<OpenFile>>(fail(opened.error()));
  OpenFile file{std::move(*opened), {}};
  if (file.file->size() > 1)
    for (size_t i = 0; i < file.file->size(); ++i) file.index_of.emplace(file.file->name(i), i);
  return std::make_shared<const Result<OpenFile>>(std::move(file));
}

class FileCache {
 public:
  SharedFile get(const std::string& path) {
    for (const auto& [known, file] : recent_)
      if (known == path) return file;
    recent_.emplace_front(path, open(path));
    if (recent_.size() > kCachedFiles) recent_.pop_back();
    return recent_.front().second;
  }

 private:
  std::deque<std::pair<std::string, SharedFile>> recent_;
};

// One side of a pair between opening and its rows.
using OpenSide = std::vector<SharedFile>;

// One pair between opening and its rows.
struct Item {
  match::Pair pair;
  OpenSide golden;
  OpenSide actual;
  std::vector<std::pair<Row, uint64_t>> rows;
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
  const OpenFile& opened = **file;
  if (opened.file->size() == 1 && (name.empty() || opened.file->name(0) == name))
    return load(*opened.file, 0);
  const auto found = opened.index_of.find(name);
  if (found == opened.index_of.end())
    return fail(Error(ErrorCode::kNotFound, record.path)
                << "holds no tensor named " << printable(name));
  return load(*opened.file, found->second);
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

class Run {
 public:
  Run(const match::Pairs& pairs, const Options& options, const std::atomic<bool>& stop)
      : pairs_(pairs), options_(options), stop_(stop) {
    options_.threads = 0;  // those of the pipeline
    options_.stop = &stop;
  }

  size_t run(size_t threads, const std::function<void(Row&&, uint64_t)>& emit) {
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
  Batch& batch(size_t i) { return batches_[i % batches_.size()]; }

  // Large files are opened ahead, one pair at a time, so that the disk brings them while others are
  // measured. Small ones, of which there may be millions, go many together to the thread that
  // measures them.
  bool prepare(Batch& into) {
    into.clear();
    while (!stop_ && next_ < pairs_.count) {
      Item& at = into.emplace_back();
      at.pair = pairs_.at(next_++);
      const bool ahead = reads_ahead_;
      if (!at.pair.unread && (ahead || has_members(at.pair))) open_files(at);
      if (ahead || into.size() == kSmallPairs) break;
    }
    return !into.empty();
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

  static OpenSide open_side(const match::Side& side, FileCache& files) {
    OpenSide out;
    for (const TensorRecord& record : side.records)
      out.push_back(record.member.empty() ? open(record.path) : files.get(record.path));
    return out;
  }

  void work(Item& at) {
    const match::Pair& pair = at.pair;
    if (!pair.unread && !at.opened) open_files(at);
    if (pair.unread) {
      Row row;
      describe(row, pair);
      row.reason = pair.alone;
      at.rows.emplace_back(std::move(row), 0);
    } else if (is_whole_file(pair.golden) && is_whole_file(pair.actual) &&
               (holds_several(at.golden) || holds_several(at.actual))) {
      for (const auto& [name, sides] : names_of(at)) measure_named(name, sides, at);
    } else {
      measure_whole(at);
    }
    if (!at.rows.empty()) reads_ahead_ = at.rows.front().second > kSmallPairBytes;
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
    at.rows.emplace_back(std::move(row), size_of(golden) + size_of(actual));
  }

  void measure_whole(Item& at) const {
    const match::Pair& pair = at.pair;
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
      whole_golden = golden->tensor;
      whole_actual = actual->tensor;
      note = fit(*golden->tensor, *actual->tensor, pair.fit, pair.golden.rows.get(),
                 pair.actual.rows.get());
      if (!note.empty()) padding = nullptr;  // rows were chosen or repeated
      if (golden_is_short || actual_is_short) note = reasons::kExtremes;
      if (pair.actual.dequantise) note = "my data is de-quantised.";
      golden = Content(std::move(*golden->tensor));
      actual = Content(std::move(*actual->tensor));
    }
    Row row = measure(golden, actual, options_, padding);
    if (whole_golden && whole_actual) {
      describe_unrepeated(row.golden, *whole_golden, golden->tensor->elements());
      describe_unrepeated(row.actual, *whole_actual, actual->tensor->elements());
      // As a store of rows has it, too.
      if (row.comparison) row.comparison->golden = *row.golden.statistics;
      if (row.comparison) row.comparison->actual = *row.actual.statistics;
    }
    describe(row, pair);
    if (!note.empty()) row.reason = note + (row.reason.empty() ? "" : " ") + row.reason;
    at.rows.emplace_back(std::move(row), size_of(golden) + size_of(actual));
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

  static void describe(Row& row, const match::Pair& pair) {
    row.token = pair.token;
    row.phase = pair.phase;
    row.subject = pair.subject;
    row.origin = pair.origin;
    if (pair.complete()) {
      row.certainty = pair.certainty;
      row.certainty_reason = pair.why;
    }
    const auto from = [](Side& side, const match::Side& paired) {
      side.records = paired.records;
      side.transform = paired.transform;
    };
    from(row.golden, pair.golden);
    from(row.actual, pair.actual);
  }

  // Whether its rows were given out: they end at the first pair that was cut short, since a gap
  // would look like a result.
  bool finish(Item& at, const std::function<void(Row&&, uint64_t)>& emit) {
    cut_short_ |= at.stopped;
    if (cut_short_) return false;
    for (auto& [row, bytes] : at.rows) emit(std::move(row), bytes);
    return true;
  }

  const match::Pairs& pairs_;
  Options options_;
  const std::atomic<bool>& stop_;
  FileCache golden_files_;
  FileCache actual_files_;
  std::vector<Batch> batches_;
  size_t next_ = 0;                       // pair
  std::atomic<bool> reads_ahead_ = true;  // the last pair that was measured is worth it
  bool cut_short_ = false;
};

}  // namespace

Result<std::pair<Tensor, Tensor>> load_pair(const match::Pair& pair) {
  std::vector<Tensor> tensors;
  for (const match::Side* side : {&pair.golden, &pair.actual}) {
    if (!side->present()) return fail(Error(ErrorCode::kNotFound) << "a side is missing");
    OpenSide files;
    for (const TensorRecord& record : side->records) files.push_back(open(record.path));
    auto content = load_side(*side, files);
    if (!content) return fail(content.error());
    if (!content->tensor)
      return fail(Error(ErrorCode::kUnsupported, side->records[0].path) << "tensor has no data");
    tensors.push_back(std::move(*content->tensor));
  }
  fit(tensors[0], tensors[1], pair.fit, pair.golden.rows.get(), pair.actual.rows.get());
  return std::pair(std::move(tensors[0]), std::move(tensors[1]));
}

size_t compare_pairs(const match::Pairs& pairs, const Options& options,
                     const std::atomic<bool>& stop,
                     const std::function<void(Row&& row, uint64_t bytes)>& emit) {
  return Run(pairs, options, stop).run(options.threads, emit);
}

}  // namespace ait::compare
