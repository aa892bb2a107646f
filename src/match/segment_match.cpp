#include "match/segment_match.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "match/by_types.h"
#include "match/match_problem.h"
#include "match/votes.h"

namespace ait::match {
namespace {

using capture::OpKind;

// Of all that were looked at, so many must vote for the winner: one layer among many that alone has
// a say may be mistaken.
constexpr double kFewestVotes = 1.0 / 3.0;

// Of two that take the same columns, or the same golden value, the right one is so much nearer.
constexpr double kClearlyNearer = 0.5;

// A part that few have seen has to be as near as rounding makes it, quantised weights included: an
// attention over two tokens may be 0.2 from the values of one of them.
constexpr double kClearPart = 0.05;

// So many values after one have to be known to tell that nothing is wrong before them.
constexpr size_t kEnoughAfter = 3;

// Data that are further apart than this make a pair likely and not certain. Rounding, quantised
// weights included, stays below it; a table of cosines and one for other positions do not.
constexpr double kCertain = 0.1;

Certainty certainty_of(const Form& form) {
  return form.distance.value <= kCertain ? Certainty::kCertain : Certainty::kLikely;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1g", value);
  return text;
}

class Matcher {
 public:
  Matcher(const SegmentSide& golden, const SegmentSide& actual, std::span<const Evidence> evidence,
          std::span<const TypeMapping> mappings)
      : problem_(golden, actual, evidence, mappings),
        golden_taken_(golden.values.size()),
        actual_taken_(actual.values.size()) {}

  SegmentMatch run(const SettledValues& settled) {
    for (const auto& [golden, actual] : settled) settle(golden, actual);
    match_wholes(settled);
    match_parts();
    match_sums();
    match_wrappers(settled);
    match_by_types();
    match_equal_results();
    SegmentMatch out = finish();
    std::erase_if(out.matches, [](const Match& match) { return match.why.empty(); });
    return out;
  }

 private:
  // It is known without a reason of this file's.
  void settle(uint32_t golden, uint32_t actual) {
    golden_taken_[golden] = true;
    actual_taken_[actual] = true;
    matches_.push_back({golden, std::nullopt, actual, {}, Certainty::kCertain, ""});
  }

  // A module around a settled one that puts out the same corresponds to the same.
  void match_wrappers(const SettledValues& settled) {
    const SegmentSide& side = problem_.actual;
    const auto operation_of = [&](uint32_t value) {
      return side.segment.operation_at(side.values[value].position);
    };
    for (const auto& [golden, actual] : settled) {
      if (!side.values[actual].is_output() ||
          !problem_.actual_classes.has_data[problem_.actual_classes.of[actual]])
        continue;
      const uint32_t inner = operation_of(actual);
      for (const uint32_t value : problem_.actual_classes.peers_of(actual)) {
        const uint32_t outer = operation_of(value);
        if (!actual_taken_[value] && side.values[value].is_output() && outer < inner &&
            inner < side.recording.operations[outer].end)
          add(golden, value, form_without_data(golden, actual), Certainty::kCertain,
              "it is around what corresponds by its name, and puts out the same");
      }
    }
  }

  // Whole tensors, as layers vote on them.
  void match_wholes(const SettledValues& settled) {
    std::vector<Tally> tallies = vote_on_wholes(problem_);
    drop_coincidences(tallies);
    const std::map<uint32_t, uint32_t> owners = owners_of_golden(tallies);
    for (uint32_t a = 0; a < tallies.size(); ++a) {
      const Tally::Candidate* winner = winner_of(tallies[a]);
      if (winner == nullptr) continue;
      const uint32_t owner = owners.at(winner->number);
      if ((owner != a && !may_share(owner, a)) || is_anothers(winner->number, a, settled)) continue;
      match_classes(winner->number, a, winner->form, "the data agree " + in_places(*winner),
                    certainty_of(winner->form));
    }
  }

