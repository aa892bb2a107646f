// Files of torch.save since torch 1.6: a zip archive, see docs/formats/torch.md.
//
//   1. <folder>/data.pkl     a pickle that describes the tensors
//   2. <folder>/byteorder    "little" or "big"; absent in old files, which are little-endian
//   3. <folder>/data/<key>   one storage each, not compressed and therefore mapped in place
//   4. <folder>/version      and others that do not matter here
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "formats/registry.h"

namespace ait::formats::torch_zip {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::torch_zip
