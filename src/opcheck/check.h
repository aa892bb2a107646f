// Every operation of a dump against its golden, on all cores, rows in the order of the cases.
//
//   auto cases = find_cases({.folder = folder});
//   if (!cases) return fail(cases.error());
//   const std::atomic<bool> stop = false;
//   check_cases(cases->cases, Options(), stop, [&](std::vector<CheckRow>&& rows) {
//     for (const CheckRow& row : rows) failed += row.verdict == Verdict::kFailed;
//   });
//
// tests/opcheck/example_test.cpp runs this example.
//
// Every case gives at least one row: of each output that was compared, or the reason why none was.
// This is the main header of `opcheck`; case.h finds the operations of a dump, row.h is what comes
// of them, rerun.h runs one again.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "opcheck/case.h"
#include "opcheck/measure.h"
#include "opcheck/row.h"

namespace ait::opcheck {

struct Options {
  Metrics metrics;
  size_t threads = 0;       // 0: all cores
  size_t memory_bytes = 0;  // all goldens at a time; 0: a quarter of what the machine has
};

// `emit` is called from one thread at a time, in the order of the cases. Returns how many cases
// were finished when `stop` became true.
size_t check_cases(const std::vector<Case>& cases, const Options& options,
                   const std::atomic<bool>& stop,
                   const std::function<void(std::vector<CheckRow>&& rows)>& emit);

// One of them, in the calling thread and those that the golden takes.
std::vector<CheckRow> check_case(const Case& each, const Metrics& metrics, size_t memory_bytes,
                                 size_t threads);

}  // namespace ait::opcheck
