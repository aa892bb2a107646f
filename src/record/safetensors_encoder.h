// safetensors: a JSON header, then the tensors without gaps. See docs/formats/safetensors.md.
#pragma once

#include "record/file_image.h"

namespace ait::record {

// Tensors are laid out by falling element size, so that each is aligned. Names must be UTF-8, not
// "__metadata__", and differ from each other (the caller's duty). complex32, complex128 and packed
// types have no name in the format: kUnsupportedType.
EncodeResult encode_safetensors(const NamedImage* images, size_t count, FileImage& file);

}  // namespace ait::record
