#include "match/tokens.h"

#include <algorithm>
#include <map>
#include <set>

#include "match/calls.h"

namespace ait::match {
namespace {

using capture::Recording;

// More rounds of warming up than anybody needs.
constexpr size_t kMaxWarmUp = 8;

// Lays the calls of one side, the leading one, upon the rounds of the other.
class Aligner {
 public:
  Aligner(const RunSide& golden, const RunSide& actual, const CountTokens& count,
          const DataAgree& agree)
      : golden_(golden),
        actual_(actual),
        // The side with one graph knows the order of all calls.
        golden_leads_(!golden_.has_two_graphs() || actual_.has_two_graphs()),
        leading_(golden_leads_ ? golden_ : actual_),
        following_(golden_leads_ ? actual_ : golden_),
        count_(count),
        agree_(agree) {}
  Aligner(const Aligner&) = delete;  // leading_ and following_ refer to its own members
  Aligner& operator=(const Aligner&) = delete;

  Alignment run() {
    calls_ = leading_.calls(count_);
    // Two runs that count alike warm up alike, too.
    const bool count_alike =
        golden_.has_two_graphs() == actual_.has_two_graphs() &&
        golden_.side().recording.traits.rounds == actual_.side().recording.traits.rounds;
    if (!count_alike) {
      const bool prompt_agrees = find_warm_up(true, kMaxWarmUp);
      // One graph for everything has its words right after its prompts. What warms up graphs for new
      // words alone are rounds that the other side does not have.
      if (following_.has_two_graphs() || !prompt_agrees)
        find_warm_up(false, prompt_agrees && prompts_before_ == 0 ? words_more() : kMaxWarmUp);
    }
    Alignment out;
    for (const Call& call : calls_) {
      const SideStep own = leading_.step_of(call);
      const SideStep other = following_step(call);
      if (!leading_.has(own)) continue;
      if (following_.has(other))
        out.steps.push_back(step_of(call, own, other));
      else
        add_alone(step_of(call, own, {}), golden_leads_, out);
    }
    add_rest_of_following(out);
    add_other_graphs(golden_, true, out);
    add_other_graphs(actual_, false, out);
    out.notes = std::move(notes_);
    return out;
  }

 private:
  Step step_of(const Call& call, const SideStep& own, const SideStep& other) const {
    Step step;
    step.golden = golden_leads_ ? own : other;
    step.actual = golden_leads_ ? other : own;
    step.is_prefill = call.is_prefill;
    step.number = static_cast<int64_t>(call.number);
    const bool named = !golden_.has_two_graphs() && step.golden.round != kNoRound;
    step.token =
        named ? golden_.side().recording.rounds[step.golden.round] : std::to_string(call.number);
    return step;
  }

  // Where the following side has a call of the leading one: later by what it did to warm up.
  SideStep following_step(const Call& call) const {
    const auto later = [](size_t number, int64_t by) { return number + static_cast<size_t>(by); };
    return following_.step_of(
        {later(call.number, prompts_before_ + words_before_), call.is_prefill,
         later(call.ordinal, call.is_prefill ? prompts_before_ : words_before_)});
  }

  static void add_alone(Step step, bool is_golden, Alignment& out) {
    const std::string other = is_golden ? "my-path" : "golden-path";
    step.alone = step.number < 0
                     ? "its round is taken for a warm-up, which " + other + " does not have."
                     : other + " has nothing of token " + step.token + ".";
    out.alone.push_back(std::move(step));
  }

  // What the following side did and the leading one did not.
  void add_rest_of_following(Alignment& out) const {
    std::set<std::pair<size_t, size_t>> used;  // program and round
    for (const Step& step : out.steps) {
      const SideStep& side = golden_leads_ ? step.actual : step.golden;
      used.emplace(side.program, side.round);
    }
    for (const Call& call : following_.calls(count_)) {
      const SideStep own = following_.step_of(call);
      if (!following_.has(own) || used.contains({own.program, own.round})) continue;
      Step step = step_of(call, {}, own);
      step.number -= prompts_before_ + words_before_;
      step.token = step.number < 0 ? "warm-up" : std::to_string(step.number);
      add_alone(std::move(step), !golden_leads_, out);
    }
  }

