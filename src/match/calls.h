// The calls of the model in a recorded run: prompts and new words, and in which round each lies.
//
// A torch run of a prompt and two new words has three calls in rounds 0, 1 and 2. A library with
// two graphs has the same calls in rounds 0 (prefill), 0 and 1 (decode).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "match/tokens.h"

namespace ait::match {

// One call of the model.
struct Call {
  size_t number;  // counted from 0, over prompts and new words
  bool is_prefill;
  size_t ordinal;  // counted from 0, among prompts or among new words
};

// Whether any rank has recorded something of a program in this round.
bool runs_in(const RunSide& side, size_t program, size_t round);

// Whether the programs of a run are graphs that count their rounds for themselves, prompts first. If
// not, a round says which of them ran in it.
bool count_for_themselves(const RunSide& side);

// The rounds of one run, to be asked by calls.
class Timeline {
 public:
  explicit Timeline(const RunSide& side);

  const RunSide& side() const { return side_; }
  // Which then count for themselves.
  bool has_two_graphs() const { return count_for_themselves(side_); }

  // Where a call lies if the run has it. A graph of its own counts its own calls, operations that
  // both graphs share count all.
  SideStep step_of(const Call& call) const;
  bool has(const SideStep& step) const;

  // All calls that were recorded. Of a run with one graph for everything, rounds with more tokens
  // than others are prompts.
  std::vector<Call> calls(const CountTokens& count) const;

 private:
  std::vector<Call> calls_of_one_graph(const CountTokens& count) const;
  std::vector<Call> calls_of_two_graphs() const;
  size_t round_numbered(size_t number) const;

  const RunSide& side_;
  std::map<size_t, size_t> rounds_;  // the number that a folder's name is, and its index
};

}  // namespace ait::match
