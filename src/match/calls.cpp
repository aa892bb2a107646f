#include "match/calls.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace ait::match {
namespace {

using capture::Recording;

std::optional<size_t> number_of(const std::string& folder) {
  size_t number = 0;
  const char* end = folder.data() + folder.size();
  const auto [stopped, bad] = std::from_chars(folder.data(), end, number);
  if (folder.empty() || bad != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::map<size_t, size_t> rounds_by_number(const Recording& recording) {
  std::map<size_t, size_t> out;
  for (size_t i = 0; i < recording.rounds.size(); ++i)
    if (const auto number = number_of(recording.rounds[i])) out.emplace(*number, i);
  // A round that a person named alone may have any name.
  if (out.empty() && recording.rounds.size() == 1) out.emplace(0, 0);
  return out;
}

}  // namespace

bool runs_in(const RunSide& side, size_t program, size_t round) {
  const Program& p = side.programs[program];
  for (size_t rank = 0; rank < side.recording.ranks.size(); ++rank)
    for (const uint32_t top : p.tops)
      if (!p.is_shared(top) && side.recording.has_any(rank, round, top)) return true;
  // Nothing can tell when a program ran that has no operation of its own.
  return !p.tops.empty() && p.shared.size() == p.tops.size();
}

bool count_for_themselves(const RunSide& side) {
  return side.programs.size() >= 2 &&
         side.recording.traits.rounds == capture::Traits::Rounds::kSetUps;
}

Timeline::Timeline(const RunSide& side) : side_(side), rounds_(rounds_by_number(side.recording)) {}

size_t Timeline::round_numbered(size_t number) const {
  const auto found = rounds_.find(number);
  return found == rounds_.end() ? kNoRound : found->second;
}

SideStep Timeline::step_of(const Call& call) const {
  SideStep step;
  step.round = round_numbered(has_two_graphs() ? call.ordinal : call.number);
  if (has_two_graphs())
    step.program = call.is_prefill ? 0 : 1;
  else if (step.round != kNoRound && side_.programs.size() > 1)
    step.program = program_in(side_.recording, side_.programs, step.round);
  step.shared_round = round_numbered(call.number);
  return step;
}

bool Timeline::has(const SideStep& step) const {
  return step.round != kNoRound && runs_in(side_, step.program, step.round);
}

std::vector<Call> Timeline::calls(const CountTokens& count) const {
  return has_two_graphs() ? calls_of_two_graphs() : calls_of_one_graph(count);
}

std::vector<Call> Timeline::calls_of_one_graph(const CountTokens& count) const {
  std::vector<size_t> tokens;  // [round in rounds_]
  size_t fewest = ~size_t{0};
  for (const auto& [number, round] : rounds_) {
    tokens.push_back(
        count(side_, {program_in(side_.recording, side_.programs, round), round, round}));
    if (tokens.back() > 0) fewest = std::min(fewest, tokens.back());
  }
  std::vector<Call> calls;
  size_t prompts = 0;
  for (const auto& [number, round] : rounds_) {
    // The first call is a prompt even if it is one word long.
    const bool is_prefill = number == 0 || tokens[calls.size()] > fewest;
    // Calls in between that were not recorded are taken for new words, but the first for a prompt.
    const size_t ordinal = is_prefill ? prompts : number - std::max<size_t>(prompts, 1);
    calls.push_back({number, is_prefill, ordinal});
    if (is_prefill) ++prompts;
  }
  return calls;
}

std::vector<Call> Timeline::calls_of_two_graphs() const {
  std::vector<Call> calls;
  size_t prompts = 0;
  for (const auto& [number, round] : rounds_)
    if (runs_in(side_, 0, round)) calls.push_back({prompts++, true, number});
  // A prompt that was not recorded came before the first new word.
  const size_t before_words = std::max<size_t>(prompts, 1);
  for (const auto& [number, round] : rounds_)
    if (runs_in(side_, 1, round)) calls.push_back({before_words + number, false, number});
  return calls;
}

}  // namespace ait::match
