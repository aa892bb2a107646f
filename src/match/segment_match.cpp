#include "match/segment_match.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "match/by_types.h"

namespace ait::match {
namespace {

using capture::Direction;

// The nearest has to be this much nearer than the next: corresponding tensors differ by rounding,
// and neighbours in the residual stream by a layer's work, which is more.
constexpr double kMargin = 0.5;

// Of the layers that have a say, so many must say the same.
constexpr double kMajority = 2.0 / 3.0;

// And so many of all that were looked at must have a say.
constexpr double kFewestVotes = 1.0 / 3.0;

// Keeps hashes of names apart from numbers of values.
constexpr uint64_t kNamed = uint64_t{1} << 63;

// Values of one side that hold the same in all evidence.
struct Classes {
  std::vector<uint32_t> of;  // [value]
  std::vector<std::vector<uint32_t>> members;
  std::vector<bool> speaks;  // some evidence knows its data
};

// As a topology calls it; empty without one.
std::string topology_name(const MatchSide& side, const Value& value) {
  const auto& operation = side.recording.operations[side.segment.operation_at(value.position)];
  const auto& names = value.direction == Direction::kOutput ? operation.outputs : operation.inputs;
  return value.index < names.size() ? names[value.index] : std::string();
}

Classes classes_of(const MatchSide& side, std::span<const Evidence> all,
                   std::vector<uint64_t> Evidence::* content) {
  Classes out;
  std::map<std::vector<uint64_t>, uint32_t> known;
  for (uint32_t value = 0; value < side.values.size(); ++value) {
    std::vector<uint64_t> key;
    bool speaks = false;
    for (const Evidence& evidence : all) {
      key.push_back((evidence.*content)[value]);
      speaks |= key.back() != 0;
    }
    // Without data a value is like no other, unless a graph says that they are the same tensor.
    if (!speaks) {
      const std::string name = topology_name(side, side.values[value]);
      key.push_back(name.empty() ? value + 1 : std::hash<std::string>()(name) | kNamed);
    }
    const auto [place, is_new] =
        known.try_emplace(std::move(key), static_cast<uint32_t>(out.members.size()));
    if (is_new) {
      out.members.emplace_back();
      out.speaks.push_back(speaks);
    }
    out.members[place->second].push_back(value);
    out.of.push_back(place->second);
  }
  return out;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1g", value);
  return text;
}

// Votes for a golden class and the way it corresponds, of one actual class.
struct Tally {
  struct Choice {
    size_t votes = 0;
    Form form;
  };
  std::map<uint32_t, Choice> choices;
  size_t total = 0;

  void vote(uint32_t golden, const Form& form) {
    Choice& choice = choices[golden];
    if (choice.votes == 0 || form.distance.value < choice.form.distance.value) choice.form = form;
    ++choice.votes;
    ++total;
  }

  const std::pair<const uint32_t, Choice>* winner() const {
    const auto best = std::max_element(
        choices.begin(), choices.end(),
        [](const auto& a, const auto& b) { return a.second.votes < b.second.votes; });
    if (best == choices.end() ||
        static_cast<double>(best->second.votes) < kMajority * static_cast<double>(total))
      return nullptr;
    return &*best;
  }
};

class Matcher {
 public:
  Matcher(const MatchSide& golden, const MatchSide& actual, std::span<const Evidence> evidence,
          std::span<const TypeMapping> mappings)
      : golden_(golden),
        actual_(actual),
        evidence_(evidence),
        mappings_(mappings),
        golden_classes_(classes_of(golden, evidence, &Evidence::golden_content)),
        actual_classes_(classes_of(actual, evidence, &Evidence::actual_content)),
        golden_taken_(golden.values.size()),
        actual_taken_(actual.values.size()) {}

  SegmentMatch run() {
    by_data();
    by_parts();
    by_sums();
    by_types();
    return finish();
  }