  // Graphs beside those for prompts and for new words: which call they belong to nobody knows.
  static void add_other_graphs(const Timeline& timeline, bool is_golden, Alignment& out) {
    const RunSide& side = timeline.side();
    if (!timeline.has_two_graphs()) return;
    for (size_t program = 2; program < side.programs.size(); ++program)
      for (size_t round = 0; round < side.recording.rounds.size(); ++round) {
        if (!runs_in(side, program, round)) continue;
        Step step;
        (is_golden ? step.golden : step.actual) = {program, round, round};
        step.token = side.recording.rounds[round];
        step.number = static_cast<int64_t>(round);
        step.alone =
            "it belongs to a third graph; only those for the prompt and for new tokens are paired.";
        out.alone.push_back(std::move(step));
      }
  }

  // How many new words the following side has more than the leading one.
  size_t words_more() const {
    const auto words = [](const std::vector<Call>& calls) {
      return static_cast<size_t>(std::count_if(calls.begin(), calls.end(),
                                               [](const Call& call) { return !call.is_prefill; }));
    };
    const size_t other = words(following_.calls(count_));
    const size_t own = words(calls_);
    return std::min(other - std::min(other, own), kMaxWarmUp);
  }

  // Finds how many prompts, or new words, the following side had before the leading one's first, at
  // most `most`: the first number with which both sides worked on the same, or else the first with
  // which they worked on equally many tokens. Returns whether it was the same.
  bool find_warm_up(bool is_prefill, size_t most) {
    const auto first = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
      return call.is_prefill == is_prefill && leading_.has(leading_.step_of(call));
    });
    if (first == calls_.end()) return false;
    int64_t& before = is_prefill ? prompts_before_ : words_before_;
    std::optional<int64_t> fits;
    std::optional<int64_t> agrees;
    for (before = 0; before <= static_cast<int64_t>(most) && !agrees; ++before) {
      const SideStep own = leading_.step_of(*first);
      const SideStep other = following_step(*first);
      if (!following_.has(other) || !may_be_as_many_tokens(own, other)) continue;
      if (!fits) fits = before;
      if (agree_(step_of(*first, own, other)).value_or(false)) agrees = before;
    }
    if (!agrees && !is_prefill && words_are_counted_from_0()) {
      words_before_ = -1;
      return true;
    }
    before = agrees.value_or(fits.value_or(0));
    if (before > 0) {
      notes_.push_back("the first " + std::to_string(before) +
                       (is_prefill ? " prompt(s)" : " decode step(s)") + " of " +
                       (golden_leads_ ? "my" : "the golden") +
                       " side are taken for a warm-up, because the " +
                       (agrees ? "data" : "numbers of tokens") + " agree from there on");
    }
    return agrees.has_value();
  }

  // Whether the following side has one graph because it recorded nothing of the prompt, whose graph
  // was another one: its round 1 is then the second new word, token 2.
  bool words_are_counted_from_0() {
    if (following_.has_two_graphs() ||
        following_.side().recording.traits.rounds != capture::Traits::Rounds::kSetUps)
      return false;
    words_before_ = -1;
    for (const Call& call : calls_) {
      const SideStep own = leading_.step_of(call);
      const SideStep other = following_step(call);
      if (!call.is_prefill && leading_.has(own) && following_.has(other))
        return may_be_as_many_tokens(own, other) &&
               agree_(step_of(call, own, other)).value_or(false);
    }
    return false;
  }

  bool may_be_as_many_tokens(const SideStep& own, const SideStep& other) const {
    const size_t n = count_(leading_.side(), own);
    const size_t m = count_(following_.side(), other);
    return n == 0 || m == 0 || n == m;
  }

