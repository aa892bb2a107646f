// What becomes of recorded files, counted for the manifest of a folder and, under `ait llm dump`,
// for the launcher.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "record/atomic_file.h"
#include "record/ledger.h"

namespace ait::python {

// Under `ait llm dump` the counts are also kept where they outlive a process that is killed. One
// for each process, made at its first use; null if nobody will look.
record::Ledger* launchers_ledger();

// What became of the files of one folder. Shared by the jobs that are still under way.
class Account {
 public:
  enum class Kind : uint8_t { kPrivate, kTensors, kRecords };

  explicit Account(Kind kind)
      : kind_(kind), ledger_(kind == Kind::kPrivate ? nullptr : launchers_ledger()) {}

  void submitted(uint64_t bytes);
  void finished(const char* path, record::WriteStatus status, uint64_t bytes) noexcept;
  // A file that was written is about to go, or after all has not.
  void removing(uint64_t file_bytes) noexcept;
  void not_removed(uint64_t file_bytes) noexcept;

  uint64_t submitted_count() const { return submitted_; }
  uint64_t submitted_bytes() const { return submitted_bytes_; }
  uint64_t written() const { return written_; }
  uint64_t written_bytes() const { return written_bytes_; }
  uint64_t failed() const { return failed_; }
  uint64_t linked() const { return linked_; }
  uint64_t linked_bytes() const { return linked_bytes_; }
  uint64_t removed() const { return removed_; }
  uint64_t removed_bytes() const { return removed_bytes_; }
  std::optional<std::string> first_failure() const;

 private:
  void note(const char* path, record::WriteStatus status, uint64_t bytes) noexcept;

  const Kind kind_;
  record::Ledger* const ledger_;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> submitted_bytes_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> written_bytes_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> linked_{0};
  std::atomic<uint64_t> linked_bytes_{0};
  std::atomic<uint64_t> removed_{0};
  std::atomic<uint64_t> removed_bytes_{0};  // of files, headers included
  mutable std::mutex mutex_;
  std::optional<std::string> first_failure_;
};

}  // namespace ait::python
