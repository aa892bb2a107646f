// numpy's `.npy`, version 1.0, C order. See docs/formats/npy.md.
#pragma once

#include "record/file_image.h"

namespace ait::record {

// bfloat16, the 8-bit floats, complex32 and the packed types have no name in numpy:
// kUnsupportedType.
EncodeResult encode_npy(const TensorImage& image, FileImage& file);

}  // namespace ait::record
