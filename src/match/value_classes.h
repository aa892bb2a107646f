// Values of one side that hold the same data, as one.
//
// The output of a module is the input of the next one and often the output of the module around it:
//
//     layer.mlp            output ┐
//     layer.mlp.down_proj  output ┴ one class
//     layer.mlp.act_fn     output ┐
//     layer.mlp.down_proj  input  ┴ another one, if nothing happens in between
//
// Data cannot tell the members of a class apart, so classes are matched first and members then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/evidence.h"

namespace ait::match {

struct ValueClasses {
  std::vector<uint32_t> of;                    // [value]: its class
  std::vector<std::vector<uint32_t>> members;  // [class]: values, in their order
  std::vector<bool> has_data;                  // [class]: some evidence knows what it holds

  size_t count() const { return members.size(); }
  const std::vector<uint32_t>& peers_of(uint32_t value) const { return members[of[value]]; }
};

// `facts` is Evidence::golden or Evidence::actual. Values are one class where they hold the same in
// all of the evidence: in every layer and round that was looked at.
ValueClasses classes_of(const SegmentSide& side, std::span<const Evidence> all,
                        std::vector<Evidence::ValueFacts> Evidence::* facts);

// The member that stands for a class where a part of it is looked for: the first that a leaf puts
// out, or the first at all.
uint32_t representative_of(const SegmentSide& side, const std::vector<uint32_t>& members);

// The member that a report shows: an output of a leaf, or else the output of the innermost
// operation that has it, or else an input.
uint32_t shown_member_of(const SegmentSide& side, const std::vector<uint32_t>& members);

}  // namespace ait::match
