// Mixtures of experts: which tensors of a run hold the rows of experts (routed_rows.h), and which of
// two runs are of the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "match/program.h"
#include "match/routed_rows.h"
#include "match/sample.h"
#include "match/tokens.h"

namespace ait::match {

struct PlannedProgram;

// What is routed in the layers of a program.
class Routing {
 public:
  struct Round {
    SideStep step;
    Tokens tokens;
  };
  Routing(const RunSide& side, size_t program, const std::vector<Round>& rounds);

  Routed of(uint32_t slot) const;
  std::optional<uint32_t> chosen_for(uint32_t slot) const;  // of the layer that the slot lies in
  bool empty() const { return routed_.empty(); }
  // Whether all calls have as many rows as the experts that were chosen, one after the other.
  bool calls_are_proven() const { return calls_are_proven_; }
  // Whether their numbers of rows would be other ones if the last expert came first.
  bool calls_tell_order() const { return calls_tell_order_; }

 private:
  void look_at(const Segment& segment);
  bool may_be_mixture(const Segment& segment) const;

  const RunSide& side_;
  const std::vector<Round>& rounds_;
  std::map<uint32_t, Routed> routed_;
  std::map<uint32_t, uint32_t> chosen_;  // by the last operation of a layer
  bool calls_are_proven_ = true;
  bool calls_tell_order_ = false;
};

// What the router chose in a step; nothing where it was not recorded there.
std::optional<Integers> read_choice(const RunSide& side, const SideStep& step, uint32_t slot);

struct RoutedRuns {
  const RunSide& golden;
  const RunSide& actual;
  const std::vector<const Step*>& steps;  // that are looked at, of the two programs
  std::function<Tokens(const RunSide& side, const SideStep& step)> tokens_in;
};

// Says of planned pairs which rows of theirs correspond, and takes those apart whose rows are not of
// the same experts, or of experts of which nobody knows it.
void choose_rows(const RoutedRuns& runs, PlannedProgram& program);

}  // namespace ait::match
