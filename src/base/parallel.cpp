#include "base/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <optional>

namespace ait {

size_t available_threads() {
  return static_cast<size_t>(tbb::this_task_arena::max_concurrency());
}

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body) {
  if (threads == 1 || count <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  // More threads than cores must be asked for twice: TBB caps its workers globally too.
  std::optional<tbb::global_control> raised;
  if (threads > available_threads())
    raised.emplace(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(threads == 0 ? tbb::task_arena::automatic : static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, count, 1),
        [&](const tbb::blocked_range<size_t>& range) {
          for (size_t i = range.begin(); i < range.end(); ++i) body(i);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace ait
