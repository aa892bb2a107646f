#include "record/npy_encoder.h"

namespace ait::record {
namespace {

// numpy pads the header so that the data starts on such a boundary, and readers may map it.
constexpr size_t kDataAlignment = 64;
constexpr size_t kPreambleBytes = 10;  // magic, version, length of the text

const char* type_code(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "|b1";
    case ElementType::kInt8:
      return "|i1";
    case ElementType::kUInt8:
      return "|u1";
    case ElementType::kInt16:
      return "<i2";
    case ElementType::kUInt16:
      return "<u2";
    case ElementType::kInt32:
      return "<i4";
    case ElementType::kUInt32:
      return "<u4";
    case ElementType::kInt64:
      return "<i8";
    case ElementType::kUInt64:
      return "<u8";
    case ElementType::kFloat16:
      return "<f2";
    case ElementType::kFloat32:
      return "<f4";
    case ElementType::kFloat64:
      return "<f8";
    case ElementType::kComplex64:
      return "<c8";
    case ElementType::kComplex128:
      return "<c16";
    default:
      return nullptr;
  }
}

}  // namespace

EncodeResult encode_npy(const TensorImage& image, FileImage& file) {
  const char* code = type_code(image.type);
  if (code == nullptr) return EncodeResult::kUnsupportedType;
  if (image.rank > kMaxDimensions) return EncodeResult::kTooManyDimensions;
  if (!is_consistent(image)) return EncodeResult::kBadImage;

  ByteBuffer text;
  text.add_text("{'descr': '");
  text.add_text(code);
  text.add_text("', 'fortran_order': False, 'shape': (");
  for (size_t d = 0; d < image.rank; ++d) {
    if (d > 0) text.add_text(" ");
    text.add_decimal(image.dims[d]);
    if (d == 0 || d + 1 < image.rank) text.add_text(",");  // a tuple of one needs its comma
  }
  text.add_text("), }");
  const size_t unpadded = kPreambleBytes + text.size() + 1;
  text.add_repeated(' ', (kDataAlignment - unpadded % kDataAlignment) % kDataAlignment);
  text.add_text("\n");
  if (text.out_of_memory()) return EncodeResult::kNoMemory;

  // 64 dimensions of 20 digits stay far below the 65 535 bytes of version 1.0.
  const auto length = static_cast<uint16_t>(text.size());
  file.add_copy("\x93NUMPY\x01\x00", 8);
  file.add_copy(&length, sizeof length);
  file.add_copy(text);
  file.add_reference(image.data, image.bytes);
  return file.out_of_memory() ? EncodeResult::kNoMemory : EncodeResult::kOk;
}

}  // namespace ait::record
