#include "account.h"

#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace ait::python {

record::Ledger* launchers_ledger() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static record::Ledger* ledger = nullptr;
  const char* folder = std::getenv("AIT_PROBE_SCRATCH");
  const bool asked =
      std::getenv("AIT_TORCH_DUMP_PATH") != nullptr || std::getenv("AIT_FX_DUMP_PATH") != nullptr;
  if (folder == nullptr || !asked) return nullptr;
  const std::lock_guard lock(mutex);
  if (const pid_t self = ::getpid(); owner != self) {
    owner = self;
    ledger = record::open_ledger(folder, static_cast<uint64_t>(self));
  }
  return ledger;
}

void Account::submitted(uint64_t bytes) {
  ++submitted_;
  submitted_bytes_ += bytes;
  if (ledger_ == nullptr) return;
  if (kind_ == Kind::kTensors) record::add(ledger_->announced_bytes, bytes);
  record::add(kind_ == Kind::kTensors ? ledger_->announced : ledger_->records_announced, 1);
}

void Account::finished(const char* path, record::WriteStatus status, uint64_t bytes) noexcept {
  if (ledger_ != nullptr) note(path, status, bytes);
  if (status.ok()) {
    if (status.linked) {
      linked_bytes_ += bytes;
      ++linked_;
    }
    written_bytes_ += bytes;
    ++written_;
    return;
  }
  if (failed_++ > 0) return;
  try {
    const std::string text = unwritable(path, status.step, status.error_number).text();
    const std::lock_guard lock(mutex_);
    first_failure_ = text;
  } catch (...) {  // no memory for the words; the count stands
  }
}

// Counted before it happens: a process that is killed in between has not lost a file, then.
void Account::removing(uint64_t file_bytes) noexcept {
  removed_bytes_ += file_bytes;
  ++removed_;
  if (ledger_ != nullptr && kind_ == Kind::kTensors) record::add(ledger_->removed, 1);
}

void Account::not_removed(uint64_t file_bytes) noexcept {
  removed_bytes_ -= file_bytes;
  --removed_;
  if (ledger_ != nullptr && kind_ == Kind::kTensors) record::add(ledger_->removed, ~uint64_t{0});
}

std::optional<std::string> Account::first_failure() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

void Account::note(const char* path, record::WriteStatus status, uint64_t bytes) noexcept {
  const bool tensors = kind_ == Kind::kTensors;
  if (status.ok()) {
    if (tensors) record::add(ledger_->written_bytes, bytes);
    if (status.replaced) record::add(tensors ? ledger_->replaced : ledger_->records_replaced, 1);
    record::add(tensors ? ledger_->written : ledger_->records_written, 1);
    return;
  }
  if (tensors) record::add(ledger_->failed_bytes, bytes);
  record::add(tensors ? ledger_->failed : ledger_->records_failed, 1);
  record::note_failure(*ledger_, status.error_number, status.step, path);
}

}  // namespace ait::python
