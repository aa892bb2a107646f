#include "match/why.h"

#include <algorithm>

#include "match/match_problem.h"
#include "match/votes.h"

namespace ait::match {
namespace {

constexpr size_t kShown = 12;

std::string form_text(const Form& form) {
  const std::string golden = form.golden.text();
  std::string actual = form.actual.text();
  if (golden.empty()) return actual;
  return "golden " + golden + (actual.empty() ? "" : "; mine " + actual);
}

void add_form(const std::optional<Form>& form, WeighedPartner& out) {
  if (!form) return;
  ++out.places;
  if (form->distance.agrees()) ++out.agreeing;
  out.farthest = std::max(out.farthest, form->distance.value);
  if (form->distance.value >= out.nearest) return;
  out.nearest = form->distance.value;
  out.form = form_text(*form);
}

class Weighing {
 public:
  Weighing(const MatchProblem& problem, bool is_golden)
      : problem_(problem),
        is_golden_(is_golden),
        other_(is_golden ? problem.actual : problem.golden),
        other_classes_(is_golden ? problem.actual_classes : problem.golden_classes),
        tallies_(vote_on_wholes(problem)) {}

  std::vector<WeighedPartner> partners_of(uint32_t own) const {
    std::vector<WeighedPartner> out;
    for (uint32_t c = 0; c < other_classes_.count(); ++c) {
      // What is a tensor as a whole and what is a part of it are two ways to correspond.
      for (const bool as_part : {false, true}) {
        const WeighedPartner partner = weigh_class(own, c, as_part);
        if (partner.places > 0) out.push_back(partner);
      }
    }
    std::stable_sort(out.begin(), out.end(), [](const WeighedPartner& a, const WeighedPartner& b) {
      return a.nearest < b.nearest;
    });
    out.resize(std::min(out.size(), kShown));
    return out;
  }

 private:
  WeighedPartner weigh_class(uint32_t own, uint32_t other_class, bool as_part) const {
    const std::vector<uint32_t>& members = other_classes_.members[other_class];
    const uint32_t shown = shown_member_of(other_, members);
    WeighedPartner out;
    for (const Evidence& evidence : problem_.evidence) {
      const auto& facts = is_golden_ ? evidence.at(own, members[0]) : evidence.at(members[0], own);
      add_form(as_part ? facts.part : facts.whole, out);
    }
    out.operation = other_.operation_of(other_.values[shown]).name;
    out.tensor = other_.tensor_name_of(other_.values[shown]);
    out.type = other_.operation_of(other_.values[shown]).type;
    out.same_data = members.size() - 1;
    if (!as_part) out.votes = votes_for(own, other_class);
    out.is_allowed = std::any_of(members.begin(), members.end(), [&](uint32_t member) {
      return is_golden_ ? problem_.is_allowed(own, member) : problem_.is_allowed(member, own);
    });
    return out;
  }

  size_t votes_for(uint32_t own, uint32_t other_class) const {
    const uint32_t mine = is_golden_ ? other_class : problem_.actual_classes.of[own];
    const uint32_t golden = is_golden_ ? problem_.golden_classes.of[own] : other_class;
    return tallies_[mine].votes_for(golden);
  }

  const MatchProblem& problem_;
  bool is_golden_;
  const SegmentSide& other_;
  const ValueClasses& other_classes_;
  std::vector<Tally> tallies_;
};

}  // namespace

std::vector<WeighedTensor> weighed_for(const MatchProblem& problem, bool is_golden,
                                       uint32_t position, const std::vector<std::string>& places) {
  const SegmentSide& side = is_golden ? problem.golden : problem.actual;
  const Weighing weighing(problem, is_golden);
  std::vector<WeighedTensor> out;
  for (uint32_t i = 0; i < side.values.size(); ++i) {
    if (side.values[i].position != position) continue;
    WeighedTensor& tensor = out.emplace_back();
    tensor.is_golden = is_golden;
    tensor.operation = side.operation_of(side.values[i]).name;
    tensor.tensor = side.tensor_name_of(side.values[i]);
    tensor.type = side.operation_of(side.values[i]).type;
    tensor.places = places;
    tensor.partners = weighing.partners_of(i);
  }
  return out;
}

}  // namespace ait::match
