// What the data of one stretch of two programs say about who corresponds to whom.
//
//   Evidence evidence = weigh(golden_side, actual_side);
//   for (each value g of golden, a of actual) if (evidence.at(g, a).whole) …
//
// A value is a tensor at a place of a segment: output 0 of its third operation. Layers of one model
// have the same values, so what several layers say can be added up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/recording.h"
#include "match/pair.h"
#include "match/program.h"
#include "match/sample.h"

namespace ait::match {

struct Value {
  uint32_t position = 0;  // of its operation in the segment
  uint32_t place = 0;     // of its slot among the inputs or the outputs of the operation
  capture::Direction direction = capture::Direction::kOutput;
  uint32_t index = 0;
  bool is_leaf = true;
  capture::OpKind kind = capture::OpKind::kUnknown;
};

// The tensors that can correspond to something: what operations put out and, of torch, what goes
// into modules: the only trace of what is computed between them.
std::vector<Value> values_of(const capture::Recording& recording, const Segment& segment);

uint32_t slot_of(const capture::Recording& recording, const Segment& segment, const Value& value);

// One side of a stretch in one round.
struct EvidenceSide {
  const capture::Recording& recording;
  const Segment& segment;
  const std::vector<Value>& values;
  Tokens tokens;
  // In which round an operation ran; nothing where it did not.
  std::function<std::optional<size_t>(uint32_t operation)> round_of;
};

enum class RankUse : uint8_t {
  kOne,   // there is one, or any will do
  kEach,  // each for itself
  kAll,   // together they make the tensor
};

// A way in which two values correspond.
struct Form {
  Transform golden;
  Transform actual;
  RankUse golden_ranks = RankUse::kOne;
  RankUse actual_ranks = RankUse::kOne;
  Fit fit = Fit::kNone;
  Distance distance;

  bool same_way(const Form& other) const {
    return golden == other.golden && actual == other.actual && golden_ranks == other.golden_ranks &&
           actual_ranks == other.actual_ranks;
  }
};

struct Evidence {
  struct Cell {
    std::optional<Form> whole;  // tensor against tensor, in whatever shards
    std::optional<Form> part;   // one is a stretch of columns of the other
  };
  // Content of each value; equal numbers are equal data, 0 is none that says anything.
  std::vector<uint64_t> golden_content;
  std::vector<uint64_t> actual_content;
  std::vector<size_t> golden_columns;  // 0: not known
  std::vector<size_t> actual_columns;
  std::vector<bool> actual_is_float;
  std::vector<Cell> cells;  // [golden][actual]
  // Values of one side that are the same but for rounding: partial sums and what adds them up, a
  // tensor and its cast. [value][value]
  std::vector<bool> golden_kin;
  std::vector<bool> actual_kin;

  // golden values i and j add up to this actual one.
  struct SumForm {
    uint32_t first;
    uint32_t second;
    uint32_t actual;
    Form form;
  };
  std::vector<SumForm> sums;

  const Cell& at(size_t golden, size_t actual) const {
    return cells[golden * actual_content.size() + actual];
  }
  bool are_golden_kin(size_t a, size_t b) const {
    return golden_kin[a * golden_content.size() + b];
  }
  bool are_actual_kin(size_t a, size_t b) const {
    return actual_kin[a * actual_content.size() + b];
  }
};

// Reads samples of both sides on all cores and holds them against each other.
Evidence weigh(const EvidenceSide& golden, const EvidenceSide& actual);

// Shapes of the values of one side, those that can be read.
std::vector<Shape> shapes_of(const EvidenceSide& side);

}  // namespace ait::match
