#include "formats/onnx_tensor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/protobuf_wire.h"
#include "formats/single_tensor.h"

namespace ait::formats::onnx_tensor {
namespace {

// Numbers of the fields; onnx.proto.
enum Field : uint8_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUInt64Data = 11,
  kDocString = 12,
  kExternalData = 13,
  kDataLocation = 14,
  kMetadata = 16,
};

// A message has a dozen fields, and one more for each number that was not packed.
constexpr size_t kMaxFields = size_t{1} << 20;

struct Type {
  std::string_view name;
  std::optional<DType> dtype;  // nothing: not read
  Field data = kInt32Data;     // which field has its numbers, where not kRawData
};

// By number; 0 is none.
constexpr std::array<Type, 27> kTypes = {{
    {"UNDEFINED", {}},
    {"FLOAT", DType::kFloat32, kFloatData},
    {"UINT8", DType::kUInt8},
    {"INT8", DType::kInt8},
    {"UINT16", DType::kUInt16},
    {"INT16", DType::kInt16},
    {"INT32", DType::kInt32},
    {"INT64", DType::kInt64, kInt64Data},
    {"STRING", {}, kStringData},
    {"BOOL", DType::kBool},
    {"FLOAT16", DType::kFloat16},
    {"DOUBLE", DType::kFloat64, kDoubleData},
    {"UINT32", DType::kUInt32, kUInt64Data},
    {"UINT64", DType::kUInt64, kUInt64Data},
    {"COMPLEX64", DType::kComplex64, kFloatData},
    {"COMPLEX128", DType::kComplex128, kDoubleData},
    {"BFLOAT16", DType::kBFloat16},
    {"FLOAT8E4M3FN", DType::kFloat8E4M3FN},
    {"FLOAT8E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"FLOAT8E5M2", DType::kFloat8E5M2},
    {"FLOAT8E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"UINT4", {}},
    {"INT4", {}},
    {"FLOAT4E2M1", {}},
    {"FLOAT8E8M0", DType::kFloat8E8M0FNU},
    {"UINT2", {}},
    {"INT2", {}},
}};

// What of the message is used. Spans look into the file.
struct Message {
  Shape shape;
  uint64_t type = 0;
  std::optional<std::span<const std::byte>> raw;
  Field numbers = kRawData;  // the field that has them, where not `raw`
  std::vector<std::span<const std::byte>> packed;
  std::vector<uint64_t> single;  // numbers that were not packed
  bool is_external = false;
  bool has_segment = false;
};

bool is_number_field(uint32_t number) {
  return number == kFloatData || number == kInt32Data || number == kInt64Data ||
         number == kDoubleData || number == kUInt64Data;
}

size_t fixed_bytes(uint32_t number) {
  return number == kFloatData ? 4 : number == kDoubleData ? 8 : 0;
}

Error malformed() {
  return Error(ErrorCode::kCorrupt) << "is not an ONNX tensor: it has fields that none has";
}

Result<void> take_dims(const WireField& field, Shape& shape) {
  const auto add = [&](uint64_t size) {
    if (shape.size() == kMaxRank || size > static_cast<uint64_t>(INT64_MAX)) return false;
    shape.push_back(static_cast<int64_t>(size));
    return true;
  };
  if (field.wire == Wire::kVarint) return add(field.value) ? Result<void>() : fail(malformed());
  if (field.wire != Wire::kBytes) return fail(malformed());
  WireReader numbers(field.bytes, field.offset_bytes);
  while (!numbers.done()) {
    const auto size = numbers.varint();
    if (!size) return fail(size.error());
    if (!add(*size)) return fail(malformed());
  }
  return {};
}

Result<void> take_numbers(const WireField& field, Message& message) {
  const size_t width = fixed_bytes(field.number);
  const Wire single = width == 4 ? Wire::kFixed32 : width == 8 ? Wire::kFixed64 : Wire::kVarint;
  const auto number = static_cast<Field>(field.number);
  if (message.numbers != kRawData && message.numbers != number) return fail(malformed());
  message.numbers = number;
  if (field.wire == Wire::kBytes && message.single.empty())
    message.packed.push_back(field.bytes);
  else if (field.wire == single && message.packed.empty())
    message.single.push_back(field.value);
  else
    return fail(malformed());
  return {};
}

Result<Message> parse(std::span<const std::byte> bytes) {
  Message message;
  WireReader reader(bytes, 0);
  for (size_t fields = 0; !reader.done(); ++fields) {
    const auto field = reader.next();
    if (!field) return fail(field.error());
    if (fields == kMaxFields) return fail(malformed());
    const bool is_bytes = field->wire == Wire::kBytes;
    Result<void> taken;
    if (field->number == kDims) {
      taken = take_dims(*field, message.shape);
    } else if (field->number == kDataType && field->wire == Wire::kVarint) {
      message.type = field->value;
    } else if (is_number_field(field->number)) {
      taken = take_numbers(*field, message);
    } else if (field->number == kRawData && is_bytes) {
      message.raw = field->bytes;
    } else if (field->number == kDataLocation && field->wire == Wire::kVarint) {
      message.is_external = field->value == 1;
    } else if (field->number == kSegment && is_bytes) {
      message.has_segment = true;
    } else if (!is_bytes || (field->number != kName && field->number != kStringData &&
                             field->number != kDocString && field->number != kExternalData &&
                             field->number != kMetadata)) {
      return fail(malformed());
    }
    if (!taken) return fail(taken.error());
  }
  if (message.type == 0 || message.type >= kTypes.size() || !count_elements(message.shape))
    return fail(malformed());
  return message;
}

// Numbers of a narrow type stand in 32 bits or more each; their low bytes are the element.
Result<std::shared_ptr<const MappedFile>> narrowed(const Message& message, size_t elements,
                                                   size_t width) {
  const auto miscounted = [&] {
    return Error(ErrorCode::kCorrupt) << "holds more or fewer numbers than its shape "
                                      << shape_text(message.shape) << " needs";
  };
  // A number takes a byte at least, so the file bounds what is asked for.
  size_t stored = message.single.size();
  for (const auto& span : message.packed) stored += span.size();
  if (stored < elements) return fail(miscounted());
  return MappedFile::temporary(elements * width, [&](std::span<std::byte> out) -> Result<void> {
    size_t at = 0;
    const auto add = [&](uint64_t value) {
      if (at == out.size()) return false;
      for (size_t i = 0; i < width; ++i)
        out[at++] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
      return true;
    };
    for (const uint64_t value : message.single)
      if (!add(value)) return fail(miscounted());
    for (const auto& span : message.packed) {
      WireReader numbers(span, 0);
      while (!numbers.done()) {
        const auto value = numbers.varint();
        if (!value) return fail(value.error());
        if (!add(*value)) return fail(miscounted());
      }
    }
    return at == out.size() ? Result<void>() : fail(miscounted());
  });
}

Result<Tensor> tensor_of(const std::shared_ptr<const MappedFile>& file, const Message& message) {
  const Type& type = kTypes[message.type];
  if (message.is_external)
    return fail(Error(ErrorCode::kUnsupported)
                << "keeps its data in another file, which is not followed; save it with "
                   "onnx.numpy_helper.from_array");
  if (message.has_segment)
    return fail(Error(ErrorCode::kUnsupported) << "is a part of a tensor (a segment)");
  if (!type.dtype)
    return fail(Error(ErrorCode::kUnsupported)
                << "holds elements of the type " << type.name << ", which ait does not read");
  const size_t elements = *count_elements(message.shape);
  const auto need = checked_mul(elements, size_bytes(*type.dtype));
  if (!need)
    return fail(Error(ErrorCode::kCorrupt)
                << "has the impossible shape " << shape_text(message.shape));
  const auto view = [&](std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
    if (bytes.size() != *need)
      return Result<Tensor>(fail(Error(ErrorCode::kCorrupt)
                                 << "of shape " << shape_text(message.shape) << " and type "
                                 << type.name << " needs " << *need << " bytes of data and has "
                                 << bytes.size() << "; the file was probably cut short"));
    auto tensor = Tensor::contiguous(std::move(owner), bytes, *type.dtype, message.shape);
    if (tensor) tensor->set_byte_swapped(kLittleEndianIsForeign);
    return tensor;
  };
  if (message.raw) return view(file, *message.raw);
  if (message.numbers == kRawData) return view(file, {});
  if (message.numbers != type.data)
    return fail(Error(ErrorCode::kCorrupt)
                << "of type " << type.name << " has its numbers in another type's field");
  if (fixed_bytes(message.numbers) > 0 && message.packed.size() == 1)
    return view(file, message.packed.front());
  if (fixed_bytes(message.numbers) > 0)
    return fail(Error(ErrorCode::kUnsupported)
                << "has its numbers in several pieces; save it with onnx.numpy_helper.from_array");
  auto bytes = narrowed(message, elements, size_bytes(*type.dtype));
  if (!bytes) return fail(bytes.error());
  const auto span = (*bytes)->bytes();
  return view(*std::move(bytes), span);
}

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  // dims, type, or what writers put first; most other files end here.
  if (bytes.empty()) return false;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const bool is_first = first == (kDims << 3) || first == ((kDims << 3) | 2) ||
                        first == (kDataType << 3) || first == ((kName << 3) | 2);
  if (!is_first) return false;
  const auto message = parse(bytes);
  return message &&
         (message->raw || message->numbers != kRawData || message->is_external ||
          kTypes[message->type].data == kStringData || *count_elements(message->shape) == 0);
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const auto message = parse(file->bytes());
  if (!message) return fail(Error(message.error()).set_path(file->path()));
  auto tensor = tensor_of(file, *message);
  if (!tensor) return fail(tensor.error().set_path(file->path()));
  return std::make_unique<SingleTensor>("ONNX tensor", std::move(*tensor), std::string());
}

}  // namespace ait::formats::onnx_tensor
