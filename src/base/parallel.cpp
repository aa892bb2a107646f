#include "base/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <optional>

namespace ait {

size_t available_threads() { return static_cast<size_t>(tbb::this_task_arena::max_concurrency()); }

void with_threads(size_t threads, const std::function<void()>& body) {
  if (threads == 0) return body();
  // More threads than cores must be asked for twice: TBB caps its workers globally too.
  std::optional<tbb::global_control> raised;
  if (threads > available_threads())
    raised.emplace(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute(body);
}

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body) {
  if (threads == 1 || count <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  with_threads(threads, [&] {
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, count, 1),
        [&](const tbb::blocked_range<size_t>& range) {
          for (size_t i = range.begin(); i < range.end(); ++i) body(i);
        },
        tbb::simple_partitioner());
  });
}

size_t run_pipeline(size_t count, size_t in_flight, const Pipeline& pipeline) {
  size_t next = 0;
  size_t finished = 0;
  const auto feed = tbb::make_filter<void, size_t>(tbb::filter_mode::serial_in_order,
                                                   [&](tbb::flow_control& control) -> size_t {
                                                     if (next >= count || !pipeline.prepare(next)) {
                                                       control.stop();
                                                       return 0;
                                                     }
                                                     return next++;
                                                   });
  const auto work =
      tbb::make_filter<size_t, size_t>(tbb::filter_mode::parallel, [&](size_t item) -> size_t {
        pipeline.work(item);
        return item;
      });
  const auto drain =
      tbb::make_filter<size_t, void>(tbb::filter_mode::serial_in_order, [&](size_t item) {
        pipeline.finish(item);
        ++finished;
      });
  tbb::parallel_pipeline(in_flight, feed & work & drain);
  return finished;
}

}  // namespace ait
