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

// A quantised weight as float32: (weight - offset) * scale. `parts` are these three, or the first and
// the second. Scale and offset are one number, one for each row of the weight, or one for each of
// equally long stretches of a row. A weight that is not of integers is given back. kUsage as above.
Result<Tensor> dequantised(std::span<const Tensor> parts);

// Where the sides differ in rows, makes them equal as far as `how` allows, and says what was done;
// empty where nothing was, or nothing could be. Where both sides have a choice of rows, tensors with
// a row for each token are cut to these.
std::string fit(Tensor& golden, Tensor& actual, match::Fit how,
                const match::RowChoice* golden_rows = nullptr,
                const match::RowChoice* actual_rows = nullptr);

}  // namespace ait::compare
