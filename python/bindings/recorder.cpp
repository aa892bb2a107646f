#include "recorder.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/manual_mapping.h"
#include "errors.h"
#include "formats/write.h"
#include "operand.h"
#include "record/writer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using capture::MappedPair;
using Clock = std::chrono::steady_clock;

// While files are written without a pause, the mapping follows them after this at the latest.
constexpr auto kMappingDelay = std::chrono::milliseconds(100);
// Of the time, the share that may be spent on the mapping is one in so many: it is written anew
// each time, and grows.
constexpr int kMappingShare = 10;

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

record::Encoding encoding_of(const std::string& path) {
  switch (formats::file_format_of(path).value_or(formats::FileFormat::kSafetensors)) {
    case formats::FileFormat::kAtbBin:
      return record::Encoding::kAtbBin;
    case formats::FileFormat::kNpy:
      return record::Encoding::kNpy;
    case formats::FileFormat::kTorch:
      return record::Encoding::kTorch;
    case formats::FileFormat::kSafetensors:
      break;
  }
  throw Raised{Error(ErrorCode::kUsage, path) << "the name must end in .bin, .npy, .pt or .pth"};
}

// Where a pair is entered once its golden file is there.
struct Mapping {
  std::string folder;
  MappedPair pair;
};

// Entries that wait for metadata.json. Each names a file that is there already, so that a process
// that dies at any moment leaves no entry without its file. Called by the writer's thread, which no
// exception may leave.
class PendingMappings {
 public:
  void add(Mapping&& mapping) noexcept {
    guarded([&] {
      const std::lock_guard lock(mutex_);
      pairs_[std::move(mapping.folder)].push_back(std::move(mapping.pair));
    });
    if (Clock::now() > due_.load() + kMappingDelay) write();
  }

  // As record::WriterOptions::idle wants it.
  int write_when_due() noexcept {
    const auto wait = due_.load() - Clock::now();
    if (wait.count() > 0)
      return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
    write();
    return -1;
  }

  void write() noexcept {
    guarded([&] {
      const std::lock_guard writing(writing_);
      Pairs pairs;
      {
        const std::lock_guard lock(mutex_);
        pairs.swap(pairs_);
      }
      if (pairs.empty()) return;
      const auto start = Clock::now();
      for (auto& [folder, added] : pairs) {
        const auto result = capture::add_to_metadata(folder, added);
        if (!result) try_again_later(folder, std::move(added), result.error());
      }
      const auto end = Clock::now();
      due_ = end + (end - start) * (kMappingShare - 1);
    });
  }

  std::optional<std::string> first_failure() const {
    const std::lock_guard lock(mutex_);
    return first_failure_;
  }

 private:
  using Pairs = std::map<std::string, std::vector<MappedPair>>;

  template <typename Work>
  void guarded(Work work) noexcept {
    try {
      work();
    } catch (const std::exception& error) {  // no memory
      const std::lock_guard lock(mutex_);
      if (!first_failure_) first_failure_ = error.what();
    }
  }

  // The disk may have room by then. What came meanwhile is newer.
  void try_again_later(const std::string& folder, std::vector<MappedPair>&& pairs,
                       const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = error.text();
    auto& waiting = pairs_[folder];
    waiting.insert(waiting.begin(), std::make_move_iterator(pairs.begin()),
                   std::make_move_iterator(pairs.end()));
  }

  std::mutex writing_;  // one at a time; taken before the other
  std::atomic<Clock::time_point> due_{Clock::time_point{}};
  mutable std::mutex mutex_;
  Pairs pairs_;
  std::optional<std::string> first_failure_;
};

// What a job needs until it is done.
struct Submission {
  PendingMappings* mappings;
  const TensorView* view;  // only while it is submitted
  std::optional<Mapping> mapping;

  Submission(PendingMappings* all, const TensorView* tensor, std::optional<Mapping> own)
      : mappings(all), view(tensor), mapping(std::move(own)) {}

  static int fill(void* self, void* to) {
    const TensorView& view = *static_cast<Submission*>(self)->view;
    gather(view, 0, view.elements, static_cast<std::byte*>(to));
    return 0;
  }

  static void done(void* self, const char*, record::WriteStatus status) {
    const std::unique_ptr<Submission> submission(static_cast<Submission*>(self));
    if (status.ok() && submission->mapping)
      submission->mappings->add(*std::move(submission->mapping));
  }
};

