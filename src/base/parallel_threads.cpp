// parallel.h on plain threads, in place of parallel.cpp where AIT_PLAIN_THREADS is set. For
// ThreadSanitizer: Debian's libtbb is not instrumented, so every hand-over of work through it looks
// like a race, and whatever hides those reports hides the real ones too. Simple, not fast; nested
// loops run in the thread that meets them.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"

namespace ait {
namespace {

thread_local size_t allowed_threads = 0;  // 0: all cores

size_t threads_for(size_t threads) {
  if (threads == 0) threads = allowed_threads;
  return threads == 0 ? available_threads() : threads;
}

// Runs `body` on `threads` threads, the calling one among them, and waits for all.
void on_each(size_t threads, const std::function<void()>& body) {
  const auto alone = [&] { with_threads(1, body); };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(alone);
  alone();
}

}  // namespace

size_t available_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

void with_threads(size_t threads, const std::function<void()>& body) {
  const size_t before = std::exchange(allowed_threads, threads == 0 ? allowed_threads : threads);
  body();
  allowed_threads = before;
}

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  on_each(std::min(count, threads_for(threads)), [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  });
}

size_t run_pipeline(size_t count, size_t in_flight, const Pipeline& pipeline) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t prepared = 0;
  size_t finished = 0;
  bool stopped = false;
  on_each(std::min(in_flight, threads_for(0)), [&] {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock,
                   [&] { return stopped || prepared == count || prepared - finished < in_flight; });
      if (stopped || prepared == count) return;
      stopped = !pipeline.prepare(prepared);
      if (stopped) return changed.notify_all();
      const size_t item = prepared++;
      lock.unlock();
      pipeline.work(item);
      lock.lock();
      changed.wait(lock, [&] { return finished == item; });
      pipeline.finish(item);
      ++finished;
      changed.notify_all();
    }
  });
  return finished;
}

}  // namespace ait
