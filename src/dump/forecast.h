// What a dump would cost, from a dry run that counted one round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "dump/options.h"

namespace ait::dump {

struct Forecast {
  uint64_t round_tensors = 0;
  uint64_t round_bytes = 0;
  uint64_t rounds_requested = 0;
  uint64_t rounds_reached = 0;  // of those requested

  // All reached rounds, if each is like the one that was counted.
  uint64_t tensors = 0;
  uint64_t bytes = 0;
  double seconds = 0;  // spent writing, by one process after another

  uint64_t free_bytes = 0;
  bool fits = true;
};

// How many different rounds the ranges hold, of those up to `last`.
uint64_t count_rounds(std::vector<Rounds> ranges, uint64_t last);

// `folder` lies on the disk in question; a few files of the average size are written there and
// removed. kUnwritable where even that fails.
Result<Forecast> forecast(const Options& options, uint64_t round_tensors, uint64_t round_bytes,
                          uint64_t highest_round, const std::string& folder);

}  // namespace ait::dump
