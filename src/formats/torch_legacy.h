// Files of torch.save before torch 1.6, and of later ones asked for the old form: see
// docs/formats/torch.md.
//
//   1. pickle: the magic number 0x1950a86a20f9469cfc6c
//   2. pickle: the protocol version, 1001
//   3. pickle: facts about the machine that wrote the file
//   4. pickle: the tensors, which refer to storages by key
//   5. pickle: the list of storage keys
//   6. per key, in that order: int64 number of elements, then the elements, little-endian
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "formats/registry.h"

namespace ait::formats::torch_legacy {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::torch_legacy