  // Whether a golden class is known to be another one of mine, and the data say so: that one is
  // clearly nearer. What computes something else may come as near as rounding, such as a gradient to
  // which hardly anything is added. What only passes data on may be at fault.
  bool is_anothers(uint32_t golden_class, uint32_t actual_class,
                   const SettledValues& settled) const {
    const uint32_t value = problem_.actual_classes.members[actual_class][0];
    if (problem_.actual.values[value].kind == OpKind::kMove) return false;
    for (const auto& [golden, other] : settled) {
      if (problem_.golden_classes.of[golden] != golden_class ||
          problem_.actual_classes.of[other] == actual_class)
        continue;
      size_t known = 0;
      size_t nearer = 0;
      for (const Evidence& evidence : problem_.evidence) {
        const auto& own = evidence.at(golden, value).whole;
        const auto& others = evidence.at(golden, other).whole;
        if (!own || !others) continue;
        ++known;
        if (others->distance.value < kClearlyNearer * own->distance.value) ++nearer;
      }
      if (nearer > 0 && 2 * nearer >= known) return true;
    }
    return false;
  }

  const Tally::Candidate* winner_of(const Tally& tally) const {
    const Tally::Candidate* winner = tally.winner();
    return winner != nullptr && is_enough(winner->votes) ? winner : nullptr;
  }

  bool is_enough(size_t votes) const {
    return static_cast<double>(votes) >=
           kFewestVotes * static_cast<double>(problem_.evidence.size());
  }

  // What agrees in one round of a layer and not in another, where everything after it agrees, agreed
  // by coincidence: the turned queries of the first token, an attention that sees one token. A
  // fault would show in what follows.
  void drop_coincidences(std::vector<Tally>& tallies) {
    std::vector<const Tally::Candidate*> winners;
    winners.reserve(tallies.size());
    for (const Tally& tally : tallies) winners.push_back(winner_of(tally));
    follows_well_.assign(problem_.evidence.size(), {});
    begins_well_.assign(problem_.evidence.size(), {});
    for (size_t e = 0; e < problem_.evidence.size(); ++e) {
      bool is_well = true;  // as far as it is known
      for (uint32_t a = 0; a < actual_taken_.size(); ++a) {
        begins_well_[e].push_back(is_well);
        const uint32_t mine = problem_.actual_classes.of[a];
        if (winners[mine] != nullptr) is_well = is_near(e, winners[mine]->number, mine);
      }
      // [my value]: how many classes after it were voted on, and how many of them agree here.
      std::vector<std::pair<size_t, size_t>> after(actual_taken_.size() + 1);
      for (uint32_t a = static_cast<uint32_t>(actual_taken_.size()); a-- > 0;) {
        after[a] = after[a + 1];
        const uint32_t mine = problem_.actual_classes.of[a];
        if (problem_.actual_classes.members[mine][0] != a || winners[mine] == nullptr) continue;
        ++after[a].first;
        if (is_near(e, winners[mine]->number, mine)) ++after[a].second;
      }
      for (uint32_t a = 0; a < actual_taken_.size(); ++a)
        follows_well_[e].push_back(after[a + 1].first >= kEnoughAfter &&
                                   3 * after[a + 1].second >= 2 * after[a + 1].first);
    }
    for (uint32_t a = 0; a < tallies.size(); ++a) {
      if (winners[a] == nullptr) continue;
      const uint32_t golden = winners[a]->number;
      if (is_coincidence(problem_.actual_classes.members[a][0],
                         [&](size_t e) { return is_near(e, golden, a); }))
        tallies[a] = {};
    }
  }

  bool is_near(size_t e, uint32_t golden_class, uint32_t actual_class) const {
    const auto& whole = problem_.evidence[e]
                            .at(problem_.golden_classes.members[golden_class][0],
                                problem_.actual_classes.members[actual_class][0])
                            .whole;
    return whole && whole->distance.value <= kVotable;
  }

