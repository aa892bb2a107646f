// Which round of one run corresponds to which of the other.
//
// A torch run counts calls of the model: round 0 is the prompt, each further one a new word. Rounds
// of an acceleration library count set-ups of each operation: where prefill and decode are graphs
// of their own, round 0 holds the prompt and the first new word. A warm-up before the real work
// takes the first rounds. Shapes say which rounds are prompts, data say where the real work begins.
//
//     token      torch's round   a library's round, two graphs    the same after one warm-up
//     0 prefill  0               0, of the prefill graph          1
//     1 decode   1               0, of the decode graph           1
//     2 decode   2               1, of the decode graph           2
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"
#include "match/pair.h"
#include "match/program.h"

namespace ait::match {

inline constexpr size_t kNoRound = ~size_t{0};

// What one side did for a token.
struct SideStep {
  size_t program = 0;
  size_t round = kNoRound;         // of the program's own operations, an index into rounds
  size_t shared_round = kNoRound;  // of those that other programs run, too
  std::shared_ptr<const RowChoice> rows = {};  // null: all, as the other side has them
};

// What both sides did for a token.
struct Step {
  std::string token;
  SideStep golden;
  SideStep actual;
  bool is_prefill = false;
  bool phase_is_known = true;
  int64_t number = 0;  // of the call, to sort by; below 0: a warm-up
  std::string alone;   // why one of the sides has no round; empty where both have
  // Why numbers of the two sides have nothing in common, though both have a round; empty where they
  // have. Rows then say who corresponds to whom, and nothing is measured.
  std::string not_comparable;
  // Golden's ranks and mine that took part. Empty: all, each with its equal.
  std::vector<std::pair<size_t, size_t>> ranks;
  bool is_rank_alone = false;  // the other side has the round, but not this rank
};

struct Alignment {
  std::vector<Step> steps;
  std::vector<Step> alone;         // what only one side did
  std::vector<std::string> notes;  // what was decided, in sentences
};

// Golden's token and my folder, as a person wrote them.
using TokenMap = std::vector<std::pair<std::string, std::string>>;
Result<TokenMap> parse_token_map(std::string_view text);

// How many tokens a side worked on in a step, 0 where that is not known. `side` is one of the two
// objects that align_tokens was given.
using CountTokens = std::function<size_t(const RunSide& side, const SideStep& step)>;
// Whether the two sides worked on the same in a step; nothing where there are no data to tell it.
using DataAgree = std::function<std::optional<bool>(const Step& step)>;

// kUsage where no round of one side has a counterpart. Rounds that a map does not name are left out;
// without one every round of either side is in a step or stands alone. With `are_named` a person has
// named a round of each side, as a path: these two are meant for each other.
Result<Alignment> align_tokens(const RunSide& golden, const RunSide& actual, const TokenMap& map,
                               const CountTokens& count, const DataAgree& agree,
                               bool are_named = false);

// In which round an operation ran in a step; nothing where it did not.
std::optional<size_t> round_of(const RunSide& side, const SideStep& step, uint32_t operation);

}  // namespace ait::match
