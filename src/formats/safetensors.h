// safetensors: any number of named tensors. Written by the safetensors packages (Hugging Face
// checkpoints).
//
// Layout:
//
//   1. 8 bytes: header length N, little-endian
//   2. N bytes of JSON, starting with '{', possibly padded with spaces at the end:
//        {"__metadata__": {"format": "pt"},
//         "layer.weight": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, …}
//      data_offsets are [begin, end) in bytes, counted from the end of the header
//   3. the tensors' elements, row-major, little-endian
//
// dtype F4 packs two values a byte, the first in the low nibble, and its shape counts values: such
// a tensor is given as kFloat4Packed with half the last dimension. Tensors come in the order in
// which they lie in the file; damaged offsets are an error of that tensor's load() only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::safetensors {

// The format's own limit.
inline constexpr size_t kMaxHeaderBytes = 100'000'000;

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::safetensors
