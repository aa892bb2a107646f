// What an operation of a segment was given by whom: by the names that a topology gives to tensors or,
// without one, by what stands right before it.
//
//     0_SelfAttention   y=context
//     1_LinearOperation x=context   given_to(position of 1) is the output of 0
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "match/values.h"

namespace ait::match {

inline constexpr uint32_t kNoValue = ~uint32_t{0};

// The value that is this tensor of the operation at a position; kNoValue where there is none.
uint32_t find_value(const SegmentSide& side, uint32_t position, capture::Direction direction,
                    uint32_t index);

// Whether the type of an operation has a word in it, in any case; the word is in lower case.
bool is_called(const capture::Operation& operation, std::string_view word);

bool has_topology(const SegmentSide& side);

// What the operation at a position was given: what its first input is by name or, where nobody names
// any, the first output of the leaf that stands right before it. kNoValue where that is not known.
uint32_t given_to(const SegmentSide& side, uint32_t position);

// Whether a value may be what feeds a projection, or a norm, and shows in golden as its input alone:
// something that is computed between modules.
bool may_feed(const SegmentSide& side, uint32_t producer, capture::OpKind reader);

// Values of which each rank has a part to be added to those of the others: what an all-reduce was
// given.
std::set<uint32_t> partial_sums(const SegmentSide& side);

// Whether a norm may add a residual before it works: it reads more than a tensor and its weights, or
// puts out the sum, too. What it reads first is not what golden's norm works on, then.
bool adds_first(const SegmentSide& side, const Value& norm);

}  // namespace ait::match
