// Makes the sides of a pair comparable: slices, joined shards, sums, repeated batches.
//
//   auto golden = transformed(parts, pair.golden.transform);
//   auto actual = …;
//   std::string note = fit(*golden, *actual, pair.fit);
//
// Slices, permutations and repetitions are other strides over the same bytes and cost nothing. What
// has to be put together goes into an unlinked, mapped temporary file, one stretch of rows at a
// time.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "match/pair.h"
#include "tensor/tensor.h"

namespace ait::compare {

// `parts` are the tensors of a side's records. kUsage, in words for a report, where they do not fit
// the transform: a width that is no multiple, shards of different shapes.
Result<Tensor> transformed(std::span<const Tensor> parts, const match::Transform& transform);

// Where the sides differ in rows, makes them equal as far as `how` allows, and says what was done;
// empty where nothing was, or nothing could be.
std::string fit(Tensor& golden, Tensor& actual, match::Fit how);

}  // namespace ait::compare
