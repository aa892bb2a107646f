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
// of them.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "opcheck/case.h"
#include "opcheck/row.h"

namespace ait::rerun {
class Runner;
}

namespace ait::opcheck {

struct Options {
  Metrics metrics;
  Precision precision = Precision::kAsRecorded;
  size_t threads = 0;               // 0: all cores
  size_t memory_bytes = 0;          // all goldens at a time; 0: a quarter of what the machine has
  rerun::Runner* runner = nullptr;  // runs operations again, in place of what was recorded of them
  std::string error_folder = {};    // where operations that fail are saved (save.h); empty: nowhere
};

// `emit` is called from one thread at a time, in the order of the cases. Returns how many cases
// were finished when `stop` became true.
//
// Goldens run side by side and share the memory. One that needs more than its share runs again
// alone and may have all of it; one that needs more than that is a row that says how much.
size_t check_cases(const std::vector<Case>& cases, const Options& options,
                   const std::atomic<bool>& stop,
                   const std::function<void(std::vector<CheckRow>&& rows)>& emit);

}  // namespace ait::opcheck
