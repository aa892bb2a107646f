#include "convert/watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "capture/listing.h"
#include "convert/statistics.h"

namespace ait::convert {
namespace {

// A file that is still not complete after so many passes is warned of.
constexpr size_t kPatience = 20;

// Disks write several files at once in the time of one. A folder is brought to the disk once for
// all of them.
constexpr size_t kWriters = 16;
constexpr size_t kJobsAtOnce = 256;

constexpr const char* kStopFile = "/.ait_convert_stop";
constexpr auto kInterval = std::chrono::milliseconds(500);
constexpr auto kNap = std::chrono::milliseconds(20);  // who asks to stop waits no longer than this

}  // namespace

// False for what is no regular file: links are left alone, whatever they lead to.
bool StatisticsConverter::stamp_of(const std::string& path, Stamp& stamp) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  constexpr int64_t kNanoseconds = 1'000'000'000;
  stamp = {static_cast<uint64_t>(status.st_size),
           status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
  return true;
}

bool StatisticsConverter::is_changed(const Job& job) {
  Stamp now;
  return stamp_of(job.path, now) && now != job.stamp;
}

Result<void> StatisticsConverter::changed(const Job& job) {
  return fail(Error(ErrorCode::kCorrupt, job.path) << "was changed while it was read");
}

// Leaves it to the caller to make the name of the new file durable and to delete the old one.
Result<void> StatisticsConverter::convert(Job& job) {
  // One that is there and is not older was made before this process was started.
  Stamp existing;
  if (stamp_of(job.target, existing) && existing.time >= job.stamp.time &&
      has_statistics(job.target))
    return {};
  std::unique_lock lock(measuring_);
  const auto statistics = Statistics::measure(job.path, job.target);
  lock.unlock();
  if (!statistics) return fail(statistics.error());
  if (is_changed(job)) return changed(job);
  if (auto done = statistics->write(job.target); !done) return done;
  // Changed in between, it would seem older than what was made of it.
  if (is_changed(job)) {
    ::unlink(job.target.c_str());
    return changed(job);
  }
  job.has_written = true;
  return {};
}

Result<void> StatisticsConverter::remove(const Job& job) {
  if (!options_.delete_source) return {};
  if (is_changed(job)) return changed(job);
  if (::unlink(job.path.c_str()) != 0 && errno != ENOENT)
    return fail(unwritable(job.path, "delete the file", errno));
  ++counts_.deleted;
  return {};
}

std::optional<StatisticsConverter::Job> StatisticsConverter::job_of(const std::string& path) {
  auto target = statistics_path(path, options_.kind);
  Stamp stamp;
  if (!target || !stamp_of(path, stamp)) return std::nullopt;
  const auto [place, is_new] = known_.try_emplace(path);
  State& state = place->second;
  const bool is_same = !is_new && state.stamp == stamp;
  if (!is_same) state = {stamp, 0, false};
  if (state.is_done || (options_.is_live && !is_same)) return std::nullopt;
  return Job{path, std::move(*target), stamp, false, {}};
}

// Jobs that a stop leaves undone are cut off.
void StatisticsConverter::convert_all(std::vector<Job>& jobs, const std::atomic<bool>& stop) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    while (!stop) {
      const size_t i = next++;
      if (i >= jobs.size()) return;
      jobs[i].done = convert(jobs[i]);
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(kWriters, jobs.size()); ++i) others.emplace_back(work);
    work();
  }
  jobs.resize(std::min<size_t>(next, jobs.size()));
  std::map<std::string, Result<void>> folders;
  for (Job& job : jobs) {
    const std::string folder = job.target.substr(0, job.target.rfind('/'));
    const auto [synced, is_new] = folders.try_emplace(folder);
    if (is_new) synced->second = sync_folder(folder);
    if (job.done) job.done = synced->second;
    if (job.done) job.done = remove(job);
  }
}

void StatisticsConverter::finish(const Job& job, const std::function<void(const Error&)>& warn) {
  if (job.has_written) ++counts_.converted;
  const auto place = known_.find(job.path);
  if (job.done && options_.delete_source) {
    known_.erase(place);
    return;
  }
  State& state = place->second;
  const size_t patience = options_.is_live ? kPatience : 1;
  state.is_done = job.done || ++state.attempts == patience;
  if (job.done || !state.is_done) return;
  ++counts_.left;
  warn(job.done.error());
}

Result<void> StatisticsConverter::pass(const std::atomic<bool>& stop,
                                       const std::function<void(const Error&)>& warn) {
  if (auto root = capture::list_folder(root_); !root) return fail(root.error());
  std::vector<Error> problems;  // folders that come and go while a dump is written
  const std::string files = capture::list_files(root_, problems);
  std::vector<Job> jobs;
  const auto convert_them = [&] {
    convert_all(jobs, stop);
    for (const Job& job : jobs) finish(job, warn);
    jobs.clear();
  };
  capture::each_file(files, [&](std::string_view file) {
    if (stop) return;
    if (auto job = job_of(root_ + "/" + std::string(file))) jobs.push_back(std::move(*job));
    if (jobs.size() == kJobsAtOnce) convert_them();
  });
  if (!stop) convert_them();
  return {};
}

Result<void> StatisticsConverter::run(const std::atomic<bool>& stop,
                                      const std::function<void(const Error&)>& warn) {
  std::error_code ignored;
  while (true) {
    if (auto done = pass(stop, warn); !done) return done;
    if (!options_.is_live || stop || std::filesystem::exists(root_ + kStopFile, ignored)) return {};
    const auto end = std::chrono::steady_clock::now() + kInterval;
    while (!stop && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kNap);
  }
}

}  // namespace ait::convert
