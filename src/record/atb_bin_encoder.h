// The acceleration library's `.bin` tensor file: `name=value` lines, then the bytes. See
// docs/formats/atb_bin.md.
#pragma once

#include "record/file_image.h"

namespace ait::record {

inline constexpr int kAtbFormatNd = 2;

// `format` is the layout code that goes into the header (aclFormat); the bytes are written as they
// are. Fails with kUnsupportedType for types without an aclDataType code and kTooManyDimensions
// above 8.
EncodeResult encode_atb_bin(const TensorImage& image, FileImage& file, int format = kAtbFormatNd);

// The variant that only describes: no data object, no bytes; `image.data` and `image.bytes` are
// ignored.
EncodeResult encode_atb_bin_description(const TensorImage& image, FileImage& file,
                                        int format = kAtbFormatNd);

}  // namespace ait::record
