// What torch.save writes: a zip archive with a pickle and one stored member per tensor. torch.load
// reads it, with weights_only=True too, and so does any zip program. See docs/formats/torch.md.
#pragma once

#include "record/file_image.h"

namespace ait::record {

// A bare tensor. Reads the bytes once, for the zip's checksum. int4 has no torch type:
// kUnsupportedType.
EncodeResult encode_torch(const TensorImage& image, FileImage& file);

// A dict from name to tensor, as a state dict is. Names must be UTF-8.
EncodeResult encode_torch_dict(const NamedImage* images, size_t count, FileImage& file);

}  // namespace ait::record