 private:
  // Whole tensors: mutual best of their classes, by a margin.
  void by_data() {
    std::vector<Tally> tallies(actual_classes_.members.size());
    for (const Evidence& evidence : evidence_) vote(evidence, tallies);
    // A golden class goes to the actual one that most layers gave it, and to its kin.
    std::map<uint32_t, uint32_t> owner;
    for (uint32_t a = 0; a < tallies.size(); ++a) {
      const auto* winner = winner_of(tallies[a]);
      if (winner == nullptr) continue;
      const auto [place, is_new] = owner.try_emplace(winner->first, a);
      if (!is_new && winner_of(tallies[place->second])->second.votes < winner->second.votes)
        place->second = a;
    }
    for (uint32_t a = 0; a < tallies.size(); ++a) {
      const auto* winner = winner_of(tallies[a]);
      if (winner == nullptr) continue;
      const uint32_t first = owner[winner->first];
      if (first != a && (!are_kin(first, a) || both_work(first, a))) continue;
      const Tally::Choice& choice = winner->second;
      pair_classes(winner->first, a, choice.form,
                   "the data agree (" + number(choice.form.distance.value) + ") in " +
                       std::to_string(choice.votes) + " of " + std::to_string(evidence_.size()) +
                       (evidence_.size() == 1 ? " place" : " places") + " looked at",
                   Certainty::kCertain);
    }
  }

  // A single layer among many may be mistaken.
  const std::pair<const uint32_t, Tally::Choice>* winner_of(const Tally& tally) const {
    const auto* winner = tally.winner();
    if (winner == nullptr || static_cast<double>(winner->second.votes) <
                                 kFewestVotes * static_cast<double>(evidence_.size()))
      return nullptr;
    return winner;
  }

  // Two that compute have results of their own; where they are the same, one is at fault.
  bool both_work(uint32_t a, uint32_t b) const {
    const auto works = [&](uint32_t its_class) {
      for (const uint32_t value : actual_classes_.members[its_class])
        if (is_worker(actual_.values[value])) return true;
      return false;
    };
    return works(a) && works(b);
  }

  static bool is_worker(const Value& value) {
    // Looking up rows of a table is moving data, too.
    return value.is_leaf && value.kind != OpKind::kUnknown && value.kind != OpKind::kMove &&
           value.kind != OpKind::kEmbedding;
  }

  bool are_kin(uint32_t a, uint32_t b) const {
    return std::any_of(evidence_.begin(), evidence_.end(), [&](const Evidence& evidence) {
      return evidence.are_actual_kin(actual_classes_.members[a][0], actual_classes_.members[b][0]);
    });
  }

  void vote(const Evidence& evidence, std::vector<Tally>& tallies) {
    const size_t golden_count = golden_classes_.members.size();
    const size_t actual_count = actual_classes_.members.size();
    std::vector<const Form*> forms(golden_count * actual_count, nullptr);
    for (size_t g = 0; g < golden_count; ++g)
      for (size_t a = 0; a < actual_count; ++a) {
        const auto& whole =
            evidence.at(golden_classes_.members[g][0], actual_classes_.members[a][0]).whole;
        if (whole && allowed(g, a)) forms[g * actual_count + a] = &*whole;
      }
    const auto at = [&](size_t g, size_t a) { return forms[g * actual_count + a]; };
    for (uint32_t a = 0; a < actual_count; ++a) {
      const Form* best = nullptr;
      uint32_t best_golden = 0;
      for (uint32_t g = 0; g < golden_count; ++g) {
        const Form* form = at(g, a);
        if (form != nullptr && (best == nullptr || form->distance.value < best->distance.value)) {
          best = form;
          best_golden = g;
        }
      }
      if (best == nullptr || !best->distance.agrees()) continue;
      double next = 2;
      for (uint32_t g = 0; g < golden_count; ++g) {
        const Form* form = at(g, a);
        if (g == best_golden || form == nullptr) continue;
        if (!golden_kin(evidence, g, best_golden)) {
          next = std::min(next, form->distance.value);
        } else if (is_plainer(*form, g, *best, best_golden, a)) {
          best = form;
          best_golden = g;
        }
      }
      if (best->distance.value > kMargin * next ||
          nearest_part(evidence, best_golden, a) < kMargin * best->distance.value)
        continue;
      double rival = 2;
      for (uint32_t other = 0; other < actual_count; ++other)
        if (other != a && at(best_golden, other) != nullptr &&
            !evidence.are_actual_kin(actual_classes_.members[a][0],
                                     actual_classes_.members[other][0]))
          rival = std::min(rival, at(best_golden, other)->distance.value);
      if (best->distance.value <= kMargin * rival) tallies[a].vote(best_golden, *best);
    }
  }

