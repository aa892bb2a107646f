// Loops over independent work on a chosen number of threads.
//
//   parallel_for(chunks.size(), threads, [&](size_t i) { partials[i] = measure(chunks[i]); });
//
// `body` runs once for each index, in no particular order; results must go to places that depend on the
// index alone, which keeps every answer the same for any thread count. Returns when all are done.
#pragma once

#include <cstddef>
#include <functional>

namespace ait {

// Cores this process may use (its affinity mask), at least 1.
size_t available_threads();

// threads == 0 means available_threads(); with 1 the loop runs in the calling thread.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body);

}  // namespace ait
