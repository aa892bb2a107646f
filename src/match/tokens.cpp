#include "match/tokens.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace ait::match {
namespace {

using capture::Recording;

// More rounds of warming up than anybody needs.
constexpr size_t kMaxWarmUp = 4;

// Numbers of folders, by which rounds are counted.
std::optional<size_t> number_of(const std::string& name) {
  size_t number = 0;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (name.empty() || bad != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// The rounds of a side by number.
std::map<size_t, size_t> rounds_by_number(const Recording& recording) {
  std::map<size_t, size_t> out;
  for (size_t i = 0; i < recording.rounds.size(); ++i)
    if (const auto number = number_of(recording.rounds[i])) out.emplace(*number, i);
  // A round that was named alone may have any name.
  if (out.empty() && recording.rounds.size() == 1) out.emplace(0, 0);
  return out;
}

// An operation that only this program runs.
uint32_t witness(const Program& program) {
  for (const uint32_t top : program.tops)
    if (!program.is_shared(top)) return top;
  return program.tops.empty() ? capture::kNoOperation : program.tops.front();
}

// Whether any rank has something of the program in this round.
bool runs_in(const TokenSide& side, size_t program, size_t round) {
  const Program& p = side.programs[program];
  for (size_t rank = 0; rank < side.recording.ranks.size(); ++rank)
    for (const uint32_t top : p.tops)
      if (!p.is_shared(top) && side.recording.has_any(rank, round, top)) return true;
  return p.shared.size() == p.tops.size() && witness(p) != capture::kNoOperation;
}

// What one side has for the n-th prompt, the n-th new word, or the n-th call of either.
class Clock {
 public:
  Clock(const TokenSide& side) : side_(side), rounds_(rounds_by_number(side.recording)) {}

  bool is_split() const { return side_.programs.size() >= 2; }

  // `ordinal` counts the prompts, or the new words, from 0; `call` counts both together from 0.
  SideStep at(bool is_prefill, size_t ordinal, size_t call) const {
    SideStep step;
    if (is_split()) {
      step.program = is_prefill ? 0 : 1;
      step.round = find(ordinal);
    } else {
      step.round = find(call);
    }
    step.shared_round = find(call);
    return step;
  }

  bool has(const SideStep& step) const {
    return step.round != kNoRound && runs_in(side_, step.program, step.round);
  }

  size_t find(size_t number) const {
    const auto found = rounds_.find(number);
    return found == rounds_.end() ? kNoRound : found->second;
  }

  const std::map<size_t, size_t>& rounds() const { return rounds_; }
  const TokenSide& side() const { return side_; }

 private:
  const TokenSide& side_;
  std::map<size_t, size_t> rounds_;
};

// One call of the model: the how-manieth, and of which kind.
struct Call {
  size_t number;
  bool is_prefill;
  size_t ordinal;  // among its kind
};

// Calls of a run that has one graph for everything: rounds with more tokens than a decode step are
// prompts.
std::vector<Call> calls_of_one_graph(const Clock& clock, const CountTokens& count) {
  std::vector<std::pair<size_t, size_t>> tokens;  // number, tokens
  for (const auto& [number, round] : clock.rounds())
    tokens.emplace_back(number, count(clock.side(), {0, round, round}));
  size_t fewest = ~size_t{0};
  for (const auto& [number, n] : tokens)
    if (n > 0) fewest = std::min(fewest, n);
  std::vector<Call> calls;
  size_t prompts = 0;
  for (const auto& [number, n] : tokens) {
    // The first call is a prompt even if it is one word long.
    const bool is_prefill = number == 0 || (n > fewest && fewest > 0);
    // Calls that were not recorded in between are taken for new words.
    calls.push_back(
        {number, is_prefill, is_prefill ? prompts : number - std::min(number, prompts)});
    if (is_prefill) ++prompts;
    if (!is_prefill && prompts == 0) calls.back().ordinal = number > 0 ? number - 1 : 0;
  }
  return calls;
}

std::vector<Call> calls_of_two_graphs(const Clock& clock) {
  std::vector<Call> calls;
  size_t prompts = 0;
  for (const auto& [number, round] : clock.rounds())
    if (runs_in(clock.side(), 0, round)) calls.push_back({prompts++, true, number});
  const size_t before_words = std::max<size_t>(prompts, 1);
  for (const auto& [number, round] : clock.rounds())
    if (runs_in(clock.side(), 1, round)) calls.push_back({before_words + number, false, number});
  return calls;
}

class Aligner {
 public:
  Aligner(const TokenSide& golden, const TokenSide& actual, const CountTokens& count,
          const DataAgree& agree)
      : golden_(golden), actual_(actual), count_(count), agree_(agree) {}

  Alignment run() {
    // The side with one graph knows the order of all calls.
    calls_ = !golden_.is_split()   ? calls_of_one_graph(golden_, count_)
             : !actual_.is_split() ? calls_of_one_graph(actual_, count_)
                                   : calls_of_two_graphs(golden_);
    const bool calls_are_actual = golden_.is_split() && !actual_.is_split();
    const Clock& leading = calls_are_actual ? actual_ : golden_;
    const Clock& following = calls_are_actual ? golden_ : actual_;
    const auto follow = [&](const Call& call) { return offset_step(following, call); };
    const bool count_alike =
        golden_.is_split() == actual_.is_split() &&
        golden_.side().recording.traits.rounds == actual_.side().recording.traits.rounds;
    if (!count_alike) find_warm_up(leading, following, calls_are_actual);
    Alignment out;
    for (const Call& call : calls_) {
      const SideStep own = leading.at(call.is_prefill, call.ordinal, call.number);
      const SideStep other = follow(call);
      if (!leading.has(own) || !following.has(other)) continue;
      out.steps.push_back(
          step_of(call, calls_are_actual ? other : own, calls_are_actual ? own : other));
    }
    out.notes = std::move(notes_);
    return out;
  }

 private:
  Step step_of(const Call& call, const SideStep& golden, const SideStep& actual) const {
    Step step;
    step.golden = golden;
    step.actual = actual;
    step.is_prefill = call.is_prefill;
    const bool named = !golden_.is_split() && golden.round != kNoRound;
    step.token =
        named ? golden_.side().recording.rounds[golden.round] : std::to_string(call.number);
    return step;
  }

  SideStep offset_step(const Clock& clock, const Call& call) const {
    const size_t shift = call.is_prefill ? prompts_before_ : words_before_;
    return clock.at(call.is_prefill, call.ordinal + shift,
                    call.number + prompts_before_ + words_before_);
  }

  // Tries the first call of each kind against the following side's first rounds.
  void find_warm_up(const Clock& leading, const Clock& following, bool calls_are_actual) {
    for (const bool is_prefill : {true, false}) {
      const auto first = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
        return call.is_prefill == is_prefill &&
               leading.has(leading.at(call.is_prefill, call.ordinal, call.number));
      });
      if (first == calls_.end()) continue;
      if (!is_prefill && !following.is_split() && found_prompt_) continue;  // goes with the prompt
      size_t& shift = is_prefill ? prompts_before_ : words_before_;
      std::optional<size_t> fits;
      std::optional<size_t> agrees;
      for (size_t candidate = 0; candidate < kMaxWarmUp && !agrees; ++candidate) {
        shift = candidate;
        const SideStep own = leading.at(first->is_prefill, first->ordinal, first->number);
        const SideStep other = offset_step(following, *first);
        if (!following.has(other)) continue;
        const size_t n = count_(leading.side(), own);
        const size_t m = count_(following.side(), other);
        if (n != 0 && m != 0 && n != m) continue;
        if (!fits) fits = candidate;
        const auto data =
            agree_(step_of(*first, calls_are_actual ? other : own, calls_are_actual ? own : other));
        if (data && *data) agrees = candidate;
      }
      shift = agrees.value_or(fits.value_or(0));
      found_prompt_ |= is_prefill && agrees.has_value();
      if (shift > 0)
        notes_.push_back("the first " + std::to_string(shift) +
                         (is_prefill ? " prompt(s)" : " decode step(s)") + " of " +
                         (calls_are_actual ? "golden" : "my") +
                         " side are taken for a warm-up: the data agree from there on");
    }
  }

  Clock golden_;
  Clock actual_;
  const CountTokens& count_;
  const DataAgree& agree_;
  std::vector<Call> calls_;
  size_t prompts_before_ = 0;
  size_t words_before_ = 0;
  bool found_prompt_ = false;
  std::vector<std::string> notes_;
};

std::string names(const Recording& recording) {
  std::string out;
  for (size_t i = 0; i < recording.rounds.size() && i < 10; ++i)
    out += (out.empty() ? "" : ", ") + recording.rounds[i];
  return "[" + out + (recording.rounds.size() > 10 ? ", …]" : "]");
}

size_t round_named(const Recording& recording, const std::string& name) {
  const auto found = std::find(recording.rounds.begin(), recording.rounds.end(), name);
  return found == recording.rounds.end() ? kNoRound
                                         : static_cast<size_t>(found - recording.rounds.begin());
}

// As a person wrote it. Of a folder with two graphs the first token that is mapped to it gets the
// prompt, the second one the new word.
Result<Alignment> follow_map(const TokenSide& golden, const TokenSide& actual,
                             const TokenMap& map) {
  Alignment out;
  std::map<std::string, size_t> uses;
  for (const auto& [token, folder] : map) ++uses[folder];
  std::set<std::string> seen;
  for (const auto& [token, folder] : map) {
    Step step;
    step.token = token;
    step.golden.round = step.golden.shared_round = round_named(golden.recording, token);
    step.actual.round = round_named(actual.recording, folder);
    for (const auto& [side, round, name] :
         {std::tuple(&golden, step.golden.round, token), {&actual, step.actual.round, folder}})
      if (round == kNoRound)
        return fail(Error(ErrorCode::kUsage, side->recording.root)
                    << "has no round " << printable(name) << " as --token-map says, only "
                    << names(side->recording));
    step.actual.shared_round = round_named(actual.recording, token);
    if (step.actual.shared_round == kNoRound) step.actual.shared_round = step.actual.round;
    const bool first_use = seen.insert(folder).second;
    step.is_prefill = uses[folder] > 1 ? first_use : out.steps.empty() && token == "0";
    if (actual.programs.size() >= 2) {
      if (!runs_in(actual, 0, step.actual.round)) step.is_prefill = false;
      step.actual.program = step.is_prefill ? 0 : 1;
    }
    if (golden.programs.size() >= 2) step.golden.program = step.is_prefill ? 0 : 1;
    out.steps.push_back(std::move(step));
  }
  out.notes.emplace_back("tokens are aligned as --token-map says");
  return out;
}

}  // namespace

