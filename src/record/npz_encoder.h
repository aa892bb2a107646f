// numpy's `.npz`: a zip archive of `.npy` files, stored as numpy.savez does. See docs/formats/npz.md.
#pragma once

#include "record/file_image.h"

namespace ait::record {

// Refuses what encode_npy refuses. Names must be UTF-8 without zero bytes.
EncodeResult encode_npz(const NamedImage* images, size_t count, FileImage& file);

}  // namespace ait::record
