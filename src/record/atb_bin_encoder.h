// The acceleration library's `.bin` tensor file: `name=value` lines, then the bytes. See
// docs/formats/atb_bin.md.
#pragma once

#include <string_view>

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

// The header alone, from the texts that the library itself gave: what the probe writes before the
// bytes, so that types and layouts newer than this code are kept as they are. `bytes` follow it;
// a description has none.
struct AtbBinTexts {
  std::string_view format;
  std::string_view type;
  std::string_view dims;
};
void add_atb_bin_header(const AtbBinTexts& texts, uint64_t bytes, bool with_data,
                        ByteBuffer& header);

}  // namespace ait::record
