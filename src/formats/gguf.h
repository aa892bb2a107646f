// GGUF: the weights of llama.cpp and everything built on it.
//
//   1. 4 bytes "GGUF", version (2 or 3), number of tensors, number of key-value pairs
//   2. the pairs: a key, the number of its type, its value; "general.alignment" is used (32 without)
//   3. of each tensor: its name, the number of dimensions, the dimensions (the innermost first), the
//      number of its type, where its data begin
//   4. after zeros up to the alignment: the data
//
// All numbers are little-endian. Quantised types are made of blocks of 32 or 256 elements with scales
// of their own; Q8_0, Q4_0, Q4_K and Q6_K are decoded to float32 (gguf_blocks.h), the others are named
// in the error that load() gives. docs/formats/gguf.md has the details.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::gguf {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::gguf
