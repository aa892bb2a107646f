// Mixtures of experts: tensors that hold rows of the tokens which a router gave to an expert. Which
// rows of two runs belong together follows from the experts that their routers chose, where these
// were recorded: integers, [tokens, choices].
//
//     the router's choice     tensors of                     rows, as token/expert
//     token 0: 2, 1           a module for each expert       1: 0/1 2/1    2: 0/2 1/2    3: 1/3 2/3
//     token 1: 3, 2           one that is called for each    the same, in three calls
//     token 2: 1, 3           one for all, by expert         0/1 2/1 0/2 1/2 1/3 2/3
//                             one for all, by token          0/2 0/1 1/3 1/2 2/1 2/3
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "match/pair.h"
#include "match/program.h"
#include "match/sample.h"
#include "match/tokens.h"

namespace ait::match {

struct PlannedProgram;

// Whose rows a tensor holds.
struct Routed {
  enum class By : uint8_t {
    kNobody,  // all tokens, once
    kAll,     // those of all experts
    kCall,    // those of one expert in each call
    kExpert,  // those of the expert that the module is
  };
  By by = By::kNobody;
  uint32_t number = 0;     // of the call, or of the expert
  uint32_t layer = 0;      // its last operation
  bool is_proven = false;  // the numbers of rows are those that the router's choice gives
};

// How the rows of one side of a pair were chosen.
struct RoutedSide {
  uint32_t chosen = 0;  // the slot of the router's choice
  Routed routed;
};
struct RoutedPair {
  RoutedSide golden;
  RoutedSide actual;
  bool is_rearranged =
      false;  // kAll: the rows of one side stand by expert, those of the other by token
};

// Which rows of a pair are compared: those of the same token and expert. Null: all, as they lie.
struct RoutedRows {
  std::shared_ptr<const RowChoice> golden;
  std::shared_ptr<const RowChoice> actual;
  std::string why_none;  // why none can be compared; empty where some can
};
// So many rows of golden's tensor, or of mine; asked for where data have to tell which correspond.
using ReadRowsOf = std::function<RowTable(bool is_golden, size_t rows)>;
RoutedRows rows_in_common(const RoutedPair& pair, const Integers& golden, const Integers& actual,
                          const ReadRowsOf& read);

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
