// Bare bytes: no header at all. Written by numpy's tofile(), by C programs, and by the earliest
// labelled dumps.
//
// Layout:
//
//   1. the elements without gaps, row-major, little-endian; only the caller knows type and shape
//
// Never sniffed: used where a RawLayout is given.
#pragma once

#include <memory>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::raw {

// kCorrupt where the bytes are no whole number of elements or fewer than the shape needs.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file,
                                         const RawLayout& layout);

}  // namespace ait::formats::raw
