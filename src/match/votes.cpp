#include "match/votes.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace ait::match {
namespace {

using capture::OpKind;

// The nearest has to be this much nearer than the next: corresponding tensors differ by rounding,
// and neighbours in the residual stream by a layer's work, which is more.
constexpr double kMargin = 0.5;

// Of the layers that vote, this part must agree.
constexpr double kMajority = 2.0 / 3.0;

// How one layer in one round votes.
class Voter {
 public:
  Voter(const MatchProblem& problem, const Evidence& evidence)
      : problem_(problem),
        evidence_(evidence),
        goldens_(static_cast<uint32_t>(problem.golden_classes.count())),
        actuals_(static_cast<uint32_t>(problem.actual_classes.count())) {}

  struct Vote {
    uint32_t golden;
    const Form* form;
    double distance() const { return form->distance.value; }
  };

  bool speaks_against(uint32_t golden, uint32_t actual) const {
    const Form* f = form(golden, actual);
    return f != nullptr && f->distance.value > kVotable;
  }

  // Which golden class a class of mine is, then others that are the same but for rounding; none
  // where the data do not tell it clearly.
  std::vector<Tally::Choice> choices_of(uint32_t actual) const {
    std::vector<Tally::Choice> out;
    const std::optional<Vote> vote = vote_on(actual);
    if (!vote) return out;
    out.push_back({vote->golden, vote->form});
    for (uint32_t g = 0; g < goldens_; ++g) {
      const Form* f = form(g, actual);
      if (g != vote->golden && f != nullptr && f->distance.value <= kVotable &&
          are_golden_kin(g, vote->golden))
        out.push_back({g, f});
    }
    return out;
  }

 private:
  std::optional<Vote> vote_on(uint32_t actual) const {
    std::optional<Vote> vote = nearest_golden(actual);
    if (!vote || !vote->form->distance.agrees() || vote->distance() > kVotable) return std::nullopt;
    const double next = settle_among_kin(actual, *vote);
    // Two that are not apart at all are as near as each other.
    const auto is_nearer_than = [&](double other) {
      return other > 0 && vote->distance() <= kMargin * other;
    };
    const bool is_clear = is_nearer_than(next) &&
                          is_nearer_than(nearest_other_actual(vote->golden, actual)) &&
                          nearest_part(vote->golden, actual) >= kMargin * vote->distance();
    return is_clear ? vote : std::nullopt;
  }

  uint32_t golden_value(uint32_t g) const { return problem_.golden_classes.members[g][0]; }
  uint32_t actual_value(uint32_t a) const { return problem_.actual_classes.members[a][0]; }
  const Evidence::PairFacts& facts(uint32_t g, uint32_t a) const {
    return evidence_.at(golden_value(g), actual_value(a));
  }
  // What is the same but for rounding though each does work of its own is no kin: it is a rival.
  bool are_golden_kin(uint32_t one, uint32_t other) const {
    return evidence_.golden_kin.are(golden_value(one), golden_value(other)) &&
           !do_own_work(problem_.golden, problem_.golden_classes, one, other);
  }
  bool are_actual_kin(uint32_t one, uint32_t other) const {
    return evidence_.actual_kin.are(actual_value(one), actual_value(other)) &&
           !do_own_work(problem_.actual, problem_.actual_classes, one, other);
  }
  static bool do_own_work(const SegmentSide& side, const ValueClasses& classes, uint32_t one,
                          uint32_t other) {
    for (const uint32_t x : classes.members[one])
      for (const uint32_t y : classes.members[other])
        if (side.values[x].is_output() && side.values[y].is_output() &&
            match::do_own_work(side.values[x], side.values[y]))
          return true;
    return false;
  }
  // Of two classes as wholes; nullptr where they have no form, or may not correspond.
  const Form* form(uint32_t g, uint32_t a) const {
    const auto& whole = facts(g, a).whole;
    return whole && any_member_is_allowed(g, a) && !only_turns(g, a) ? &*whole : nullptr;
  }

  // Whether my class is what turns queries and keys, and golden's a projection: for the first token
  // of a sequence they hold the same, and they are still not the same.
  bool only_turns(uint32_t g, uint32_t a) const {
    const auto& members = problem_.actual_classes.members[a];
    const Value& golden = problem_.golden.values[golden_value(g)];
    return golden.is_output() && golden.kind == OpKind::kLinear &&
           std::all_of(members.begin(), members.end(), [&](uint32_t value) {
             return problem_.actual.values[value].kind == OpKind::kRotary;
           });
  }

  bool any_member_is_allowed(uint32_t g, uint32_t a) const {
    for (const uint32_t actual : problem_.actual_classes.members[a])
      for (const uint32_t golden : problem_.golden_classes.members[g])
        if (problem_.is_allowed(golden, actual)) return true;
    return false;
  }

  std::optional<Vote> nearest_golden(uint32_t actual) const {
    std::optional<Vote> best;
    for (uint32_t g = 0; g < goldens_; ++g) {
      const Form* f = form(g, actual);
      if (f != nullptr && (!best || f->distance.value < best->distance())) best = Vote{g, f};
    }
    return best;
  }

  // Golden classes that are the same but for rounding are no rivals: a tensor and its cast, partial
  // sums and what adds them up. Of these, `vote` moves to the plainest. Returns how near the
  // nearest is that is no kin.
  double settle_among_kin(uint32_t actual, Vote& vote) const {
    double next = kNothingNear;
    for (uint32_t g = 0; g < goldens_; ++g) {
      const Form* f = form(g, actual);
      if (g == vote.golden || f == nullptr) continue;
      const Vote other{g, f};
      if (!are_golden_kin(g, vote.golden))
        next = std::min(next, other.distance());
      else if (is_plainer(other, vote, actual))
        vote = other;
    }
    return next;
  }

