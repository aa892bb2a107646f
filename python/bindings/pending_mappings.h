// The entries of metadata.json (capture/manual_mapping.h) that belong to files a writer has just
// written.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/manual_mapping.h"

namespace ait::python {

// Where a pair is entered once its golden file is there.
struct Mapping {
  std::string folder;
  capture::MappedPair pair;
};

// Entries that wait for metadata.json. Each names a file that is there already, so that a process
// that dies at any moment leaves no entry without its file. Called by the writer's thread, which no
// exception may leave.
class PendingMappings {
 public:
  void add(Mapping&& mapping) noexcept;

  // As record::WriterOptions::idle wants it.
  int write_when_due() noexcept;

  void write() noexcept;

  std::optional<std::string> first_failure() const;

  // Entries that are in no metadata.json, because they wait or because writing them failed.
  uint64_t missing() const { return added_ - written_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Pairs = std::map<std::string, std::vector<capture::MappedPair>>;

  template <typename Work>
  void guarded(Work work) noexcept;

  void try_again_later(const std::string& folder, std::vector<capture::MappedPair>&& pairs,
                       const Error& error);

  std::mutex writing_;  // one at a time; taken before the other
  std::atomic<Clock::time_point> due_{Clock::time_point{}};
  std::atomic<uint64_t> added_{0};
  std::atomic<uint64_t> written_{0};
  mutable std::mutex mutex_;
  Pairs pairs_;
  std::optional<std::string> first_failure_;
};

}  // namespace ait::python
