#include "formats/ge_dump.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/ge_header.h"
#include "formats/ge_order.h"
#include "formats/ge_types.h"
#include "formats/little_endian.h"
#include "formats/protobuf_wire.h"

namespace ait::formats::ge_dump {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;
constexpr uint32_t kLastKnownField = 9;
constexpr uint64_t kTooMany = ~uint64_t{0};

// Nothing where a dimension is beyond what a tensor of ait's can have.
std::optional<Shape> shape_of(const std::vector<uint64_t>& dims) {
  Shape out;
  for (const uint64_t dim : dims) {
    if (static_cast<int64_t>(dim) < 0) return std::nullopt;
    out.push_back(static_cast<int64_t>(dim));
  }
  return out;
}

// How many bytes the elements of a stored shape take; nothing where that is beyond 64 bits.
std::optional<uint64_t> bytes_of(const Shape& shape, const ElementType& type) {
  const auto elements = count_elements(shape);
  if (!elements) return std::nullopt;
  if (type.coding == Coding::kBits) return *elements / 8 + (*elements % 8 != 0 ? 1 : 0);
  if (type.coding == Coding::kTwoInByte) return *elements / 2 + *elements % 2;
  if (type.coding == Coding::kHiFloat8) return elements;
  return checked_mul(*elements, size_bytes(*type.dtype));
}

class GeDump : public TensorFile {
 public:
  GeDump(std::shared_ptr<const MappedFile> file, Header header)
      : file_(std::move(file)), header_(std::move(header)) {
    std::optional<uint64_t> at = header_.data_offset_bytes;
    for (const TensorEntry& tensor : header_.tensors) {
      offsets_.push_back(at);
      if (at) at = checked_add(*at, tensor.size_bytes);
    }
  }

  std::string_view format() const override { return "GE dump"; }
  size_t size() const override { return header_.tensors.size(); }
  std::string name(size_t index) const override { return header_.tensors[index].name(); }

  Result<Tensor> load(size_t index) const override {
    const TensorEntry& entry = header_.tensors[index];
    const ElementType* type = find_element_type(entry.data_type);
    if (type == nullptr || !type->dtype)
      return fail(error(ErrorCode::kUnsupported, entry)
                  << "data type not supported: " << entry.data_type << " ("
                  << (type != nullptr ? type->name : "unknown") << ")");
    const auto block = block_of(index);
    if (!block) return fail(block.error());
    auto shape = shape_of(entry.stored);
    if (type->coding == Coding::kUnknown && !block->empty())
      shape = Shape{static_cast<int64_t>(block->size())};
    const uint64_t need = shape ? bytes_of(*shape, *type).value_or(kTooMany) : kTooMany;
    if (need > block->size())
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "of type " << type->name << " needs "
                  << (need == kTooMany ? std::string("too many") : std::to_string(need))
                  << " bytes for its shape, but its block has " << block->size()
                  << "; the dump is damaged");
    if (type->coding == Coding::kTwoInByte) return packed(entry, *type, *shape, *block);
    auto tensor = decoded(*type, *shape, *block);
    if (tensor && type->coding != Coding::kUnknown)
      tensor = reorder(*tensor, find_format(entry.format).order,
                       shape_of(entry.logical).value_or(Shape{}), entry.groups);
    if (!tensor) tensor.error().set_path(file_->path());
    return tensor;
  }

  // Devices fill up what they write: bytes behind the last tensor mean nothing.
  std::string note() const override { return order_note(); }

 private:
  Error error(ErrorCode code, const TensorEntry& entry) const {
    return Error(code, file_->path()) << "tensor " << entry.name() << " ";
  }