  // What does the same work, then what has as many rows, then what needs no putting together, then
  // the nearest.
  bool is_plainer(const Vote& one, const Vote& other, uint32_t actual) const {
    const OpKind work = problem_.actual.values[actual_value(actual)].kind;
    const auto rank = [&](const Vote& vote) {
      return std::tuple(problem_.golden.values[golden_value(vote.golden)].kind != work,
                        vote.form->fit == Fit::kLastRows,
                        vote.form->golden_ranks != vote.form->actual_ranks, vote.distance());
    };
    return rank(one) < rank(other);
  }

  // How near the golden class is to another of my classes that is no kin: the nearest has to be
  // mutual.
  double nearest_other_actual(uint32_t golden, uint32_t actual) const {
    double nearest = kNothingNear;
    for (uint32_t other = 0; other < actuals_; ++other)
      if (other != actual && form(golden, other) != nullptr && !are_actual_kin(actual, other))
        nearest = std::min(nearest, form(golden, other)->distance.value);
    return nearest;
  }

  // How near a part of something else is to either of the two. What a fused operation computes
  // agrees with its part much better than what is done to it afterwards: k_proj is exactly columns
  // 64 to 95 of a fused projection, and only nearly what the rotary embedding makes of it.
  double nearest_part(uint32_t golden, uint32_t actual) const {
    double nearest = kNothingNear;
    const auto look_at = [&](uint32_t g, uint32_t a) {
      if (const auto& part = facts(g, a).part) nearest = std::min(nearest, part->distance.value);
    };
    for (uint32_t g = 0; g < goldens_; ++g) look_at(g, actual);
    for (uint32_t a = 0; a < actuals_; ++a) look_at(golden, a);
    return nearest;
  }

  const MatchProblem& problem_;
  const Evidence& evidence_;
  uint32_t goldens_;
  uint32_t actuals_;
};

}  // namespace

void Tally::vote(const std::vector<Choice>& choices) {
  for (const Choice& choice : choices) {
    Candidate& candidate =
        candidates_.try_emplace(choice.number, Candidate{choice.number, 0, 0, 0, *choice.form})
            .first->second;
    if (choice.form->distance.value < candidate.form.distance.value) candidate.form = *choice.form;
    ++candidate.votes;
    if (&choice == choices.data()) ++candidate.first_choices;
  }
  ++total_;
}

const Tally::Candidate* Tally::winner() const {
  const auto best =
      std::max_element(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.second.votes, b.second.against, a.second.first_choices) <
               std::tuple(b.second.votes, a.second.against, b.second.first_choices);
      });
  if (best == candidates_.end() ||
      static_cast<double>(best->second.votes) < kMajority * static_cast<double>(total_))
    return nullptr;
  return &best->second;
}

std::vector<Tally> vote_on_wholes(const MatchProblem& problem) {
  std::vector<Tally> tallies(problem.actual_classes.count());
  for (const Evidence& evidence : problem.evidence) {
    const Voter voter(problem, evidence);
    for (uint32_t a = 0; a < tallies.size(); ++a)
      if (const auto choices = voter.choices_of(a); !choices.empty()) tallies[a].vote(choices);
  }
  // Where a residual is small, what it is added to and the sum are the same but for rounding. In
  // another layer they are not.
  for (const Evidence& evidence : problem.evidence) {
    const Voter voter(problem, evidence);
    for (uint32_t a = 0; a < tallies.size(); ++a)
      tallies[a].oppose([&](uint32_t golden) { return voter.speaks_against(golden, a); });
  }
  return tallies;
}

namespace {

// Whether two transforms take the same columns. What an expert made of two rows of 192 columns can be
// read as one row of 384 where there is one token, so that a period says the same as a width.
bool take_the_same(const Transform& one, const Transform& other) {
  const auto stretch = [](const Transform& of) { return of.period > 0 ? of.period : of.columns; };
  return one.first == other.first && one.taken == other.taken && stretch(one) == stretch(other) &&
         one.heads_first == other.heads_first && one.join == other.join;
}

}  // namespace

Tally vote_on_part(const MatchProblem& problem, uint32_t golden, uint32_t actual) {
  std::vector<Form> ways;
  const auto way_of = [&](const Form& part) {
    return std::find_if(ways.begin(), ways.end(), [&](const Form& way) {
      return take_the_same(way.golden, part.golden) && take_the_same(way.actual, part.actual) &&
             way.golden_ranks == part.golden_ranks && way.actual_ranks == part.actual_ranks;
    });
  };
  for (const Evidence& evidence : problem.evidence) {
    const auto& part = evidence.at(golden, actual).part;
    if (!part) continue;
    const auto way = way_of(*part);
    if (way == ways.end()) {
      ways.push_back(*part);
    } else if (part->golden.columns + part->actual.columns <
               way->golden.columns + way->actual.columns) {
      *way = *part;  // the rows as they lie
    }
  }
  Tally tally;
  for (const Evidence& evidence : problem.evidence) {
    const auto& part = evidence.at(golden, actual).part;
    if (!part) continue;
    const auto way = way_of(*part);
    way->distance = part->distance;
    tally.vote(static_cast<uint32_t>(way - ways.begin()), *way);
  }
  return tally;
}

}  // namespace ait::match
