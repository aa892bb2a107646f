// What was read of a value: a few rows of its tensor, in every way in which they may be compared.
//
// A value of a run on one rank has one reading, its tensor. A value that two ranks have different
// parts of has two, the shards side by side and their sum, as nothing says yet whether the
// operation is column-parallel or row-parallel. A tensor of [heads, tokens, size] can also be read
// as if the tokens came first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "match/pair.h"
#include "match/sample.h"

namespace ait::match {

// Which ranks' tensors make one that can be compared.
enum class RankUse : uint8_t {
  kOne,   // there is one, or any will do
  kEach,  // each for itself
  kAll,   // together they make the tensor
};

// One way to read a value.
struct Reading {
  Sample sample;
  RankUse ranks = RankUse::kOne;
  Transform transform;  // what makes this of the files
};

struct Readings {
  std::vector<Reading> ways;
  std::vector<Sample> shards;  // of ranks that hold different things of the same width
  // A number for what the value holds: equal numbers are equal data. 0 where there are no data, or
  // none that tell one tensor from another: all elements are the same.
  uint64_t content = 0;
  size_t columns = 0;  // of one rank's tensor; 0: not known
  bool is_float = true;
  std::optional<float> constant;  // what all elements are, where they are all the same
  bool is_same = false;  // several ranks hold the same, which is not the same number everywhere
};

// `layouts` are the layouts in which the value can be read, each with a sample of every rank.
Readings readings_of(std::vector<std::vector<Sample>> layouts);

// Whether two values of the same run hold the same but for rounding, in some reading: a tensor and
// its cast, partial sums and what adds them up.
bool are_kin(const Readings& a, const Readings& b);

}  // namespace ait::match
