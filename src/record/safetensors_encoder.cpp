#include "record/safetensors_encoder.h"

#include <cstdio>
#include <cstring>

namespace ait::record {
namespace {

constexpr size_t kHeaderAlignment = 8;
constexpr char kMetadataKey[] = "__metadata__";

const char* type_name(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "BOOL";
    case ElementType::kInt8:
      return "I8";
    case ElementType::kUInt8:
      return "U8";
    case ElementType::kInt16:
      return "I16";
    case ElementType::kUInt16:
      return "U16";
    case ElementType::kInt32:
      return "I32";
    case ElementType::kUInt32:
      return "U32";
    case ElementType::kInt64:
      return "I64";
    case ElementType::kUInt64:
      return "U64";
    case ElementType::kFloat16:
      return "F16";
    case ElementType::kBFloat16:
      return "BF16";
    case ElementType::kFloat32:
      return "F32";
    case ElementType::kFloat64:
      return "F64";
    case ElementType::kFloat8E4M3FN:
      return "F8_E4M3";
    case ElementType::kFloat8E5M2:
      return "F8_E5M2";
    case ElementType::kFloat8E4M3FNUZ:
      return "F8_E4M3FNUZ";
    case ElementType::kFloat8E5M2FNUZ:
      return "F8_E5M2FNUZ";
    case ElementType::kFloat8E8M0FNU:
      return "F8_E8M0";
    case ElementType::kComplex64:
      return "C64";
    default:
      return nullptr;
  }
}

bool add_json_string(ByteBuffer& out, const char* text, size_t bytes) {
  out.add_text("\"");
  for (size_t i = 0; i < bytes;) {
    const size_t length = utf8_length(text + i, bytes - i);
    if (length == 0) return false;
    const auto first = static_cast<unsigned char>(text[i]);
    if (first == '"' || first == '\\') {
      const char escaped[] = {'\\', text[i]};
      out.add(escaped, sizeof escaped);
    } else if (first < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(first));
      out.add_text(escaped);
    } else {
      out.add(text + i, length);
    }
    i += length;
  }
  out.add_text("\"");
  return true;
}

EncodeResult check(const NamedImage& named) {
  if (type_name(named.image.type) == nullptr) return EncodeResult::kUnsupportedType;
  if (named.image.rank > kMaxDimensions) return EncodeResult::kTooManyDimensions;
  if (!is_consistent(named.image)) return EncodeResult::kBadImage;
  if (named.name_bytes == sizeof kMetadataKey - 1 &&
      std::memcmp(named.name, kMetadataKey, named.name_bytes) == 0)
    return EncodeResult::kBadName;
  return EncodeResult::kOk;
}

bool add_entry(ByteBuffer& out, const NamedImage& named, int64_t begin) {
  const TensorImage& image = named.image;
  if (!add_json_string(out, named.name, named.name_bytes)) return false;
  out.add_text(":{\"dtype\":\"");
  out.add_text(type_name(image.type));
  out.add_text("\",\"shape\":[");
  for (size_t d = 0; d < image.rank; ++d) {
    if (d > 0) out.add_text(",");
    out.add_decimal(image.dims[d]);
  }
  out.add_text("],\"data_offsets\":[");
  out.add_decimal(begin);
  out.add_text(",");
  out.add_decimal(begin + static_cast<int64_t>(image.bytes));
  out.add_text("]}");
  return true;
}

// Calls `visit` for every image, the widest elements first, otherwise in the caller's order.
template <typename Visit>
void for_each_by_width(const NamedImage* images, size_t count, Visit visit) {
  for (size_t width = 8; width > 0; width /= 2)
    for (size_t i = 0; i < count; ++i)
      if (element_bytes(images[i].image.type) == width) visit(images[i]);
}

}  // namespace

EncodeResult encode_safetensors(const NamedImage* images, size_t count, FileImage& file) {
  for (size_t i = 0; i < count; ++i)
    if (const EncodeResult result = check(images[i]); result != EncodeResult::kOk) return result;

  ByteBuffer header;
  header.add_text("{");
  int64_t offset = 0;
  bool names_fit = true;
  for_each_by_width(images, count, [&](const NamedImage& named) {
    if (header.size() > 1) header.add_text(",");
    names_fit = add_entry(header, named, offset) && names_fit;
    offset += static_cast<int64_t>(named.image.bytes);
  });
  if (!names_fit) return EncodeResult::kBadName;
  header.add_text("}");
  header.add_repeated(' ',
                      (kHeaderAlignment - header.size() % kHeaderAlignment) % kHeaderAlignment);
  if (header.out_of_memory()) return EncodeResult::kNoMemory;

  const uint64_t length = header.size();
  file.add_copy(&length, sizeof length);
  file.add_copy(header);
  for_each_by_width(images, count, [&](const NamedImage& named) {
    file.add_reference(named.image.data, named.image.bytes);
  });
  return file.out_of_memory() ? EncodeResult::kNoMemory : EncodeResult::kOk;
}

}  // namespace ait::record
