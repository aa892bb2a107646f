#include "record/atb_bin_encoder.h"

namespace ait::record {
namespace {

constexpr size_t kMaxAtbDimensions = 8;
constexpr int kNoCode = -1;

// aclDataType. The packed 4-bit types are left out: the code counts values where an image counts
// bytes.
int type_code(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 0;
    case ElementType::kFloat16:
      return 1;
    case ElementType::kInt8:
      return 2;
    case ElementType::kInt32:
      return 3;
    case ElementType::kUInt8:
      return 4;
    case ElementType::kInt16:
      return 6;
    case ElementType::kUInt16:
      return 7;
    case ElementType::kUInt32:
      return 8;
    case ElementType::kInt64:
      return 9;
    case ElementType::kUInt64:
      return 10;
    case ElementType::kFloat64:
      return 11;
    case ElementType::kBool:
      return 12;
    case ElementType::kComplex64:
      return 16;
    case ElementType::kComplex128:
      return 17;
    case ElementType::kBFloat16:
      return 27;
    case ElementType::kComplex32:
      return 33;
    case ElementType::kFloat8E5M2:
      return 35;
    case ElementType::kFloat8E4M3FN:
      return 36;
    case ElementType::kFloat8E8M0FNU:
      return 37;
    default:
      return kNoCode;
  }
}

EncodeResult encode(const TensorImage& image, FileImage& file, int format, bool with_data) {
  const int code = type_code(image.type);
  if (code == kNoCode) return EncodeResult::kUnsupportedType;
  if (image.rank > kMaxAtbDimensions) return EncodeResult::kTooManyDimensions;
  if (with_data && !is_consistent(image)) return EncodeResult::kBadImage;

  ByteBuffer dims;
  for (size_t d = 0; d < image.rank; ++d) {
    if (d > 0) dims.add_text(",");
    dims.add_decimal(image.dims[d]);
  }
  ByteBuffer codes;
  codes.add_decimal(format);
  const size_t format_bytes = codes.size();
  codes.add_decimal(code);
  if (dims.out_of_memory() || codes.out_of_memory()) return EncodeResult::kNoMemory;

  ByteBuffer header;
  add_atb_bin_header({{codes.data(), format_bytes},
                      {codes.data() + format_bytes, codes.size() - format_bytes},
                      {dims.data(), dims.size()}},
                     image.bytes, with_data, header);
  if (header.out_of_memory()) return EncodeResult::kNoMemory;

  file.add_copy(header);
  if (with_data) file.add_reference(image.data, image.bytes);
  return file.out_of_memory() ? EncodeResult::kNoMemory : EncodeResult::kOk;
}

}  // namespace

void add_atb_bin_header(const AtbBinTexts& texts, uint64_t bytes, bool with_data,
                        ByteBuffer& header) {
  const auto length = with_data ? static_cast<int64_t>(bytes) : 0;
  header.add_text("$Version=1.0\n$Object.Count=");
  header.add_decimal(with_data ? 1 : 0);
  header.add_text("\n$Object.Length=");
  header.add_decimal(length);
  header.add_text("\nformat=");
  header.add(texts.format.data(), texts.format.size());
  header.add_text("\ndtype=");
  header.add(texts.type.data(), texts.type.size());
  header.add_text("\ndims=");
  header.add(texts.dims.data(), texts.dims.size());
  if (with_data) {
    header.add_text("\n$Object.data=0,");
    header.add_decimal(length);
  }
  header.add_text("\n$End=1\n");
}

EncodeResult encode_atb_bin(const TensorImage& image, FileImage& file, int format) {
  return encode(image, file, format, true);
}

EncodeResult encode_atb_bin_description(const TensorImage& image, FileImage& file, int format) {
  return encode(image, file, format, false);
}

}  // namespace ait::record
