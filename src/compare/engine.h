// Compares any number of pairs on all cores and hands out their rows in order.
//
//   const std::atomic<bool> stop = false;
//   compare_pairs(pairs, Options(), stop, [&](Row&& row, uint64_t) {
//     const metrics::Comparison* c = metrics_of(row);
//     if (c != nullptr) worst = std::min(worst, c->cosine_similarity);
//   });
//
// tests/compare/example_test.cpp runs this example.
//
// Memory does not grow with the number or size of the tensors: files are mapped, and only a few
// pairs per thread are on their way at any time. Large files are asked for from the disk in the
// order of the pairs, ahead of the threads that read them; large tensors are shared among the
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "compare/measure.h"
#include "match/pair.h"

namespace ait::compare {

// `emit` is called from one thread at a time, in the order of the pairs, with the bytes of both
// tensors; `pairs.at` is called ahead of it from one thread at a time. A pair of files that hold
// several tensors gives a row for every name on either side; a pair without one of its sides gives
// a row with the reason. When `stop` becomes true the rows so far have been emitted and the
// function returns. Returns how many pairs were finished.
size_t compare_pairs(const match::Pairs& pairs, const Options& options,
                     const std::atomic<bool>& stop,
                     const std::function<void(Row&& row, uint64_t bytes)>& emit);

// The same; `emit` also hears which of the pairs a row is of.
size_t compare_numbered(const match::Pairs& pairs, const Options& options,
                        const std::atomic<bool>& stop,
                        const std::function<void(Row&& row, uint64_t bytes, size_t pair)>& emit);

// What is known of a pair of which nothing was read: who it is, and Pair::alone as the reason.
Row unread_row(const match::Pair& pair);

// The two tensors of a pair as they are compared: parts put together, rows chosen. Fails where a side
// cannot be read, or holds no data.
Result<std::pair<Tensor, Tensor>> load_pair(const match::Pair& pair);

}  // namespace ait::compare
