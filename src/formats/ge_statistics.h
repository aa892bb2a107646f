// What `ait llm convert --to-stats`, and the script in TorchAir's documents, keep of an operation that
// GE dumped: the smallest and the largest value of each tensor.
//
// Layout:
//
//   1. an .npz archive, see npz.h, with the arrays "inputs" and "outputs", in this order
//   2. each of shape (N, 2) with a row [minimum, maximum] for each tensor, or (0,) for none
//
// The rows are given as tensors of shape [2], named as in the dump: "input_0", "output_0".
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::ge_statistics {

// Whether it is an archive that begins with "inputs.npy".
bool sniff(std::span<const std::byte> bytes);
// Gives the arrays as npz does where they are not such rows.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::ge_statistics