  Timeline golden_;
  Timeline actual_;
  bool golden_leads_;
  const Timeline& leading_;
  const Timeline& following_;
  const CountTokens& count_;
  const DataAgree& agree_;
  std::vector<Call> calls_;     // of the leading side
  int64_t prompts_before_ = 0;  // warm-up of the following side
  int64_t words_before_ = 0;    // -1: it does not count the prompt
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

Error no_such_round(const Recording& recording, const std::string& name) {
  return Error(ErrorCode::kUsage, recording.root)
         << "has no round " << printable(name) << ", which --token-map names, only "
         << names(recording);
}

size_t program_for(const RunSide& side, size_t round, bool is_prefill) {
  if (count_for_themselves(side)) return is_prefill ? 0 : 1;
  return program_in(side.recording, side.programs, round);
}

// As a person wrote it. Of a folder that two tokens are mapped to, the first token is its prompt
// and the second one its new word.
Result<Alignment> follow_map(const RunSide& golden, const RunSide& actual, const TokenMap& map) {
  Alignment out;
  std::map<std::string, size_t> uses;
  for (const auto& [token, folder] : map) ++uses[folder];
  std::set<std::string> seen;
  for (const auto& [token, folder] : map) {
    Step step;
    step.token = token;
    step.golden.round = step.golden.shared_round = round_named(golden.recording, token);
    step.actual.round = round_named(actual.recording, folder);
    if (step.golden.round == kNoRound) return fail(no_such_round(golden.recording, token));
    if (step.actual.round == kNoRound) return fail(no_such_round(actual.recording, folder));
    // What both graphs share was set up for every token.
    step.actual.shared_round = round_named(actual.recording, token);
    if (step.actual.shared_round == kNoRound) step.actual.shared_round = step.actual.round;
    const bool first_use = seen.insert(folder).second;
    step.is_prefill = uses[folder] > 1 ? first_use : out.steps.empty() && token == "0";
    step.number = static_cast<int64_t>(out.steps.size());
    if (count_for_themselves(actual) && !runs_in(actual, 0, step.actual.round))
      step.is_prefill = false;
    step.actual.program = program_for(actual, step.actual.round, step.is_prefill);
    step.golden.program = program_for(golden, step.golden.round, step.is_prefill);
    out.steps.push_back(std::move(step));
  }
  out.notes.emplace_back("tokens are aligned as --token-map says");
  std::set<std::string> tokens;
  for (const auto& [token, folder] : map) tokens.insert(token);
  if (tokens.size() < golden.recording.rounds.size() ||
      uses.size() < actual.recording.rounds.size())
    out.notes.emplace_back("rounds that --token-map does not name are left out");
  return out;
}

// The only round of each side, whatever their names.
Step step_of_only_rounds(const RunSide& golden, const RunSide& actual) {
  Step step;
  step.token = golden.recording.rounds[0];
  step.golden.round = step.golden.shared_round = 0;
  step.actual.round = step.actual.shared_round = 0;
  if (count_for_themselves(actual) && !runs_in(actual, 0, 0)) step.actual.program = 1;
  step.is_prefill = step.actual.program == 0;
  return step;
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

std::optional<size_t> round_of(const RunSide& side, const SideStep& step, uint32_t operation) {
  const Program& program = side.programs[step.program];
  const size_t round =
      program.is_shared(top_of(side.recording, operation)) ? step.shared_round : step.round;
  if (round == kNoRound) return std::nullopt;
  return round;
}

Result<Alignment> align_tokens(const RunSide& golden, const RunSide& actual, const TokenMap& map,
                               const CountTokens& count, const DataAgree& agree, bool are_named) {
  if (!map.empty()) return follow_map(golden, actual, map);
  Alignment out = Aligner(golden, actual, count, agree).run();
  // The only rounds of both sides may have other numbers, but not where they worked on something
  // else.
  if (out.steps.empty() && golden.recording.rounds.size() == 1 &&
      actual.recording.rounds.size() == 1 &&
      (are_named || agree(step_of_only_rounds(golden, actual)).value_or(true))) {
    const Step& step = out.steps.emplace_back(step_of_only_rounds(golden, actual));
    std::erase_if(out.alone, [&](const Step& each) {
      const auto same = [](const SideStep& a, const SideStep& b) {
        return a.program == b.program && a.round == b.round;
      };
      return same(each.golden, step.golden) || same(each.actual, step.actual);
    });
  }
  if (out.steps.empty())
    return fail(Error(ErrorCode::kUsage)
                << "golden has the rounds " << names(golden.recording) << " and my side "
                << names(actual.recording)
                << ", but none of them correspond; say which belong together with --token-map "
                   "GOLDEN:MY");
  return out;
}

}  // namespace ait::match
