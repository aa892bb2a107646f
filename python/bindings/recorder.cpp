#include "recorder.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "account.h"
#include "errors.h"
#include "formats/write.h"
#include "lent_memory.h"
#include "operand.h"
#include "pending_mappings.h"
#include "record/known_files.h"
#include "record/repeat_file.h"
#include "record/writer.h"

namespace fs = std::filesystem;
namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using capture::MappedPair;

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

std::string checked_path(std::string path) {
  if (path.find('\0') != std::string::npos)
    throw Raised{Error(ErrorCode::kUsage, path) << "the path holds a zero byte"};
  return path;
}

record::Encoding encoding_of(const std::string& path) {
  switch (formats::file_format_of(path).value_or(formats::FileFormat::kSafetensors)) {
    case formats::FileFormat::kAtbBin:
      return record::Encoding::kAtbBin;
    case formats::FileFormat::kNpy:
      return record::Encoding::kNpy;
    case formats::FileFormat::kTorch:
      return record::Encoding::kTorch;
    case formats::FileFormat::kNpz:
    case formats::FileFormat::kSafetensors:
      break;
  }
  throw Raised{Error(ErrorCode::kUsage, path) << "the name must end in .bin, .npy, .pt or .pth"};
}

// One writer and how much was given to it that it has not finished.
struct Lane {
  record::Writer writer;
  std::atomic<uint64_t> pending_bytes{0};

  explicit Lane(const record::WriterOptions& options) : writer(options) {}
};

// What a job needs until it is done.
struct Submission {
  std::shared_ptr<Account> account;
  const TensorView* view = nullptr;  // only while it is submitted
  std::shared_ptr<LentMemory> lent{};
  size_t offset = 0;  // in the lent memory
  std::optional<Mapping> mapping{};
  // Set when it is submitted.
  PendingMappings* mappings = nullptr;
  Lane* lane = nullptr;
  uint64_t bytes = 0;

  static int fill(void* self, void* to) {
    const TensorView& tensor = *static_cast<Submission*>(self)->view;
    gather(tensor, 0, tensor.elements, static_cast<std::byte*>(to));
    return 0;
  }

  static void done(void* self, const char* path, record::WriteStatus status) {
    const std::unique_ptr<Submission> job(static_cast<Submission*>(self));
    job->account->finished(path, status, job->bytes);
    job->lane->pending_bytes -= job->bytes;
    if (job->mapping && status.ok()) job->mappings->add(*std::move(job->mapping));
    if (!job->lent) return;
    job->lent->give_back(job->offset, job->bytes);
    job->lent->count_with_writer(-1);
  }
};

// Work for when all that was submitted before is written. Every writer comes past it, waits there for the others, and
// then does as much of it as it gets.
class Afterwards {
 public:
  Afterwards(std::function<void()> work, size_t lanes)
      : work_(std::move(work)), lanes_left_(lanes) {}

  static void reached(void* self, const char*, record::WriteStatus) {
    const std::unique_ptr<std::shared_ptr<Afterwards>> held(
        static_cast<std::shared_ptr<Afterwards>*>(self));
    (*held)->come_past();
  }

 private:
  void come_past() {
    {
      std::unique_lock lock(mutex_);
      if (--lanes_left_ == 0) {
        all_there_.notify_all();
      } else {
        // A writer that has no thread works in the one that submits, for which the others would wait.
        if (std::this_thread::get_id() == submitter_) return;
        all_there_.wait(lock, [this] { return lanes_left_ == 0; });
      }
    }
    work_();
  }

  const std::function<void()> work_;
  const std::thread::id submitter_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable all_there_;
  size_t lanes_left_;
};

// A file that is to hold what an earlier one holds.
struct Repeat {
  std::shared_ptr<Account> account;
  std::string path;
  std::string first;
  uint64_t bytes;  // of the tensor

  void make() const {
    const auto status = record::repeat_file(first.c_str(), path.c_str());
    account->finished(path.c_str(), status, bytes);
  }
};

// The tensors of a round that nobody wants any more. Its folder is the recorder's own: {module}/ with
// files in it.
struct Removal {
  std::shared_ptr<Account> account;
  std::string folder;

  void remove() const {
    std::error_code error;
    for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
      std::error_code ignored;
      if (at->is_symlink(ignored) || !at->is_directory(ignored)) continue;
      remove_files(at->path());
      fs::remove(at->path(), ignored);  // unless there is a table in it
    }
  }

  void remove_files(const fs::path& module) const {
    std::error_code error;
    for (fs::directory_iterator at(module, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
      if (at->path().extension() != ".pth") continue;
      std::error_code ignored;
      const uintmax_t size = at->file_size(ignored);
      const uint64_t bytes = ignored ? 0 : size;
      account->removing(bytes);
      if (::unlink(at->path().c_str()) != 0) account->not_removed(bytes);
    }
  }
};

