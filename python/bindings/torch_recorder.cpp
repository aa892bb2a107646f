#include "torch_recorder.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "operand.h"
#include "record/ledger.h"
#include "record/writer.h"
#include "report/number.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

std::string checked_path(const nb::bytes& path) {
  std::string text(path.c_str(), path.size());
  if (text.find('\0') != std::string::npos)
    throw Raised{Error(ErrorCode::kUsage, text) << "the path holds a zero byte"};
  return text;
}

// Under `ait llm dump` the counts are also kept where they outlive a process that is killed. One
// for each process, made at its first use; null if nobody will look.
record::Ledger* launchers_ledger() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static record::Ledger* ledger = nullptr;
  const char* folder = std::getenv("AIT_PROBE_SCRATCH");
  if (folder == nullptr || std::getenv("AIT_TORCH_DUMP_PATH") == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  if (const pid_t self = ::getpid(); owner != self) {
    owner = self;
    ledger = record::open_ledger(folder, static_cast<uint64_t>(self));
  }
  return ledger;
}

// What became of the files of one folder. Shared by the jobs that are still under way.
class Account {
 public:
  enum class Kind : uint8_t { kPrivate, kTensors, kRecords };

  explicit Account(Kind kind)
      : kind_(kind), ledger_(kind == Kind::kPrivate ? nullptr : launchers_ledger()) {}

  void submitted(uint64_t bytes) {
    ++submitted_;
    submitted_bytes_ += bytes;
    if (ledger_ == nullptr) return;
    if (kind_ == Kind::kTensors) record::add(ledger_->announced_bytes, bytes);
    record::add(kind_ == Kind::kTensors ? ledger_->announced : ledger_->records_announced, 1);
  }

  void finished(const char* path, record::WriteStatus status, uint64_t bytes) noexcept {
    if (ledger_ != nullptr) note(path, status, bytes);
    if (status.ok()) {
      written_bytes_ += bytes;
      ++written_;
      return;
    }
    if (failed_++ > 0) return;
    try {
      const std::string text =
          (Error(ErrorCode::kUnwritable, path)
           << "cannot " << status.step << ": " << system_message(status.error_number))
              .text();
      const std::lock_guard lock(mutex_);
      first_failure_ = text;
    } catch (...) {  // no memory for the words; the count stands
    }
  }

  uint64_t submitted_count() const { return submitted_; }
  uint64_t submitted_bytes() const { return submitted_bytes_; }
  uint64_t written() const { return written_; }
  uint64_t written_bytes() const { return written_bytes_; }
  uint64_t failed() const { return failed_; }
  std::optional<std::string> first_failure() const {
    const std::lock_guard lock(mutex_);
    return first_failure_;
  }

 private:
  void note(const char* path, record::WriteStatus status, uint64_t bytes) noexcept {
    const bool tensors = kind_ == Kind::kTensors;
    if (status.ok()) {
      if (tensors) record::add(ledger_->written_bytes, bytes);
      record::add(tensors ? ledger_->written : ledger_->records_written, 1);
      return;
    }
    if (tensors) record::add(ledger_->failed_bytes, bytes);
    record::add(tensors ? ledger_->failed : ledger_->records_failed, 1);
    record::note_failure(*ledger_, status.error_number, status.step, path);
  }

  const Kind kind_;
  record::Ledger* const ledger_;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> submitted_bytes_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> written_bytes_{0};
  std::atomic<uint64_t> failed_{0};
  mutable std::mutex mutex_;
  std::optional<std::string> first_failure_;
};

// Parts of one block of memory, lent until the writer has written them. The block is its maker's.
class LentMemory {
 public:
  LentMemory(uintptr_t address, size_t bytes)
      : address_(address), bytes_(bytes / kAlignment * kAlignment) {
    free_[0] = bytes_;
  }