Result<TokenMap> parse_token_map(std::string_view text) {
  TokenMap map;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == entry.size())
      return fail(Error(ErrorCode::kUsage)
                  << "--token-map wants golden tokens and my folders as 0:1,1:1,2:2, not '"
                  << printable(entry) << "'");
    map.emplace_back(entry.substr(0, colon), entry.substr(colon + 1));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
  return map;
}

std::optional<size_t> round_of(const TokenSide& side, const SideStep& step, uint32_t operation) {
  const Program& program = side.programs[step.program];
  const size_t round =
      program.is_shared(top_of(side.recording, operation)) ? step.shared_round : step.round;
  if (round == kNoRound) return std::nullopt;
  return round;
}

Result<Alignment> align_tokens(const TokenSide& golden, const TokenSide& actual,
                               const TokenMap& map, const CountTokens& count,
                               const DataAgree& agree) {
  if (!map.empty()) return follow_map(golden, actual, map);
  Alignment out = Aligner(golden, actual, count, agree).run();
  // Two rounds that were named one by one are meant for each other.
  if (out.steps.empty() && golden.recording.rounds.size() == 1 &&
      actual.recording.rounds.size() == 1) {
    Step step;
    step.token = golden.recording.rounds[0];
    step.golden.round = step.golden.shared_round = 0;
    step.actual.round = step.actual.shared_round = 0;
    if (actual.programs.size() >= 2 && !runs_in(actual, 0, 0)) step.actual.program = 1;
    step.is_prefill = step.actual.program == 0;
    out.steps.push_back(std::move(step));
  }
  if (out.steps.empty())
    return fail(Error(ErrorCode::kUsage)
                << "my tokens is " << names(actual.recording) << " and golden tokens is "
                << names(golden.recording)
                << ". The two cannot be matched; say which belong together with --token-map");
  return out;
}

}  // namespace ait::match