  // `agrees` says of a piece of evidence whether a value of mine agrees there with what it is taken
  // for.
  template <typename Agrees>
  bool is_coincidence(uint32_t actual, const Agrees& agrees) const {
    const auto has_data = [&](size_t e) {
      return problem_.evidence[e].actual[actual].content != 0;
    };
    for (size_t e = 0; e < problem_.evidence.size(); ++e) {
      const std::optional<size_t> layer = problem_.evidence[e].layer;
      if (!layer || !has_data(e) || agrees(e) || !follows_well_[e][actual]) continue;
      for (size_t other = 0; other < problem_.evidence.size(); ++other)
        if (problem_.evidence[other].layer == layer && agrees(other)) return true;
    }
    return false;
  }

  // [golden class]: of my classes that layers took for it, the one that most layers did.
  std::map<uint32_t, uint32_t> owners_of_golden(const std::vector<Tally>& tallies) const {
    std::map<uint32_t, uint32_t> owners;
    for (uint32_t a = 0; a < tallies.size(); ++a) {
      const Tally::Candidate* winner = winner_of(tallies[a]);
      if (winner == nullptr) continue;
      const auto [owner, is_new] = owners.try_emplace(winner->number, a);
      if (!is_new && winner_of(tallies[owner->second])->votes < winner->votes) owner->second = a;
    }
    return owners;
  }

  // Whether two of my classes may correspond to the same golden one. They are kin then: partial
  // sums and the all-reduce that adds them up. But two operations that compute have results of
  // their own; where these are the same, one of the two is at fault.
  bool may_share(uint32_t a, uint32_t b) const {
    const auto& members = problem_.actual_classes.members;
    const auto is_work = [&](uint32_t value) { return is_computed(problem_.actual.values[value]); };
    const bool both_work = std::any_of(members[a].begin(), members[a].end(), is_work) &&
                           std::any_of(members[b].begin(), members[b].end(), is_work);
    return !both_work && std::any_of(problem_.evidence.begin(), problem_.evidence.end(),
                                     [&](const Evidence& evidence) {
                                       return evidence.actual_kin.are(members[a][0], members[b][0]);
                                     });
  }

  // "(0.0004) in 10 of 10 places looked at"
  std::string in_places(const Tally::Candidate& winner) const {
    const size_t all = problem_.evidence.size();
    return "(" + number(winner.form.distance.value) + ") in " + std::to_string(winner.votes) +
           " of " + std::to_string(all) + (all == 1 ? " place" : " places") + " looked at";
  }

  // Matches the members of two classes. My leaves go with the golden value that is shown, what
  // contains them with what contains that, from the inside out:
  //
  //     my side  2_Mlp             goes with   golden  mlp
  //                2_Linear        goes with             mlp.down_proj
  //                3_AllReduce     goes with             mlp.down_proj
  void match_classes(uint32_t golden_class, uint32_t actual_class, const Form& form,
                     const std::string& why, Certainty certainty) {
    const auto& goldens = problem_.golden_classes.members[golden_class];
    const uint32_t shown = shown_member_of(problem_.golden, goldens);
    const auto& actuals = problem_.actual_classes.members[actual_class];
    bool has_worker = false;
    std::vector<uint32_t> containers;  // outer ones first
    for (const uint32_t value : actuals) {
      const bool works = is_computed(problem_.actual.values[value]);
      // What goes into a module is what the last of several has made, whatever was before it.
      if (works && !problem_.golden.values[shown].is_output() && has_worker_after(actuals, value))
        continue;
      const std::vector<uint32_t> equals = equals_of(value, actuals);
      if (actual_taken_[value]) {
        has_worker |= works;
      } else if (!problem_.actual.values[value].is_leaf) {
        containers.push_back(value);
      } else if (turns_projection(shown, value)) {
        continue;
      } else if (equals.size() > 1 || (works && golden_workers_like(value, goldens).size() > 1)) {
        match_equals(value, equals, golden_workers_like(value, goldens), form, why);
      } else if (!works || !has_worker) {  // as in may_share, one of two that compute is at fault
        has_worker |= works;
        add(shown, value, form_of(shown, value, form), certainty, why);
      }
    }
    std::vector<uint32_t> golden_containers;
    for (const uint32_t value : goldens)
      if (problem_.golden.values[value].is_output() && !problem_.golden.values[value].is_leaf)
        golden_containers.push_back(value);
    for (; !containers.empty(); containers.pop_back()) {
      const uint32_t golden = golden_containers.empty() ? shown : golden_containers.back();
      add(golden, containers.back(), form_of(golden, containers.back(), form), certainty, why);
      if (!golden_containers.empty()) golden_containers.pop_back();
    }
  }

