// Layers of a model, found as what repeats: siblings in a row that have the same structure or the
// same type. Names of operations play no part.
//
//     model                 The series {layer 0, layer 1} holds six of the nine operations, so
//       embed               these are the layers; embed and head lie outside.
//       layer 0: norm, linear
//       layer 1: norm, linear
//       head
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/recording.h"

namespace ait::match {

// Whether nothing but kernels is below an operation.
bool is_leaf(const capture::Recording& recording, uint32_t operation);

// Which operations and tensors the subtree of `root` has at which depth, as text: equal texts are
// equal structures. Names and types are no part of it.
void append_structure(const capture::Recording& recording, uint32_t root, std::string& out);

// Siblings in a row that look like one another.
struct Series {
  std::vector<uint32_t> members;  // none of them is a leaf
  size_t operations = 0;          // in all of them, with everything below
};

// All series among siblings, in their order. A series may have a single member.
std::vector<Series> find_series(const capture::Recording& recording,
                                const std::vector<uint32_t>& siblings);

// The same, but what stands alone beside a series and is about as large as its members is one of
// them: the first or the last layer of some graphs is built otherwise than the rest.
std::vector<Series> find_layer_series(const capture::Recording& recording,
                                      const std::vector<uint32_t>& siblings);

// The largest series anywhere below these top-level operations, with a neighbour that is about as
// large as its members. It has no members where nothing
// repeats, or where what repeats is less than half of everything: two equal blocks inside of a
// single layer are no layers.
Series find_layers(const capture::Recording& recording, const std::vector<uint32_t>& tops);

}  // namespace ait::match