  // Where in the block `bytes` bytes are free, or nothing if they are not at the moment.
  std::optional<size_t> reserve(size_t bytes) {
    const size_t wanted = rounded(bytes);
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const auto& part) { return part.second >= wanted; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found == free_.end()) return std::nullopt;
    const auto [offset, size] = *found;
    free_.erase(found);
    if (size > wanted) free_[offset + wanted] = size - wanted;
    return offset;
  }

  void give_back(size_t offset, size_t bytes) {
    size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + size == after->first) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        free_.erase(before);
      }
    }
    free_[offset] = size;
    ++returns_;
    returned_.notify_all();
  }

  // Waits for `give_back`, unless the writer holds nothing of the block.
  void wait() {
    std::unique_lock lock(mutex_);
    const uint64_t before = returns_;
    returned_.wait(lock, [&] { return returns_ != before || with_writer_ == 0; });
  }

  void count_with_writer(int change) {
    const std::lock_guard lock(mutex_);
    with_writer_ += change;
    returned_.notify_all();
  }

  const void* at(size_t offset) const { return reinterpret_cast<const void*>(address_ + offset); }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 256;  // what CUDA aligns its own memory to
  static size_t rounded(size_t bytes) {
    return (std::max(bytes, size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
  }

  const uintptr_t address_;
  const size_t bytes_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::map<size_t, size_t> free_;  // offset to size
  uint64_t returns_ = 0;
  int with_writer_ = 0;
};

// One writer and how much was given to it that it has not finished.
struct Lane {
  record::Writer writer;
  std::atomic<uint64_t> pending_bytes{0};

  explicit Lane(size_t max_queued_bytes) : writer({.max_queued_bytes = max_queued_bytes}) {}
};

// What a job needs until it is done.
struct Submission {
  std::shared_ptr<Account> account;
  Lane* lane;
  uint64_t bytes;
  const TensorView* view = nullptr;  // only while it is submitted
  std::shared_ptr<LentMemory> lent{};
  size_t offset = 0;

  static int fill(void* self, void* to) {
    const TensorView& tensor = *static_cast<Submission*>(self)->view;
    gather(tensor, 0, tensor.elements, static_cast<std::byte*>(to));
    return 0;
  }

  static void done(void* self, const char* path, record::WriteStatus status) {
    const std::unique_ptr<Submission> job(static_cast<Submission*>(self));
    job->account->finished(path, status, job->bytes);
    job->lane->pending_bytes -= job->bytes;
    if (!job->lent) return;
    job->lent->give_back(job->offset, job->bytes);
    job->lent->count_with_writer(-1);
  }
};

class TorchRecorder {
 public:
  TorchRecorder(size_t max_queued_bytes, size_t writers) {
    for (size_t i = 0; i < std::max(writers, size_t{1}); ++i)
      lanes_.push_back(std::make_unique<Lane>(max_queued_bytes / std::max(writers, size_t{1})));
  }

  TorchRecorder(const TorchRecorder&) = delete;
  TorchRecorder& operator=(const TorchRecorder&) = delete;

  // Copies the tensor unless it is larger than what may wait; then it is written before this
  // returns.
  void submit(std::shared_ptr<Account> account, const std::string& path, const Operand& operand) {
    const TensorView view = operand.view();
    record::Job job;
    job.path = path.c_str();
    job.encoding = record::Encoding::kTorch;
    job.image = image_of(view.dtype, view.shape, view.data, view.bytes());
    if (!view.plain()) job.fill = &Submission::fill;
    submit(job, idlest(),
           {.account = std::move(account), .lane = nullptr, .bytes = 0, .view = &view});
  }

  // Writes from memory that `lent` has reserved at `offset`, and gives it back.
  void submit_lent(std::shared_ptr<Account> account, const std::string& path,
                   std::shared_ptr<LentMemory> lent, size_t offset, DType dtype,
                   const Shape& shape) {
    const auto elements = count_elements(shape);
    if (!elements || *elements > lent->bytes() / size_bytes(dtype) ||
        offset > lent->bytes() - *elements * size_bytes(dtype))
      throw Raised{Error(ErrorCode::kUsage, path) << "the tensor is not inside the lent memory"};
    record::Job job;
    job.path = path.c_str();
    job.encoding = record::Encoding::kTorch;
    job.image = image_of(dtype, shape, lent->at(offset), *elements * size_bytes(dtype));
    job.borrowed = true;
    lent->count_with_writer(1);
    submit(job, idlest(),
           {.account = std::move(account),
            .lane = nullptr,
            .bytes = 0,
            .lent = std::move(lent),
            .offset = offset});
  }

  // A text file. Of several for one path the last wins: all go through one writer.
  void submit_text(std::shared_ptr<Account> account, const std::string& path,
                   const std::string& text) {
    record::Job job;
    job.path = path.c_str();
    job.encoding = record::Encoding::kBytes;
    job.image = {record::ElementType::kUInt8, nullptr, 0, text.data(), text.size()};
    submit(job, *lanes_.front(), {.account = std::move(account), .lane = nullptr, .bytes = 0});
  }

  void flush() {
    for (const auto& lane : lanes_) lane->writer.flush();
  }

 private:
  static record::TensorImage image_of(DType dtype, std::span<const int64_t> shape, const void* data,
                                      size_t bytes) {
    return {static_cast<record::ElementType>(dtype), shape.data(), shape.size(), data, bytes};
  }

  Lane& idlest() const {
    return **std::min_element(lanes_.begin(), lanes_.end(), [](const auto& one, const auto& other) {
      return one->pending_bytes < other->pending_bytes;
    });
  }

  static void submit(record::Job& job, Lane& lane, Submission submission) {
    submission.lane = &lane;
    submission.bytes = job.image.bytes;
    lane.pending_bytes += job.image.bytes;
    submission.account->submitted(job.image.bytes);
    job.done = &Submission::done;
    job.context = std::make_unique<Submission>(std::move(submission)).release();
    lane.writer.submit(job);
  }

  std::vector<std::unique_ptr<Lane>> lanes_;
};

nb::object optional_text(const std::optional<std::string>& text) {
  return text ? decoded(*text) : nb::none();
}

}  // namespace