  // Of members of a class of mine, those whose results should differ from one of them's, itself
  // included: what computes the same way, or what else its operation puts out.
  std::vector<uint32_t> equals_of(uint32_t value, const std::vector<uint32_t>& members) const {
    const Value& one = problem_.actual.values[value];
    std::vector<uint32_t> out;
    for (const uint32_t member : members) {
      const Value& other = problem_.actual.values[member];
      const bool is_rival =
          is_computed(one) ? do_own_work(one, other) : one.position == other.position;
      if (member == value || (is_rival && other.is_leaf && other.is_output()))
        out.push_back(member);
    }
    return out;
  }

  // Of members of a golden class, what does the work whose result my value is.
  std::vector<uint32_t> golden_workers_like(uint32_t actual,
                                            const std::vector<uint32_t>& members) const {
    const Value& mine = problem_.actual.values[actual];
    std::vector<uint32_t> out;
    for (const uint32_t member : members) {
      const Value& value = problem_.golden.values[member];
      if (value.is_leaf && value.is_output() && is_computed(value) &&
          (value.kind == mine.kind || !is_computed(mine)))
        out.push_back(member);
    }
    return out;
  }

  // Two projections with the same results, on both sides: order tells who is who. Where one side has
  // fewer of them, one of the other's is at fault, and the data do not say which.
  void match_equals(uint32_t value, const std::vector<uint32_t>& equals,
                    const std::vector<uint32_t>& goldens, const Form& form,
                    const std::string& why) {
    if (equals.size() != goldens.size()) return;
    const auto place = std::find(equals.begin(), equals.end(), value) - equals.begin();
    const uint32_t golden = goldens[static_cast<size_t>(place)];
    add(golden, value, form_of(golden, value, form), Certainty::kLikely,
        why + "; " + std::to_string(equals.size()) + " of each side hold that, in this order");
  }

  bool has_worker_after(const std::vector<uint32_t>& members, uint32_t value) const {
    return std::any_of(members.begin(), members.end(), [&](uint32_t other) {
      return other > value && is_computed(problem_.actual.values[other]);
    });
  }

  // Queries that are turned are no longer what the projection made, also where the first token's
  // are the same.
  bool turns_projection(uint32_t golden, uint32_t actual) const {
    const Value& projection = problem_.golden.values[golden];
    return problem_.actual.values[actual].kind == OpKind::kRotary && projection.is_output() &&
           projection.kind == OpKind::kLinear;
  }

  void add(uint32_t golden, uint32_t actual, const Form& form, Certainty certainty,
           const std::string& why) {
    const auto allowed = problem_.allowed_peer(golden, actual);
    if (!allowed) return;
    golden_taken_[*allowed] = true;
    actual_taken_[actual] = true;
    const bool is_mapped = problem_.is_mapped(*allowed, actual);
    const std::string file = "the mapping file";
    matches_.push_back({*allowed, std::nullopt, actual, form, certainty,
                        is_mapped && why.find(file) == std::string::npos
                            ? why + "; " + file + " lists the two types"
                            : why});
  }

