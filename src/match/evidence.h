// What the data of two segments in one round say about who corresponds to whom.
//
//   Evidence evidence = weigh(golden, actual);
//   const auto& whole = evidence.at(g, a).whole;          // values g of golden and a of my side
//   if (whole && whole->distance.agrees()) …              // may be the same tensor
//
// Evidence decides nothing. Segments of the same structure have the same values, so what several
// layers and rounds say is added up in segment_match.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "match/forms.h"
#include "match/sample.h"
#include "match/values.h"

namespace ait::match {

// A segment in one round.
struct SegmentRound {
  SegmentSide side;
  Tokens tokens;
  // In which round an operation ran; nothing where it did not.
  std::function<std::optional<size_t>(uint32_t operation)> round_of;
};

struct Evidence {
  // What is known of one value; see Readings.
  struct ValueFacts {
    uint64_t content = 0;
    size_t columns = 0;
    bool is_float = true;
  };
  // How near two values are.
  struct PairFacts {
    std::optional<Form> whole;  // tensor against tensor, in whatever shards
    std::optional<Form> part;   // one is a stretch of columns of the other
  };
  // Two golden values that add up to one of my side's.
  struct Sum {
    uint32_t first;
    uint32_t second;
    uint32_t actual;
    Form form;
  };

  std::vector<ValueFacts> golden;
  std::vector<ValueFacts> actual;
  std::vector<PairFacts> pairs;  // [golden value][my value]
  // Whether two values of one side are the same but for rounding. [value][value]
  std::vector<bool> golden_kin;
  std::vector<bool> actual_kin;
  std::vector<Sum> sums;

  const PairFacts& at(size_t golden_value, size_t actual_value) const {
    return pairs[golden_value * actual.size() + actual_value];
  }
  bool are_golden_kin(size_t a, size_t b) const { return golden_kin[a * golden.size() + b]; }
  bool are_actual_kin(size_t a, size_t b) const { return actual_kin[a * actual.size() + b]; }
};

// Reads samples of both sides on all cores and holds them against each other.
Evidence weigh(const SegmentRound& golden, const SegmentRound& actual);

// Shapes of the values of one side, those that can be read.
std::vector<Shape> shapes_of(const SegmentRound& from);

}  // namespace ait::match
