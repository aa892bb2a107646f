#include "fused/table_writer.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "record/atomic_file.h"
#include "record/dump_names.h"

namespace ait::python::fused {
namespace {

// Without work for so long the thread leaves: a process whose other threads have all ended would otherwise not end.
constexpr auto kIdle = std::chrono::milliseconds(200);

void write_text(Account& account, const std::string& path, const std::string& text) {
  account.submitted(text.size());
  const iovec part{const_cast<char*>(text.data()), text.size()};
  account.finished(path.c_str(), record::write_file(path.c_str(), &part, 1), text.size());
}

}  // namespace

TableWriter::~TableWriter() {
  if (::getpid() != pid_) return;  // a forked child has no such thread
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (!runs_ && !left_) return;
  }
  came_.notify_all();
  ::pthread_join(thread_, nullptr);
}

void TableWriter::submit(std::shared_ptr<Table> table, std::shared_ptr<Account> account,
                         std::string folder, bool per_module) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return jobs_.size() < kMaxWaiting; });
  jobs_.push_back({std::move(table), account.get(), std::move(folder), per_module});
  if (std::find(accounts_.begin(), accounts_.end(), account) == accounts_.end())
    accounts_.push_back(std::move(account));
  ++submitted_;
  if (!runs_) {
    if (left_) ::pthread_join(thread_, nullptr);
    left_ = false;
    // The host's signals are for the host's threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    runs_ = ::pthread_create(&thread_, nullptr, &TableWriter::run, this) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!runs_) {  // no thread is to be had: at once, then
      const Job job = std::move(jobs_.back());
      jobs_.pop_back();
      ++finished_;
      lock.unlock();
      write(job);
      return;
    }
  }
  came_.notify_one();
}

void TableWriter::flush() {
  std::unique_lock lock(mutex_);
  const uint64_t target = submitted_;
  done_.wait(lock, [&] { return finished_ >= target; });
}

void* TableWriter::run(void* self) {
  static_cast<TableWriter*>(self)->work();
  return nullptr;
}

void TableWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (jobs_.empty()) {
      const bool woken = came_.wait_for(lock, kIdle, [&] { return !jobs_.empty() || ending_; });
      if (jobs_.empty() && (ending_ || !woken)) break;
    }
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    write(job);
    job = {};
    lock.lock();
    ++finished_;
    done_.notify_all();
  }
  runs_ = false;
  left_ = true;
}

void TableWriter::write(const Job& job) {
  job.table->wait();
  const auto path_in = [](const std::string& folder) {
    return folder + "/" + record::kStatisticsFile;
  };
  if (!job.per_module) {
    write_text(*job.account, path_in(job.folder), job.table->text());
    return;
  }
  for (const auto& [place, text] : job.table->texts_per_module())
    write_text(*job.account, path_in(job.folder + "/" + place), text);
}

}  // namespace ait::python::fused