void bind_torch_recorder(nb::module_& module) {
  nb::enum_<Account::Kind>(module, "AccountKind")
      .value("PRIVATE", Account::Kind::kPrivate)
      .value("TENSORS", Account::Kind::kTensors)
      .value("RECORDS", Account::Kind::kRecords);
  nb::class_<Account>(module, "Account")
      .def(nb::init<Account::Kind>(), "kind"_a = Account::Kind::kPrivate)
      .def_prop_ro("submitted", &Account::submitted_count)
      .def_prop_ro("submitted_bytes", &Account::submitted_bytes)
      .def_prop_ro("written", &Account::written)
      .def_prop_ro("written_bytes", &Account::written_bytes)
      .def_prop_ro("failed", &Account::failed)
      .def_prop_ro("first_failure",
                   [](const Account& self) { return optional_text(self.first_failure()); });
  nb::class_<LentMemory>(module, "LentMemory")
      .def(nb::init<uintptr_t, size_t>(), "address"_a, "bytes"_a)
      .def("reserve", &LentMemory::reserve, "bytes"_a)
      .def("give_back", &LentMemory::give_back, "offset"_a, "bytes"_a)
      .def("wait", &LentMemory::wait, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("bytes", &LentMemory::bytes);
  nb::class_<TorchRecorder>(module, "TorchRecorder")
      .def(nb::init<size_t, size_t>(), "max_queued_bytes"_a, "writers"_a)
      .def(
          "submit",
          [](TorchRecorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             const Operand& tensor) {
            const std::string file = checked_path(path);
            const nb::gil_scoped_release unlocked;
            self.submit(std::move(account), file, tensor);
          },
          "account"_a, "path"_a, "tensor"_a)
      .def(
          "submit_lent",
          [](TorchRecorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             std::shared_ptr<LentMemory> lent, size_t offset, std::string_view dtype,
             const Shape& shape) {
            const std::string file = checked_path(path);
            const DType type = dtype_named(dtype);
            const nb::gil_scoped_release unlocked;
            self.submit_lent(std::move(account), file, std::move(lent), offset, type, shape);
          },
          "account"_a, "path"_a, "lent"_a, "offset"_a, "dtype"_a, "shape"_a)
      .def(
          "submit_text",
          [](TorchRecorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             const nb::bytes& text) {
            const std::string file = checked_path(path);
            const std::string content(text.c_str(), text.size());
            const nb::gil_scoped_release unlocked;
            self.submit_text(std::move(account), file, content);
          },
          "account"_a, "path"_a, "text"_a)
      .def("flush", &TorchRecorder::flush, nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "note_round",
      [](uint64_t number, bool wanted) {
        record::Ledger* ledger = launchers_ledger();
        if (ledger == nullptr) return;
        record::add(ledger->rounds_asked, 1);
        if (wanted) record::add(ledger->rounds_wanted, 1);
        record::raise_to(ledger->highest_round, number);
      },
      "number"_a, "wanted"_a);
  module.def("note_end", [] {
    if (record::Ledger* ledger = launchers_ledger(); ledger != nullptr)
      __atomic_store_n(&ledger->ended, 1, __ATOMIC_RELEASE);
  });
  module.def("number_text", &report::number_text, "value"_a);
}

}  // namespace ait::python
