// numpy's .npz: several named arrays. Written by numpy.savez (stored) and numpy.savez_compressed
// (deflated).
//
// Layout:
//
//   1. a zip archive, see zip.h; zip64 where a member or the archive is larger than 4 GiB
//   2. each member named "<array's name>.npy" is one complete npy file, see npy.h
//
// Members that do not end in ".npy" are left out, with a note. A damaged array is an error of its
// own load() only. Torch's archives are zips too: torch_zip is asked before this reader.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::npz {

bool sniff(std::span<const std::byte> bytes);  // any zip archive
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::npz
