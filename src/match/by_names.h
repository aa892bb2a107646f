// Two runs of torch that share names of modules: what names say of them beside the pairs of equal
// names, which by_place.h makes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "capture/recording.h"
#include "match/by_place.h"
#include "match/evidence.h"
#include "match/program.h"
#include "match/sample.h"

namespace ait::match {

// What becomes of the names of my side where one of the models is wrapped:
// "root.base_model.model.lm_head" is golden's "root.lm_head".
struct Renaming {
  std::string actual;  // a module of mine, "root.base_model.model"
  std::string golden;  // which is this one of golden's, "root"

  // Golden's name; empty where it does not lie in that module, since equal names mean nothing there.
  std::string operator()(const std::string& name) const;
};

// Nothing is renamed where half of the names are the same anyway, or no one module explains half of
// them.
Renaming find_renaming(const capture::Recording& golden, const capture::Recording& actual);

// Whether so many of the operations have the same name that names tell who is who: half of those of
// the run that has fewer. A wrapper adds to the other one whatever it likes.
bool are_enough_names(size_t shared, size_t golden_operations, size_t actual_operations);

inline constexpr uint32_t kNoSlot = ~uint32_t{0};

// Of each of my slots, golden's that is the same tensor of the same operation; kNoSlot for none.
std::vector<uint32_t> same_slots(const capture::Recording& golden, const capture::Recording& actual,
                                 const PlaceMap& places);

using SegmentPair = std::pair<const Segment*, const Segment*>;

// Layers whose outermost operations correspond, then what lies outside of layers.
std::vector<SegmentPair> segments_by_place(const Program& golden, const Program& actual,
                                           const PlaceMap& places);

// Whether a tensor says what others are to be hidden, by itself or added to something. It holds
// other numbers in every type, and nothing is computed of it.
bool is_mask(const Sample& sample);

struct InputSearch {
  const capture::Recording& recording;
  const Program& program;
  // What is known of the values of a segment in the round that is looked at.
  std::function<std::vector<Evidence::ValueFacts>(const Segment&, const std::vector<Value>&)> facts;
};

// The slots of what is computed between modules, in whatever layer: what goes into a module and
// came out of none, as the sum of a residual addition. Of several modules that it goes into, the
// first.
std::vector<uint32_t> inputs_of_their_own(const InputSearch& search);

}  // namespace ait::match