class Recorder {
 public:
  Recorder(size_t max_queued_bytes, size_t writers, bool links) {
    const size_t lanes = std::max(writers, size_t{1});
    for (size_t i = 0; i < lanes; ++i)
      lanes_.push_back(
          std::make_unique<Lane>(record::WriterOptions{.max_queued_bytes = max_queued_bytes / lanes,
                                                       .idle = &Recorder::write_mappings_when_due,
                                                       .idle_context = &mappings_,
                                                       .known = links ? &known_ : nullptr}));
  }

  // The last chance: whoever wants to hear of failures flushes before. A forked child has nothing
  // to say here, and its copies of the locks may be held for ever.
  ~Recorder() {
    if (::getpid() == pid_) flush();
  }

  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Copies the tensor unless it is larger than what may wait; then it is written before this
  // returns.
  void submit(std::shared_ptr<Account> account, const std::string& path, const Operand& operand) {
    submit_tensor(path, operand, idlest(), {.account = std::move(account)});
  }

  // Of several for one path the last wins, and its mapping: all go through one writer.
  void submit_mapped(std::shared_ptr<Account> account, const Operand& operand, Mapping mapping) {
    const std::string path = checked_path(mapping.pair.golden_path);
    submit_tensor(path, operand, *lanes_.front(),
                  {.account = std::move(account), .mapping = std::move(mapping)});
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
    job.encoding = encoding_of(path);
    job.image = image_of(dtype, shape, lent->at(offset), *elements * size_bytes(dtype));
    job.borrowed = true;
    lent->count_with_writer(1);
    submit(job, idlest(),
           {.account = std::move(account), .lent = std::move(lent), .offset = offset});
  }

  // A text file. Of several for one path the last wins: all go through one writer.
  void submit_text(std::shared_ptr<Account> account, const std::string& path,
                   const std::string& text) {
    record::Job job;
    job.path = path.c_str();
    job.encoding = record::Encoding::kBytes;
    job.image = {record::ElementType::kUInt8, nullptr, 0, text.data(), text.size()};
    submit(job, *lanes_.front(), {.account = std::move(account)});
  }

  // Each gets the bytes of its first file, when all that was submitted before is written.
  void submit_again(std::vector<Repeat> repeats) {
    for (const Repeat& repeat : repeats) repeat.account->submitted(repeat.bytes);
    const auto next = std::make_shared<std::atomic<size_t>>(0);
    do_afterwards([repeats = std::move(repeats), next] {
      for (size_t i = (*next)++; i < repeats.size(); i = (*next)++) repeats[i].make();
    });
  }

  // Takes the tensors below the folder of a round away, when all that was submitted before is
  // written.
  void remove_tensors(std::shared_ptr<Account> account, std::string folder) {
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    do_afterwards([removal = Removal{std::move(account), std::move(folder)}, begun] {
      if (!begun->exchange(true)) removal.remove();
    });
  }

  void flush() {
    for (const auto& lane : lanes_) lane->writer.flush();
    mappings_.write();
  }

  // The files are on their accounts.
  std::optional<std::string> first_mapping_failure() const { return mappings_.first_failure(); }
  uint64_t missing_mappings() const { return mappings_.missing(); }

 private:
  void do_afterwards(std::function<void()> work) {
    // All writers meet two of these in one order: otherwise each would wait for the other.
    const std::lock_guard lock(order_);
    const auto shared = std::make_shared<Afterwards>(std::move(work), lanes_.size());
    for (const auto& lane : lanes_) {
      record::Job job;
      job.path = "";
      job.encoding = record::Encoding::kNone;
      job.done = &Afterwards::reached;
      job.context = std::make_unique<std::shared_ptr<Afterwards>>(shared).release();
      lane->writer.submit(job);
    }
  }

  static int write_mappings_when_due(void* mappings) {
    return static_cast<PendingMappings*>(mappings)->write_when_due();
  }

  static record::TensorImage image_of(DType dtype, std::span<const int64_t> shape, const void* data,
                                      size_t bytes) {
    return {static_cast<record::ElementType>(dtype), shape.data(), shape.size(), data, bytes};
  }

  Lane& idlest() const {
    return **std::min_element(lanes_.begin(), lanes_.end(), [](const auto& one, const auto& other) {
      return one->pending_bytes < other->pending_bytes;
    });
  }

  void submit_tensor(const std::string& path, const Operand& operand, Lane& lane,
                     Submission submission) {
    const TensorView view = operand.view();
    record::Job job;
    job.path = path.c_str();
    job.encoding = encoding_of(path);
    job.image = image_of(view.dtype, view.shape, view.data, view.bytes());
    // A plain tensor that is too large for the queue is then written from where it is.
    if (!view.plain()) job.fill = &Submission::fill;
    submission.view = &view;
    submit(job, lane, std::move(submission));
  }

