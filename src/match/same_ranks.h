// Which ranks of two runs of the same operations are the same ones: `-device 1` leaves one rank of a
// run on several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capture/recording.h"
#include "match/tokens.h"

namespace ait::match {

// Golden's ranks and mine. Of runs on equally many ranks, each with its equal; else those with the
// same number.
std::vector<std::pair<size_t, size_t>> same_ranks(const capture::Recording& golden,
                                                  const capture::Recording& actual);

// Whether the tensors of such ranks are equally wide: parts of one run, each of which holds the same
// shards. One rank that computes everything is wider than one of two. `golden_of` is the golden
// operation of each of mine, kNoOperation where there is none.
bool are_equally_wide(const capture::Recording& golden, const capture::Recording& actual,
                      const std::vector<uint32_t>& golden_of,
                      const std::vector<std::pair<size_t, size_t>>& ranks);

// What to say where ranks of other numbers are compared, though the run is divided among ranks, which
// communicate; empty otherwise.
std::string doubt_about_ranks(const capture::Recording& golden, const capture::Recording& actual,
                              const std::vector<std::pair<size_t, size_t>>& ranks);

// Makes steps compare these ranks, and steps of their own of what the other ranks did.
void keep_to_ranks(const capture::Recording& golden, const capture::Recording& actual,
                   const std::vector<std::pair<size_t, size_t>>& ranks, Alignment& alignment);

}  // namespace ait::match
