// Writes tables in a thread of its own, which needs neither the interpreter nor its lock.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "account.h"
#include "fused/table.h"

namespace ait::python::fused {

class TableWriter {
 public:
  // More tables than this do not wait: whoever submits does, until the disk has caught up.
  static constexpr size_t kMaxWaiting = 64;

  TableWriter() = default;
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  // Writes `folder`/statistics.csv, or one in the folder of each call. A table may be submitted again when it has grown.
  // The table has been marked (Table::mark_end).
  void submit(std::shared_ptr<Table> table, std::shared_ptr<Account> account, std::string folder,
              bool per_module);
  // Waits until everything submitted so far has been written.
  void flush();

 private:
  struct Job {
    std::shared_ptr<Table> table;
    Account* account;
    std::string folder;
    bool per_module;
  };

  static void* run(void* self);
  void work();
  static void write(const Job& job);

  const pid_t pid_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable came_;  // a job, or the end
  std::condition_variable done_;
  std::deque<Job> jobs_;
  // Kept: to let go of one takes the interpreter's lock, for which the thread is not to wait. There are few.
  std::vector<std::shared_ptr<Account>> accounts_;
  uint64_t submitted_ = 0;
  uint64_t finished_ = 0;
  bool runs_ = false;  // the thread
  bool left_ = false;  // it has ended, and is to be joined
  bool ending_ = false;
  pthread_t thread_{};
};

}  // namespace ait::python::fused