  bool golden_kin(const Evidence& evidence, uint32_t a, uint32_t b) const {
    return evidence.are_golden_kin(golden_classes_.members[a][0], golden_classes_.members[b][0]);
  }

  // Of golden classes that are the same but for rounding: what does the same work, then what needs
  // no putting together, then the nearest.
  bool is_plainer(const Form& form, uint32_t golden, const Form& than, uint32_t than_golden,
                  uint32_t actual) const {
    const auto rank = [&](const Form& f, uint32_t g) {
      const OpKind golden_work = golden_.values[golden_classes_.members[g][0]].kind;
      const OpKind actual_work = actual_.values[actual_classes_.members[actual][0]].kind;
      return std::tuple(golden_work != actual_work, f.fit == Fit::kLastRows,
                        f.golden_ranks != f.actual_ranks, f.distance.value);
    };
    return rank(form, golden) < rank(than, than_golden);
  }

  // How near a part of something else is to either of the two: what a fused operation computes
  // agrees with it better than what is done to it afterwards.
  double nearest_part(const Evidence& evidence, uint32_t golden, uint32_t actual) const {
    double nearest = 2;
    const auto look_at = [&](uint32_t g, uint32_t a) {
      const auto& part =
          evidence.at(golden_classes_.members[g][0], actual_classes_.members[a][0]).part;
      if (part) nearest = std::min(nearest, part->distance.value);
    };
    for (uint32_t g = 0; g < golden_classes_.members.size(); ++g) look_at(g, actual);
    for (uint32_t a = 0; a < actual_classes_.members.size(); ++a) look_at(golden, a);
    return nearest;
  }

  // What a person's mapping file says of a type excludes every other for it.
  bool allowed(size_t golden_class, size_t actual_class) const {
    const auto& goldens = golden_classes_.members[golden_class];
    const auto& actuals = actual_classes_.members[actual_class];
    return std::any_of(actuals.begin(), actuals.end(), [&](uint32_t a) {
      return std::any_of(goldens.begin(), goldens.end(),
                         [&](uint32_t g) { return allowed_values(g, a); });
    });
  }

  bool allowed_values(uint32_t golden, uint32_t actual) const {
    return may_correspond(golden_, golden_.values[golden], actual_, actual_.values[actual],
                          mappings_);
  }

  // Members of two classes: a leaf with a leaf, what contains it with what contains that.
  void pair_classes(uint32_t golden_class, uint32_t actual_class, const Form& form,
                    const std::string& why, Certainty certainty) {
    std::vector<uint32_t> golden_groups;
    for (const uint32_t value : golden_classes_.members[golden_class])
      if (golden_.values[value].direction == Direction::kOutput && !golden_.values[value].is_leaf)
        golden_groups.push_back(value);
    std::reverse(golden_groups.begin(), golden_groups.end());  // inner ones first
    const uint32_t first = shown_for(golden_class);
    std::vector<uint32_t> actual_groups;
    OpKind worker = OpKind::kUnknown;
    for (const uint32_t value : actual_classes_.members[actual_class]) {
      const Value& v = actual_.values[value];
      const bool works = is_worker(v);
      if (actual_taken_[value]) {
        if (works) worker = v.kind;
        continue;
      }
      if (!v.is_leaf) {
        actual_groups.push_back(value);
        continue;
      }
      if (works) {
        if (worker != OpKind::kUnknown) continue;
        worker = v.kind;
      }
      add(first, value, form, certainty, why);
    }
    std::reverse(actual_groups.begin(), actual_groups.end());
    for (size_t i = 0; i < actual_groups.size(); ++i)
      add(i < golden_groups.size() ? golden_groups[i] : first, actual_groups[i], form, certainty,
          why);
  }

  // Which of equal golden values a report shows: what a module puts out, the innermost, or else
  // what goes into one.
  uint32_t shown_for(uint32_t golden_class) const {
    const auto& members = golden_classes_.members[golden_class];
    uint32_t best = members.front();
    const auto rank = [&](uint32_t value) {
      const Value& v = golden_.values[value];
      return std::tuple(v.direction == Direction::kInput, !v.is_leaf);
    };
    for (const uint32_t value : members)
      if (rank(value) < rank(best) ||
          (rank(value) == rank(best) && !golden_.values[value].is_leaf &&
           golden_.values[value].direction == Direction::kOutput))
        best = value;
    return best;
  }

