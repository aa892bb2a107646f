#include "compare/engine.h"

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"
#include "formats/registry.h"

namespace ait::compare {
namespace {

using capture::TensorRecord;
using formats::TensorFile;

// Pairs on their way per thread: enough to keep the disk busy ahead of the threads.
constexpr size_t kInFlightPerThread = 8;

// Files that hold many tensors are opened once for all of them, the last few of each side.
constexpr size_t kCachedFiles = 16;

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

// One pair between opening and its rows.
struct Item {
  SharedFile golden;
  SharedFile actual;
  std::vector<std::pair<Row, uint64_t>> rows;
  bool stopped = false;
};

Result<Tensor> missing(std::string_view option) {
  return fail(Error(ErrorCode::kNotFound) << "no counterpart in " << option << ".");
}

Result<Tensor> load(const SharedFile& file, const TensorRecord& record, const std::string& name) {
  if (!*file) return fail(file->error());
  const OpenFile& opened = **file;
  if (opened.file->size() == 1 && (name.empty() || opened.file->name(0) == name))
    return opened.file->load(0);
  const auto found = opened.index_of.find(name);
  if (found == opened.index_of.end())
    return fail(Error(ErrorCode::kNotFound, record.path)
                << "holds no tensor named " << printable(name));
  return opened.file->load(found->second);
}

uint64_t size_of(const Result<Tensor>& tensor) { return tensor ? tensor->view().bytes() : 0; }

bool holds_several(const SharedFile& file) { return file && *file && (*file)->file->size() > 1; }

std::string shown_path(const TensorRecord& record, const std::string& name) {
  return record.path.empty() || name.empty() ? record.path : record.path + ":" + name;
}

class Run {
 public:
  Run(std::span<const match::Pair> pairs, const Options& options, const std::atomic<bool>& stop)
      : pairs_(pairs), options_(options), stop_(stop) {
    options_.threads = 0;  // those of the pipeline
    options_.stop = &stop;
  }

  size_t run(size_t threads, const std::function<void(Row&&, uint64_t)>& emit) {
    size_t finished = 0;
    with_threads(threads, [&] {
      const size_t in_flight = kInFlightPerThread * available_threads();
      items_.resize(in_flight);
      finished = run_pipeline(pairs_.size(), in_flight,
                              {[&](size_t i) { return prepare(i); }, [&](size_t i) { work(i); },
                               [&](size_t i) { finish(i, emit); }});
    });
    return finished - stopped_;
  }

 private:
  Item& item(size_t i) { return items_[i % items_.size()]; }

  bool prepare(size_t i) {
    if (stop_) return false;
    item(i) = {};
    item(i).golden = side(pairs_[i].golden, golden_files_);
    item(i).actual = side(pairs_[i].actual, actual_files_);
    return true;
  }

  static SharedFile side(const TensorRecord& record, FileCache& files) {
    if (record.path.empty()) return nullptr;
    return record.member.empty() ? open(record.path) : files.get(record.path);
  }

  void work(size_t i) {
    const match::Pair& pair = pairs_[i];
    Item& at = item(i);
    const bool by_name = pair.golden.member.empty() && pair.actual.member.empty() &&
                         (holds_several(at.golden) || holds_several(at.actual));
    if (!by_name) {
      measure_one(pair, pair.golden.member, pair.actual.member, at);
    } else {
      for (const auto& [name, sides] : names_of(at))
        measure_one(pair, sides.golden ? name : kAbsent, sides.actual ? name : kAbsent, at);
    }
    at.golden = nullptr;
    at.actual = nullptr;
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
    const auto add = [&](const SharedFile& file, bool Sides::* side) {
      if (!file || !*file) return;
      const TensorFile& tensors = *(*file)->file;
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

  void measure_one(const match::Pair& pair, const std::string& golden_name,
                   const std::string& actual_name, Item& at) const {
    const bool has_golden = at.golden && golden_name != kAbsent;
    const bool has_actual = at.actual && actual_name != kAbsent;
    const auto golden =
        has_golden ? load(at.golden, pair.golden, golden_name) : missing("golden-path");
    const auto actual = has_actual ? load(at.actual, pair.actual, actual_name) : missing("my-path");
    Row row = measure(golden, actual, options_);
    row.token_id = pair.token_id;
    const std::string& name = has_golden ? golden_name : actual_name;
    row.data_id = name.empty() || name == pair.data_id ? pair.data_id : pair.data_id + ":" + name;
    row.golden.path = has_golden ? shown_path(pair.golden, golden_name) : "";
    row.actual.path = has_actual ? shown_path(pair.actual, actual_name) : "";
    at.rows.emplace_back(std::move(row), size_of(golden) + size_of(actual));
  }

  void finish(size_t i, const std::function<void(Row&&, uint64_t)>& emit) {
    Item& at = item(i);
    // The rows end at the first pair that was cut short: a gap would look like a result.
    cut_short_ |= at.stopped;
    if (cut_short_) {
      ++stopped_;
    } else {
      for (auto& [row, bytes] : at.rows) emit(std::move(row), bytes);
    }
    at = {};
  }

  inline static const std::string kAbsent = std::string(1, '\0');

  std::span<const match::Pair> pairs_;
  Options options_;
  const std::atomic<bool>& stop_;
  FileCache golden_files_;
  FileCache actual_files_;
  std::vector<Item> items_;
  bool cut_short_ = false;
  size_t stopped_ = 0;
};

}  // namespace

size_t compare_pairs(std::span<const match::Pair> pairs, const Options& options,
                     const std::atomic<bool>& stop,
                     const std::function<void(Row&& row, uint64_t bytes)>& emit) {
  return Run(pairs, options, stop).run(options.threads, emit);
}

}  // namespace ait::compare