  // The part of the file that a tensor's data have.
  Result<Bytes> block_of(size_t index) const {
    const TensorEntry& entry = header_.tensors[index];
    const Bytes bytes = file_->bytes();
    if (!offsets_[index] || !range_fits(*offsets_[index], entry.size_bytes, bytes.size()))
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "of " << entry.size_bytes
                  << " bytes reaches beyond the end of the file, which "
                  << "has " << bytes.size() << "; it was probably cut short");
    return bytes.subspan(*offsets_[index], entry.size_bytes);
  }

  // Two values share a byte, so that the last dimension is halved.
  Result<Tensor> packed(const TensorEntry& entry, const ElementType& type, Shape shape,
                        Bytes block) const {
    const Order order = find_format(entry.format).order;
    if (order != Order::kPlain || shape.empty() || shape.back() % 2 != 0)
      return fail(error(ErrorCode::kUnsupported, entry)
                  << "data type not supported: " << type.name << " of shape " << shape_text(shape)
                  << " in format " << find_format(entry.format).name
                  << "; two values share a byte, so only plain formats with an even last dimension "
                     "are read");
    shape.back() /= 2;
    auto tensor = Tensor::contiguous(file_, block, *type.dtype, std::move(shape));
    if (!tensor) tensor.error().set_path(file_->path());
    return tensor;
  }

  // In its stored shape, of a type that ait knows.
  Result<Tensor> decoded(const ElementType& type, const Shape& shape, Bytes block) const {
    if (type.coding == Coding::kPlain || type.coding == Coding::kUnknown) {
      auto tensor = Tensor::contiguous(file_, block, *type.dtype, shape);
      if (tensor) tensor->set_byte_swapped(kLittleEndianIsForeign);
      return tensor;
    }
    const size_t elements = count_elements(shape).value_or(0);
    const auto bytes = checked_mul(elements, size_bytes(*type.dtype));
    if (!bytes) return fail(Error(ErrorCode::kUnsupported) << "is too large to be decoded");
    auto file = MappedFile::temporary(*bytes, [&](std::span<std::byte> out) -> Result<void> {
      if (type.coding == Coding::kBits) {
        for (size_t i = 0; i < elements; ++i) out[i] = block[i / 8] >> (7 - i % 8) & std::byte{1};
      } else {
        for (size_t i = 0; i < elements; ++i) {
          const float value = hifloat8_to_float(std::to_integer<uint8_t>(block[i]));
          std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
        }
      }
      return {};
    });
    if (!file) return fail(file.error());
    return Tensor::contiguous(*file, (*file)->bytes(), *type.dtype, shape);
  }

  // Of the first tensor whose order is not known.
  std::string order_note() const {
    for (const TensorEntry& entry : header_.tensors) {
      const Format& format = find_format(entry.format);
      if (format.order == Order::kOtherBlocks)
        return "tensor " + entry.name() + " is in format " + std::string(format.name) +
               " and is not converted";
    }
    return {};
  }

  std::shared_ptr<const MappedFile> file_;
  Header header_;
  std::vector<std::optional<uint64_t>> offsets_;  // of each tensor; nothing: beyond 64 bits
};

// Whether all of a header is a message with the fields that a dump has.
bool is_message(Bytes header) {
  WireReader reader(header);
  bool known = false;
  while (!reader.done()) {
    const auto field = reader.next();
    if (!field) return false;
    known |= field->number <= kLastKnownField;
  }
  return known;
}

// A version such as "2.0" and the tag of the time after it: how every writer begins. A file that was
// cut short still has it.
bool begins_with_version(Bytes bytes) {
  constexpr size_t kLongest = 16;
  constexpr std::byte kVersionTag{0x0a};
  constexpr std::byte kTimeTag{0x10};
  if (bytes.size() < 2 || bytes[0] != kVersionTag) return false;
  const auto length = std::to_integer<size_t>(bytes[1]);
  if (length == 0 || length > kLongest || bytes.size() < length + 3) return false;
  return std::all_of(bytes.begin() + 2, bytes.begin() + 2 + static_cast<ptrdiff_t>(length),
                     [](std::byte b) {
                       const char c = static_cast<char>(b);
                       return (c >= '0' && c <= '9') || c == '.';
                     }) &&
         bytes[length + 2] == kTimeTag;
}

bool is_nano(Bytes bytes) {
  return bytes.size() >= sizeof kNanoMagic && read_le<uint32_t>(bytes, 0) == kNanoMagic;
}

}  // namespace

bool sniff(Bytes bytes) {
  if (bytes.size() <= kLengthBytes) return false;
  const auto length = read_le<uint64_t>(bytes, 0);
  const Bytes rest = bytes.subspan(kLengthBytes);
  if (begins_with_version(rest) || is_nano(rest)) return true;
  return length > 0 && length <= rest.size() && length <= kMaxHeaderBytes &&
         is_message(rest.first(length));
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  auto header = parse_header(file->bytes());
  if (!header) return fail(header.error().set_path(file->path()));
  return std::make_unique<GeDump>(std::move(file), std::move(*header));
}

Result<Summary> summarise(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  if ((*file)->bytes().empty())
    return fail(Error(ErrorCode::kCorrupt, path)
                << "is empty; the program that should have written it probably failed");
  auto header = parse_header((*file)->bytes());
  if (!header) return fail(header.error().set_path(path));
  Summary out;
  out.op_name = std::move(header->op_name);
  out.file_bytes = (*file)->bytes().size();
  for (const TensorEntry& tensor : header->tensors) ++(tensor.is_input ? out.inputs : out.outputs);
  return out;
}

}  // namespace ait::formats::ge_dump
