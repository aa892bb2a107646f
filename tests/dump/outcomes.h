// Outcomes of dumps as tests need them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dump/outcome.h"

namespace ait::dump {

// Ended in order.
inline RecordedProcess process(uint64_t pid, uint64_t announced, uint64_t written) {
  RecordedProcess out;
  out.pid = pid;
  out.name = std::to_string(pid);
  out.ended = true;
  out.counts.announced = announced;
  out.counts.written = written;
  out.counts.written_bytes = written * 100;
  out.counts.operations_asked = 4;
  out.counts.operations_wanted = 4;
  out.counts.rounds_asked = 4;
  out.counts.rounds_wanted = 4;
  return out;
}

inline Outcome outcome_of(std::vector<RecordedProcess> processes) {
  Outcome out;
  out.options.command = {"bash", "run.sh"};
  out.dump = "/out/ait_dump";
  out.end.run.processes = std::move(processes);
  return out;
}

}  // namespace ait::dump