class Recorder {
 public:
  explicit Recorder(size_t max_queued_bytes)
      : writer_({.max_queued_bytes = max_queued_bytes,
                 .idle =
                     [](void* mappings) {
                       return static_cast<PendingMappings*>(mappings)->write_when_due();
                     },
                 .idle_context = &mappings_}) {}

  // The last chance: whoever wants to hear of failures flushes before. A forked child has nothing
  // to say here, and its copies of the locks may be held for ever.
  ~Recorder() {
    if (::getpid() == pid_) flush();
  }

  void submit(const std::string& path, const Operand& operand, std::optional<Mapping> mapping) {
    if (path.find('\0') != std::string::npos)
      throw Raised{Error(ErrorCode::kUsage, path) << "the path holds a zero byte"};
    const TensorView view = operand.view();
    record::Job job;
    job.path = path.c_str();
    job.encoding = encoding_of(path);
    job.image = {static_cast<record::ElementType>(view.dtype), view.shape.data(), view.shape.size(),
                 view.data, view.bytes()};
    // A plain tensor that is too large for the queue is then written from where it is.
    if (!view.plain()) job.fill = &Submission::fill;
    job.done = &Submission::done;
    job.context = std::make_unique<Submission>(&mappings_, &view, std::move(mapping)).release();
    writer_.submit(job);
  }

  void flush() {
    writer_.flush();
    mappings_.write();
  }

  record::WriterCounters counters() const { return writer_.counters(); }

  // One sentence, of tensors rather than mappings if both have failed.
  std::optional<std::string> first_failure() const {
    const auto counters = writer_.counters();
    if (counters.first_failure.ok()) return mappings_.first_failure();
    return (Error(ErrorCode::kUnwritable, counters.first_failed_path)
            << "cannot " << counters.first_failure.step << ": "
            << system_message(counters.first_failure.error_number))
        .text();
  }

 private:
  const pid_t pid_ = ::getpid();
  PendingMappings mappings_;  // outlives the writer's thread
  record::Writer writer_;
};

using Entry = std::tuple<nb::bytes, nb::bytes, nb::bytes, nb::bytes>;

MappedPair pair_of(const Entry& entry) {
  const auto& [data_id, token_id, golden, actual] = entry;
  return {text_of(data_id), text_of(token_id), text_of(golden), text_of(actual)};
}

}  // namespace

void bind_recorder(nb::module_& module) {
  nb::class_<Recorder>(module, "Recorder")
      .def(nb::init<size_t>(), "max_queued_bytes"_a)
      .def(
          "submit",
          [](Recorder& self, const nb::bytes& path, const Operand& operand) {
            const std::string file = text_of(path);
            const nb::gil_scoped_release unlocked;
            self.submit(file, operand, std::nullopt);
          },
          "path"_a, "tensor"_a)
      .def(
          "submit_mapped",
          [](Recorder& self, const Operand& operand, const nb::bytes& folder, const Entry& entry) {
            Mapping mapping{text_of(folder), pair_of(entry)};
            const std::string file = mapping.pair.golden_path;
            const nb::gil_scoped_release unlocked;
            self.submit(file, operand, std::move(mapping));
          },
          "tensor"_a, "folder"_a, "entry"_a)
      .def("flush", &Recorder::flush, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("submitted", [](const Recorder& self) { return self.counters().submitted; })
      .def_prop_ro("written", [](const Recorder& self) { return self.counters().written; })
      .def_prop_ro("failed", [](const Recorder& self) { return self.counters().failed; })
      .def_prop_ro("bytes_written",
                   [](const Recorder& self) { return self.counters().bytes_written; })
      .def_prop_ro("first_failure", [](const Recorder& self) -> nb::object {
        const auto failure = self.first_failure();
        return failure ? decoded(*failure) : nb::none();
      });
  module.def(
      "add_to_metadata",
      [](const nb::bytes& folder, const std::vector<Entry>& entries) {
        std::vector<MappedPair> pairs;
        std::transform(entries.begin(), entries.end(), std::back_inserter(pairs), pair_of);
        const std::string golden_tensor = text_of(folder);
        const nb::gil_scoped_release unlocked;
        value_or_raise(capture::add_to_metadata(golden_tensor, pairs));
      },
      "folder"_a, "entries"_a);
}

}  // namespace ait::python