  // In which form two members of classes are the same whose classes are so in `voted`: members hold
  // the same data, but not in the same shape. Most of the evidence decides. A round of one token
  // cannot tell where heads stand, so a form that moves them counts for more than one that does not.
  Form form_of(uint32_t golden, uint32_t actual, const Form& voted) const {
    struct Way {
      Form form;
      size_t count = 0;
      bool moves_heads() const { return form.golden.heads_first || form.actual.heads_first; }
    };
    std::vector<Way> ways;
    bool has_last_rows = voted.fit == Fit::kLastRows;
    for (const Evidence& evidence : problem_.evidence) {
      const auto& whole = evidence.at(golden, actual).whole;
      if (!whole || !whole->distance.agrees()) continue;
      has_last_rows |= whole->fit == Fit::kLastRows;
      auto way = std::find_if(ways.begin(), ways.end(),
                              [&](const Way& other) { return other.form.same_way(*whole); });
      if (way == ways.end()) way = ways.insert(way, {*whole, 0});
      ++way->count;
      if (whole->distance.value < way->form.distance.value) way->form = *whole;
    }
    if (ways.empty()) return voted;
    Form out = std::max_element(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
                 return std::pair(a.moves_heads(), a.count) < std::pair(b.moves_heads(), b.count);
               })->form;
    // The prompt has a row for each token, a new word one that is its own last.
    if (has_last_rows && out.fit == Fit::kNone) out.fit = Fit::kLastRows;
    return out;
  }

  // One side is a part of the other: fused projections. A value of my side may hold several.
  void match_parts() {
    std::vector<Match> parts;
    for (uint32_t a = 0; a < actual_taken_.size(); ++a) {
      // A cache holds all that was ever computed. Where my side's value has a partner as a whole,
      // parts would only say the same again.
      if (!stands_for_class(problem_.actual, problem_.actual_classes, a) ||
          problem_.actual.values[a].kind == OpKind::kCache || has_whole(a))
        continue;
      for (uint32_t g = 0; g < golden_taken_.size(); ++g) {
        if (!stands_for_class(problem_.golden, problem_.golden_classes, g) ||
            is_coincidence(
                a, [&](size_t e) { return problem_.evidence[e].at(g, a).part.has_value(); }))
          continue;
        const Tally tally = vote_on_part(problem_, g, a);
        const Tally::Candidate* winner = tally.winner();
        if (winner == nullptr || !have_seen_enough(*winner, a)) continue;
        parts.push_back({g, std::nullopt, a, winner->form, certainty_of(winner->form),
                         "a part of it agrees " + in_places(*winner)});
      }
    }
    for (const Match& part : parts)
      if (std::none_of(parts.begin(), parts.end(),
                       [&](const Match& other) { return displaces(other, part); }))
        add(part.golden, part.actual, part.form, part.certainty, part.why);
  }

  // Whether more than half of all have seen a part of my value. Where what comes before the value is
  // wrong already, nobody can see it; then half of the others is enough, if it is clear.
  bool have_seen_enough(const Tally::Candidate& part, uint32_t actual) const {
    if (2 * part.votes > problem_.evidence.size()) return true;
    size_t could = 0;
    for (const std::vector<bool>& begins_well : begins_well_) could += begins_well[actual] ? 1 : 0;
    return 2 * part.votes > could && is_enough(part.votes) &&
           part.form.distance.value <= kClearPart;
  }

  // Whether one part takes the columns of another one, and is clearly nearer: v_proj is exactly what
  // an attention that mostly looks at its own token nearly is.
  bool displaces(const Match& one, const Match& other) const {
    const auto overlap = [](const Transform& x, const Transform& y) {
      return x.taken > 0 && y.taken > 0 && x.first < y.first + y.taken &&
             y.first < x.first + x.taken;
    };
    const bool same_columns =
        (one.actual == other.actual && overlap(one.form.actual, other.form.actual)) ||
        (one.golden == other.golden && overlap(one.form.golden, other.form.golden));
    return same_columns && one.form.distance.value < kClearlyNearer * other.form.distance.value;
  }

  // Members of a class hold the same parts, so one of them is enough.
  static bool stands_for_class(const SegmentSide& side, const ValueClasses& classes,
                               uint32_t value) {
    return classes.has_data[classes.of[value]] &&
           representative_of(side, classes.peers_of(value)) == value;
  }

  bool has_whole(uint32_t actual) const {
    return std::any_of(matches_.begin(), matches_.end(), [&](const Match& match) {
      return match.actual == actual && match.form.actual.taken == 0 && match.form.golden.taken == 0;
    });
  }