  void add(uint32_t golden, uint32_t actual, const Form& form, Certainty certainty,
           const std::string& why) {
    if (!allowed_values(golden, actual)) return;
    golden_taken_[golden] = true;
    actual_taken_[actual] = true;
    matches_.push_back({golden, std::nullopt, actual, form, certainty, why});
  }

  // One side is a part of the other: fused projections.
  void by_parts() {
    for (uint32_t a = 0; a < actual_.values.size(); ++a) {
      for (uint32_t g = 0; g < golden_.values.size(); ++g) {
        if (!stands_for_class(golden_, golden_classes_, g) ||
            !stands_for_class(actual_, actual_classes_, a) || !allowed_values(g, a) ||
            actual_.values[a].kind == OpKind::kCache)
          continue;
        Tally tally;
        for (size_t e = 0; e < evidence_.size(); ++e) {
          const Evidence::Cell& cell = evidence_[e].at(g, a);
          if (!cell.part) continue;
          // Layers that see it elsewhere vote for something else.
          uint32_t way = 0;
          while (way < ways_.size() && !ways_[way].same_way(*cell.part)) ++way;
          if (way == ways_.size()) ways_.push_back(*cell.part);
          tally.vote(way, *cell.part);
        }
        const auto* winner = tally.winner();
        if (winner == nullptr || 2 * winner->second.votes < evidence_.size() + 1) continue;
        // Where my side has a whole partner, parts would only say the same again.
        if (!taken_whole(a)) add_part(g, a, winner->second);
      }
    }
  }

  void add_part(uint32_t golden, uint32_t actual, const Tally::Choice& choice) {
    add(golden, actual, choice.form, Certainty::kCertain,
        "a part of it agrees (" + number(choice.form.distance.value) + ") in " +
            std::to_string(choice.votes) + " of " + std::to_string(evidence_.size()) +
            (evidence_.size() == 1 ? " place" : " places") + " looked at");
  }

  bool taken_whole(uint32_t actual) const {
    return std::any_of(matches_.begin(), matches_.end(), [&](const Match& match) {
      return match.actual == actual && match.form.actual.taken == 0 && match.form.golden.taken == 0;
    });
  }

  // The first of equals that an operation puts out, or the first at all.
  static bool stands_for_class(const MatchSide& side, const Classes& classes, uint32_t value) {
    const auto& members = classes.members[classes.of[value]];
    if (!classes.speaks[classes.of[value]]) return false;
    for (const uint32_t member : members)
      if (side.values[member].direction == Direction::kOutput && side.values[member].is_leaf)
        return member == value;
    return members.front() == value;
  }

