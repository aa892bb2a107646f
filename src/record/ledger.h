// What a recording process says about itself, in a small file that it keeps mapped: whoever kills
// it, the numbers stay.
//
//   Ledger* ledger = open_ledger("out/.run/", getpid());     // in the recording process
//   add(ledger->announced, 1);
//   …
//   Ledger copy;                                             // in the launcher, afterwards
//   if (read_ledger("out/.run/4711.0.ledger", copy)) report(copy.announced, copy.written);
//
// announced = written + failed + what was still under way when the process ended. The layout is
// shared by two programs that are installed together. `magic` guards against a mixture: whoever
// changes the layout counts up the version in its last two characters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/place.h"

namespace ait::record {

struct Ledger {
  static constexpr uint64_t kMagic = 0x3530726764656c41;  // "Aledgr05"

  uint64_t magic = 0;
  uint64_t pid = 0;
  uint64_t incarnation = 0;  // the n of the file's name
  uint64_t shared = 0;       // 1: other processes can read it
  uint64_t name_number = 0;  // with which the process has its name in the dump (claim.h)
  uint64_t owns_times = 0;   // 1: cpu_profiling/{time of the run} is this process's

  Place place;  // who it is among those of its job

  // 1 once everything announced so far has been dealt with and the process is about to leave.
  uint64_t ended = 0;

  // Tensors that passed all filters and were to be stored; bytes are those of their files.
  uint64_t announced = 0;
  uint64_t announced_bytes = 0;
  uint64_t written = 0;
  uint64_t written_bytes = 0;
  uint64_t replaced = 0;  // of those written: they took the name of an earlier one
  uint64_t removed = 0;   // of those written: taken away again, as was asked for
  uint64_t failed = 0;
  uint64_t failed_bytes = 0;
  uint64_t skipped = 0;  // offered, but an input, output or device that was not asked for

  // Files beside the tensors (parameters, tiling, topologies), and lines of tables, statistics and
  // overflow reports.
  uint64_t records_announced = 0;
  uint64_t records_written = 0;
  uint64_t records_replaced = 0;
  uint64_t records_failed = 0;
  uint64_t lines_written = 0;
  uint64_t lines_failed = 0;
  uint64_t overflows = 0;

  // Why nothing was captured: how often the host asked whether an operation, and whether a round,
  // is wanted, and how often the answer was yes.
  uint64_t operations_asked = 0;
  uint64_t operations_wanted = 0;
  uint64_t rounds_asked = 0;
  uint64_t rounds_wanted = 0;
  uint64_t highest_round = 0;

  // Which elements of the lists of ids and of names have matched an operation: a bit for each, in the
  // order of the list, as far as they go.
  static constexpr size_t kMatchWords = 16;
  uint64_t ids_matched[kMatchWords] = {};
  uint64_t names_matched[kMatchWords] = {};

  // The first thing that went wrong; claimed by the thread that raises `failure_claimed` to 1, and
  // complete once `failure_number` is not 0.
  uint64_t failure_claimed = 0;
  uint64_t failure_number = 0;  // errno
  char failure_step[128] = "";  // words that follow "cannot …"
  char failure_path[3072] = "";
};

// Counters are changed by many threads and read by another process.
inline void add(uint64_t& counter, uint64_t amount) {
  __atomic_fetch_add(&counter, amount, __ATOMIC_RELAXED);
}
inline void raise_to(uint64_t& counter, uint64_t value) {
  uint64_t seen = __atomic_load_n(&counter, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(&counter, &seen, value, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// Notes a failure if it is the first; whether it was.
bool note_failure(Ledger& ledger, int error_number, const char* step, const char* path);

// Creates `{folder}/{pid}.{n}.ledger` with the first n that is free (a program that replaces itself
// keeps its pid), makes missing folders, and maps it for good. Where that is impossible, or
// `folder` is null, the ledger lives in this process only: never null. A disk without room then shows
// an empty file `{pid}.{n}.{errno}.no_ledger`.
Ledger* open_ledger(const char* folder, uint64_t pid);

// False where there is no such file or it is not a ledger of this version.
bool read_ledger(const char* path, Ledger& ledger);

}  // namespace ait::record