  // Sums of two golden values, where what they add up to was not recorded. At least half of all
  // that were looked at have to see the same sum.
  void match_sums() {
    struct Votes {
      size_t count = 0;
      Form form;
    };
    using Classes = std::pair<uint32_t, uint32_t>;
    std::map<uint32_t, std::map<Classes, Votes>> votes;  // [my value]
    for (const Evidence& evidence : problem_.evidence) {
      for (const Evidence::Sum& sum : evidence.sums) {
        const auto& of = problem_.golden_classes.of;
        Votes& same = votes[sum.actual][{of[sum.first], of[sum.second]}];
        if (same.count++ == 0) same.form = sum.form;
      }
    }
    for (const auto& [actual, choices] : votes) {
      if (actual_taken_[actual] || !problem_.listed_for_actual(actual).empty()) continue;
      const auto best = std::max_element(
          choices.begin(), choices.end(),
          [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
      if (2 * best->second.count < problem_.evidence.size()) continue;
      const Form& form = best->second.form;
      matches_.push_back(
          {problem_.golden_classes.members[best->first.first].front(),
           problem_.golden_classes.members[best->first.second].front(), actual, form,
           Certainty::kCertain,
           "the sum of two golden tensors agrees (" + number(form.distance.value) + ")"});
      actual_taken_[actual] = true;
    }
  }

  // What data leave open.
  void match_by_types() {
    for (const TypedPair& pair : pair_by_types(problem_, matches_)) {
      if (actual_taken_[pair.actual]) continue;
      const Form form = form_without_data(pair.golden, pair.actual);
      const uint32_t golden_class = problem_.golden_classes.of[pair.golden];
      add(shown_member_of(problem_.golden, problem_.golden_classes.members[golden_class]),
          pair.actual, form, Certainty::kLikely, pair.why);
      // What holds the same as either of them belongs to it.
      match_classes(golden_class, problem_.actual_classes.of[pair.actual], form, pair.why,
                    Certainty::kLikely);
    }
  }

  // What computes and has the results of something else that computes: an added bias of zeros, a
  // block whose projection is zeros, an attention over one token. It goes where the other one goes,
  // unless golden has something left that does its kind of work.
  void match_equal_results() {
    for (uint32_t a = 0; a < actual_taken_.size(); ++a) {
      const Value& value = problem_.actual.values[a];
      if (actual_taken_[a] || !is_computed(value) || value.kind == OpKind::kRotary ||
          !problem_.actual_classes.has_data[problem_.actual_classes.of[a]] ||
          golden_has_free(value.kind))
        continue;
      const auto equal = std::find_if(matches_.begin(), matches_.end(), [&](const Match& match) {
        return !match.golden_too && match.form.golden.taken == 0 && match.form.actual.taken == 0 &&
               match.form.distance.value <= kVotable && are_equal(a, match.actual) &&
               !do_own_work(value, problem_.actual.values[match.actual]);
      });
      if (equal == matches_.end()) continue;
      const Match& other = *equal;
      const uint32_t golden = free_member_like(other.golden);
      add(golden, a, form_of(golden, a, other.form), Certainty::kLikely,
          "it holds the same as " +
              problem_.actual.operation_of(problem_.actual.values[other.actual]).name);
    }
  }

  bool golden_has_free(OpKind kind) const {
    for (uint32_t g = 0; g < golden_taken_.size(); ++g) {
      const Value& value = problem_.golden.values[g];
      if (!golden_taken_[g] && value.is_leaf && value.is_output() && value.kind == kind)
        return true;
    }
    return false;
  }

  // Whether two of my values are the same, but for rounding, in all of the evidence.
  bool are_equal(uint32_t a, uint32_t b) const {
    if (problem_.actual_classes.of[a] == problem_.actual_classes.of[b]) return true;
    return std::all_of(problem_.evidence.begin(), problem_.evidence.end(), [&](const Evidence& e) {
      return e.actual[a].content != 0 && e.actual_kin.are(a, b);
    });
  }

  // What goes into something, where that is left: the attention over one token is what goes into
  // o_proj, and v_proj is taken.
  uint32_t free_member_like(uint32_t golden) const {
    for (const uint32_t member : problem_.golden_classes.peers_of(golden))
      if (!golden_taken_[member] && !problem_.golden.values[member].is_output()) return member;
    return golden;
  }

  // How shards are put together is not known where the data do not agree, but some ways fit better
  // than others.
  Form form_without_data(uint32_t golden, uint32_t actual) const {
    for (const Evidence& evidence : problem_.evidence)
      if (const auto& whole = evidence.at(golden, actual).whole) return *whole;
    Form form;
    form.fit = Fit::kLastRows;
    form.actual_ranks = problem_.actual.recording.ranks.size() > 1 ? RankUse::kEach : RankUse::kOne;
    return form;
  }

  // Puts matches in order and says of all other values why they are in none.
  SegmentMatch finish() {
    SegmentMatch out;
    std::sort(matches_.begin(), matches_.end(), [](const Match& a, const Match& b) {
      return std::pair(a.actual, a.golden) < std::pair(b.actual, b.golden);
    });
    const ValueClasses& classes = problem_.golden_classes;
    std::set<uint32_t> matched_classes;
    for (const Match& match : matches_) matched_classes.insert(classes.of[match.golden]);
    for (uint32_t g = 0; g < golden_taken_.size(); ++g) {
      const bool is_copy = !golden_taken_[g] && matched_classes.contains(classes.of[g]);
      out.golden_is_copy.push_back(is_copy);
      out.golden_alone.push_back(golden_taken_[g] ? "" : why_golden_alone(g, is_copy));
    }
    for (uint32_t a = 0; a < actual_taken_.size(); ++a)
      out.actual_alone.push_back(actual_taken_[a] ? "" : why_actual_alone(a));
    out.matches = std::move(matches_);
    return out;
  }

  // Of a value whose data tell it from no other.
  static std::string why_not_recognised() {
    return "it cannot be recognised by its values: they are all the same, too few, or could not be "
           "read as rows of tokens.";
  }

  std::string why_golden_alone(uint32_t golden, bool is_copy) const {
    const ValueClasses& classes = problem_.golden_classes;
    if (is_copy) return "the same data are compared elsewhere.";
    if (const std::string listed = problem_.listed_for_golden(golden); !listed.empty())
      return "the mapping file gives it to " + listed + ", and none of these is left for it.";
    if (classes.has_data[classes.of[golden]]) return "no tensor of my-path agrees with it.";
    return why_not_recognised();
  }

  std::string why_actual_alone(uint32_t actual) const {
    if (const std::string listed = problem_.listed_for_actual(actual); !listed.empty())
      return "the mapping file lists " + listed + " for it, and none of these is left for it.";
    const ValueClasses& classes = problem_.actual_classes;
    if (!classes.has_data[classes.of[actual]]) return why_not_recognised();
    double nearest = kNothingNear;
    for (const Evidence& evidence : problem_.evidence) {
      if (evidence.actual[actual].content != 0 && !evidence.actual[actual].is_float)
        return "it holds quantised values or integers, and golden-path has none to compare with.";
      for (uint32_t g = 0; g < golden_taken_.size(); ++g)
        if (const auto& whole = evidence.at(g, actual).whole)
          nearest = std::min(nearest, whole->distance.value);
    }
    if (nearest >= kNothingNear) return "golden-path has no tensor of its size.";
    return "no tensor of golden-path agrees with it (the relative distance to the nearest is " +
           number(nearest) + ").";
  }

  MatchProblem problem_;
  std::vector<bool> golden_taken_;
  std::vector<bool> actual_taken_;
  std::vector<Match> matches_;
  std::vector<std::vector<bool>> follows_well_;  // [evidence][my value]: what comes after it agrees
  std::vector<std::vector<bool>> begins_well_;   // what comes right before it does
};

}  // namespace

SegmentMatch match_segment(const SegmentSide& golden, const SegmentSide& actual,
                           std::span<const Evidence> evidence,
                           std::span<const TypeMapping> mappings, const SettledValues& settled) {
  return Matcher(golden, actual, evidence, mappings).run(settled);
}

}  // namespace ait::match