  // Sums of two golden values, where what they add up to was not recorded.
  void by_sums() {
    std::map<uint32_t, std::map<std::pair<uint32_t, uint32_t>, std::pair<size_t, Form>>> votes;
    for (const Evidence& evidence : evidence_) {
      for (const Evidence::SumForm& sum : evidence.sums) {
        const auto key = std::pair(golden_classes_.of[sum.first], golden_classes_.of[sum.second]);
        auto& [count, form] = votes[sum.actual][key];
        if (count++ == 0) form = sum.form;
      }
    }
    for (const auto& [actual, choices] : votes) {
      if (actual_taken_[actual]) continue;
      const auto best = std::max_element(
          choices.begin(), choices.end(),
          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
      if (2 * best->second.first < evidence_.size()) continue;
      Match match;
      match.golden = golden_classes_.members[best->first.first].front();
      match.golden_too = golden_classes_.members[best->first.second].front();
      match.actual = actual;
      match.form = best->second.second;
      match.why = "the sum of both agrees (" + number(match.form.distance.value) + ")";
      actual_taken_[actual] = true;
      matches_.push_back(std::move(match));
    }
  }

  void by_types() {
    TypeHints hints;
    hints.golden_columns.assign(golden_.values.size(), 0);
    hints.actual_columns.assign(actual_.values.size(), 0);
    hints.actual_is_float.assign(actual_.values.size(), true);
    for (const Evidence& evidence : evidence_) {
      for (size_t i = 0; i < golden_.values.size(); ++i)
        hints.golden_columns[i] = std::max(hints.golden_columns[i], evidence.golden_columns[i]);
      for (size_t i = 0; i < actual_.values.size(); ++i) {
        hints.actual_columns[i] = std::max(hints.actual_columns[i], evidence.actual_columns[i]);
        if (!evidence.actual_is_float[i]) hints.actual_is_float[i] = false;
      }
    }
    for (const TypedPair& pair : pair_by_types(golden_, actual_, matches_, hints, mappings_)) {
      if (actual_taken_[pair.actual]) continue;
      Form form;
      form.fit = Fit::kLastRows;
      form.actual_ranks = actual_.recording.ranks.size() > 1 ? RankUse::kEach : RankUse::kOne;
      // How its shards are put together is not known, but some ways fit better than others.
      for (const Evidence& evidence : evidence_)
        if (const auto& whole = evidence.at(pair.golden, pair.actual).whole) {
          form = *whole;
          break;
        }
      add(shown_for(golden_classes_.of[pair.golden]), pair.actual, form, Certainty::kLikely,
          pair.why);
      // What holds the same as either of them belongs to it.
      pair_classes(golden_classes_.of[pair.golden], actual_classes_.of[pair.actual], form, pair.why,
                   Certainty::kLikely);
    }
  }

  SegmentMatch finish() {
    SegmentMatch out;
    std::sort(matches_.begin(), matches_.end(), [](const Match& a, const Match& b) {
      return std::pair(a.actual, a.golden) < std::pair(b.actual, b.golden);
    });
    std::set<uint32_t> matched_classes;
    for (const Match& match : matches_) matched_classes.insert(golden_classes_.of[match.golden]);
    out.golden_is_copy.assign(golden_.values.size(), false);
    for (uint32_t g = 0; g < golden_.values.size(); ++g) {
      std::string why;
      if (!golden_taken_[g]) {
        const uint32_t its_class = golden_classes_.of[g];
        out.golden_is_copy[g] = matched_classes.contains(its_class);
        why = out.golden_is_copy[g]               ? "the same data are compared elsewhere."
              : golden_classes_.speaks[its_class] ? "no tensor of my-path agrees with it."
                                                  : "its data say nothing.";
      }
      out.golden_alone.push_back(std::move(why));
    }
    for (uint32_t a = 0; a < actual_.values.size(); ++a)
      out.actual_alone.push_back(actual_taken_[a] ? "" : why_alone(a));
    out.matches = std::move(matches_);
    return out;
  }

  std::string why_alone(uint32_t actual) const {
    const uint32_t its_class = actual_classes_.of[actual];
    if (!actual_classes_.speaks[its_class]) return "its data say nothing.";
    for (const Evidence& evidence : evidence_)
      if (evidence.actual_content[actual] != 0 && !evidence.actual_is_float[actual])
        return "quantised or integer data, golden-path has none to compare with.";
    double nearest = 2;
    for (const Evidence& evidence : evidence_)
      for (size_t g = 0; g < golden_.values.size(); ++g)
        if (const auto& whole = evidence.at(g, actual).whole)
          nearest = std::min(nearest, whole->distance.value);
    if (nearest >= 2) return "golden-path has no tensor of its size.";
    return "no tensor of golden-path agrees with it (the nearest is " + number(nearest) + " away).";
  }

  const MatchSide& golden_;
  const MatchSide& actual_;
  std::span<const Evidence> evidence_;
  std::span<const TypeMapping> mappings_;
  Classes golden_classes_;
  Classes actual_classes_;
  std::vector<bool> golden_taken_;
  std::vector<bool> actual_taken_;
  std::vector<Match> matches_;
  std::vector<Form> ways_;
};

}  // namespace

SegmentMatch match_segment(const MatchSide& golden, const MatchSide& actual,
                           std::span<const Evidence> evidence,
                           std::span<const TypeMapping> mappings) {
  return Matcher(golden, actual, evidence, mappings).run();
}

}  // namespace ait::match