  void submit(record::Job& job, Lane& lane, Submission submission) {
    submission.mappings = &mappings_;
    submission.lane = &lane;
    submission.bytes = job.image.bytes;
    lane.pending_bytes += job.image.bytes;
    submission.account->submitted(job.image.bytes);
    job.done = &Submission::done;
    job.context = std::make_unique<Submission>(std::move(submission)).release();
    lane.writer.submit(job);
  }

  const pid_t pid_ = ::getpid();
  std::mutex order_;
  PendingMappings mappings_;  // outlives the writers' threads, as does what follows
  record::KnownFiles known_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

using Entry = std::tuple<nb::bytes, nb::bytes, nb::bytes, nb::bytes>;

MappedPair pair_of(const Entry& entry) {
  const auto& [data_id, token_id, golden, actual] = entry;
  return {text_of(data_id), text_of(token_id), text_of(golden), text_of(actual)};
}

nb::object optional_text(const std::optional<std::string>& text) {
  return text ? decoded(*text) : nb::none();
}

void bind_account(nb::module_& module) {
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
      .def_prop_ro("linked", &Account::linked)
      .def_prop_ro("linked_bytes", &Account::linked_bytes)
      .def_prop_ro("removed", &Account::removed)
      .def_prop_ro("removed_bytes", &Account::removed_bytes)
      .def_prop_ro("first_failure",
                   [](const Account& self) { return optional_text(self.first_failure()); });
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
}

}  // namespace

void bind_recorder(nb::module_& module) {
  bind_account(module);
  nb::class_<LentMemory>(module, "LentMemory")
      .def(nb::init<uintptr_t, size_t>(), "address"_a, "bytes"_a)
      .def("reserve", &LentMemory::reserve, "bytes"_a)
      .def("give_back", &LentMemory::give_back, "offset"_a, "bytes"_a)
      .def("wait", &LentMemory::wait, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("bytes", &LentMemory::bytes)
      .def_ro_static("alignment", &LentMemory::kAlignment);
  nb::class_<Recorder>(module, "Recorder")
      .def(nb::init<size_t, size_t, bool>(), "max_queued_bytes"_a, "writers"_a = 1,
           "links"_a = false)
      .def(
          "submit",
          [](Recorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             const Operand& tensor) {
            const std::string file = checked_path(text_of(path));
            const nb::gil_scoped_release unlocked;
            self.submit(std::move(account), file, tensor);
          },
          "account"_a, "path"_a, "tensor"_a)
      .def(
          "submit_mapped",
          [](Recorder& self, std::shared_ptr<Account> account, const Operand& tensor,
             const nb::bytes& folder, const Entry& entry) {
            Mapping mapping{text_of(folder), pair_of(entry)};
            const nb::gil_scoped_release unlocked;
            self.submit_mapped(std::move(account), tensor, std::move(mapping));
          },
          "account"_a, "tensor"_a, "folder"_a, "entry"_a)
      .def(
          "submit_lent",
          [](Recorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             std::shared_ptr<LentMemory> lent, size_t offset, std::string_view dtype,
             const Shape& shape) {
            const std::string file = checked_path(text_of(path));
            const DType type = dtype_named(dtype);
            const nb::gil_scoped_release unlocked;
            self.submit_lent(std::move(account), file, std::move(lent), offset, type, shape);
          },
          "account"_a, "path"_a, "lent"_a, "offset"_a, "dtype"_a, "shape"_a)
      .def(
          "submit_text",
          [](Recorder& self, std::shared_ptr<Account> account, const nb::bytes& path,
             const nb::bytes& text) {
            const std::string file = checked_path(text_of(path));
            const std::string content = text_of(text);
            const nb::gil_scoped_release unlocked;
            self.submit_text(std::move(account), file, content);
          },
          "account"_a, "path"_a, "text"_a)
      .def(
          "submit_again",
          [](Recorder& self,
             const std::vector<
                 std::tuple<std::shared_ptr<Account>, nb::bytes, nb::bytes, uint64_t>>& files) {
            std::vector<Repeat> repeats;
            for (const auto& [account, path, first, bytes] : files)
              repeats.push_back(
                  {account, checked_path(text_of(path)), checked_path(text_of(first)), bytes});
            const nb::gil_scoped_release unlocked;
            self.submit_again(std::move(repeats));
          },
          "files"_a)
      .def(
          "remove_tensors",
          [](Recorder& self, std::shared_ptr<Account> account, const nb::bytes& folder) {
            std::string path = checked_path(text_of(folder));
            const nb::gil_scoped_release unlocked;
            self.remove_tensors(std::move(account), std::move(path));
          },
          "account"_a, "folder"_a)
      .def("flush", &Recorder::flush, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("missing_mappings", &Recorder::missing_mappings)
      .def_prop_ro("first_mapping_failure", [](const Recorder& self) {
        return optional_text(self.first_mapping_failure());
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
