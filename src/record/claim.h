// The name under which a process keeps its folders in a dump: its pid, or, where another process has
// had that pid before (in an earlier run, or in another container that writes to the same dump), the
// pid with a number behind it.
//
//   const ProcessName name = claim_name("out/ait_dump", 4711, ".run_4700");
//   name.text;  // "4711", or "4711_1"
//
// A claim is a symbolic link that leads nowhere, {dump}/.claims/{name}: made at once or not at all,
// also by two at the same time, and without room on the disk. Its target says who the process is, so
// that a program which replaces itself goes on under its name. When the run has ended, its claims
// are taken away (dump/folders.h): then the folders themselves show which names are taken.
#pragma once

#include <cstdint>

namespace ait::record {

struct ProcessName {
  uint64_t number = 0;  // behind the pid; 0: none
  char text[48] = "";
};

ProcessName process_name(uint64_t pid, uint64_t number);

// `run` tells the runs that write to this dump apart. Where no claim can be made, as on file systems
// without symbolic links, a name without folders has to do. `dump` may be missing, and is made.
ProcessName claim_name(const char* dump, uint64_t pid, const char* run);

}  // namespace ait::record
