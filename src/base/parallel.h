// Loops over independent work on several threads.
//
//   parallel_for(chunks.size(), threads, [&](size_t i) { partials[i] = measure(chunks[i]); });
//
// Results must go to places that depend on the index alone, which keeps every answer the same for
// any thread count. Loops may stand inside loops: they share the threads of the outermost
// with_threads.
#pragma once

#include <cstddef>
#include <functional>

namespace ait {

// Cores this process may use (its affinity mask), at least 1.
size_t available_threads();

// Runs `body` so that the loops inside it use at most `threads` threads; 0 means all cores, or as
// many as an outer with_threads allows.
void with_threads(size_t threads, const std::function<void()>& body);

// Runs `body` once for each index, in no particular order; returns when all are done. `threads` as
// for with_threads; with 1 the loop runs in the calling thread.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body);

// An assembly line over `count` items: `prepare` and `finish` see every item in order, one at a
// time, `work` runs on several at once. At most `in_flight` items are between prepare and finish.
// Stops early, after finishing what was prepared, when `prepare` returns false; returns how many
// items were finished.
struct Pipeline {
  std::function<bool(size_t)> prepare;
  std::function<void(size_t)> work;
  std::function<void(size_t)> finish;
};
size_t run_pipeline(size_t count, size_t in_flight, const Pipeline& pipeline);

}  // namespace ait
