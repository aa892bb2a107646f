// Layers vote on who corresponds to whom. A fault makes the data of a layer, and of all that
// follow, differ or even look like something else's; a layer without it gives the right answer. So
// each layer and round that was looked at has one vote on every class of my side, and what a
// majority says holds for all layers of the same structure.
//
//     layer                  0      1      2      3, faulty   4
//     my class 7 votes for   q      q      q      -           k       q wins: 3 of 4 votes
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "match/forms.h"
#include "match/match_problem.h"

namespace ait::match {

// Further than anything is: unrelated tensors are about 1.4 apart.
inline constexpr double kNothingNear = 2;

// Further apart than this nothing is voted for. Keys before and after they are turned, or the same
// tensor of another token, are 0.3 and more apart: what is that far is something else, or so faulty
// that its data cannot tell what it is.
inline constexpr double kVotable = 0.2;

// Votes on one question.
class Tally {
 public:
  struct Candidate {
    uint32_t number;  // a golden class, or whatever else was voted on
    size_t votes = 0;
    size_t first_choices = 0;
    size_t against = 0;  // places where the data say that it is not this one
    Form form;           // the nearest of those that were voted for
  };

  // One vote, for several candidates where they cannot be told apart, the likeliest first.
  struct Choice {
    uint32_t number;
    const Form* form;
  };
  void vote(const std::vector<Choice>& choices);
  void vote(uint32_t number, const Form& form) { vote({{number, &form}}); }
  // Calls speaks_against(number) for each candidate.
  template <typename SpeaksAgainst>
  void oppose(const SpeaksAgainst& speaks_against) {
    for (auto& [number, candidate] : candidates_)
      if (speaks_against(number)) ++candidate.against;
  }

  size_t votes_for(uint32_t number) const {
    const auto found = candidates_.find(number);
    return found == candidates_.end() ? 0 : found->second.votes;
  }

  // The candidate that has two thirds of the votes; nullptr where none has.
  const Candidate* winner() const;

 private:
  std::map<uint32_t, Candidate> candidates_;
  size_t total_ = 0;
};

// [my class]: the votes for the golden class that it corresponds to, tensor against tensor.
std::vector<Tally> vote_on_wholes(const MatchProblem& problem);

// Votes for the columns at which a golden value is a part of mine, or mine of it.
Tally vote_on_part(const MatchProblem& problem, uint32_t golden, uint32_t actual);

}  // namespace ait::match
