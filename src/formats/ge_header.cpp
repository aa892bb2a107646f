#include "formats/ge_header.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/protobuf_wire.h"
#include "tensor/tensor.h"

namespace ait::formats::ge_dump {
namespace {

constexpr size_t kLengthBytes = 8;

// Fields of DumpData.
constexpr uint32_t kOutput = 3;
constexpr uint32_t kInput = 4;
constexpr uint32_t kOpName = 6;

// Fields of OpInput and OpOutput, whose numbers part after the third.
constexpr uint32_t kDataType = 1;
constexpr uint32_t kFormat = 2;
constexpr uint32_t kShape = 3;
struct TensorFields {
  uint32_t size;
  uint32_t original_shape;
  uint32_t sub_format;
};
constexpr TensorFields kInputFields = {5, 6, 7};
constexpr TensorFields kOutputFields = {6, 7, 8};

constexpr uint32_t kDim = 1;

// Enumerators and int32 are written as the 64 bits of their value.
int64_t as_int32(uint64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

Result<void> add_dim(std::vector<uint64_t>& dims, uint64_t dim, const WireField& at) {
  if (dims.size() == kMaxRank)
    return fail(Error(ErrorCode::kCorrupt, {}, at.offset_bytes)
                << "the protobuf header gives a tensor more than " << kMaxRank
                << " dimensions; the file is damaged");
  dims.push_back(dim);
  return {};
}

Result<void> read_shape(const WireField& message, std::vector<uint64_t>& dims) {
  WireReader reader(message.bytes, message.offset_bytes);
  while (!reader.done()) {
    const auto field = reader.next();
    if (!field) return fail(field.error());
    if (field->number != kDim) continue;
    if (field->wire == Wire::kVarint) {
      if (auto added = add_dim(dims, field->value, message); !added) return added;
    } else if (field->wire == Wire::kBytes) {
      WireReader packed(field->bytes, field->offset_bytes);
      while (!packed.done()) {
        const auto dim = packed.varint();
        if (!dim) return fail(dim.error());
        if (auto added = add_dim(dims, *dim, *field); !added) return added;
      }
    }
  }
  return {};
}

Result<TensorEntry> read_tensor(const WireField& message, const TensorFields& numbers) {
  TensorEntry out;
  WireReader reader(message.bytes, message.offset_bytes);
  while (!reader.done()) {
    const auto field = reader.next();
    if (!field) return fail(field.error());
    if (field->wire == Wire::kVarint) {
      if (field->number == kDataType) out.data_type = as_int32(field->value);
      if (field->number == kFormat) out.format = as_int32(field->value);
      if (field->number == numbers.size) out.size_bytes = field->value;
      if (field->number == numbers.sub_format) out.groups = as_int32(field->value);
    } else if (field->wire == Wire::kBytes) {
      Result<void> read;
      if (field->number == kShape) read = read_shape(*field, out.stored);
      if (field->number == numbers.original_shape) read = read_shape(*field, out.logical);
      if (!read) return fail(read.error());
    }
  }
  return out;
}

class HeaderReader {
 public:
  Result<Header> read(std::span<const std::byte> message) {
    WireReader reader(message, kLengthBytes);
    while (!reader.done()) {
      const auto field = reader.next();
      if (!field) return fail(field.error());
      if (field->wire != Wire::kBytes) continue;
      if (auto taken = take(*field); !taken) return fail(taken.error());
    }
    for (auto* list : {&inputs_, &outputs_})
      for (uint32_t i = 0; i < list->size(); ++i) (*list)[i].index = i;
    header_.tensors = std::move(inputs_);
    std::move(outputs_.begin(), outputs_.end(), std::back_inserter(header_.tensors));
    header_.data_offset_bytes = kLengthBytes + message.size();
    return std::move(header_);
  }

 private:
  Result<void> take(const WireField& field) {
    switch (field.number) {
      case kOpName:
        header_.op_name = field.text();
        return {};
      case kInput:
        return add_tensor(field, kInputFields, inputs_);
      case kOutput:
        return add_tensor(field, kOutputFields, outputs_);
      default:
        return {};
    }
  }

  Result<void> add_tensor(const WireField& field, const TensorFields& numbers,
                          std::vector<TensorEntry>& to) {
    if (inputs_.size() + outputs_.size() == kMaxTensors)
      return fail(Error(ErrorCode::kUnsupported, {}, field.offset_bytes)
                  << "the protobuf header lists more than " << kMaxTensors
                  << " tensors, more than any operation has; the file is damaged");
    auto tensor = read_tensor(field, numbers);
    if (!tensor) return fail(tensor.error());
    tensor->is_input = &to == &inputs_;
    to.push_back(std::move(*tensor));
    return {};
  }

  Header header_;
  std::vector<TensorEntry> inputs_;
  std::vector<TensorEntry> outputs_;
};

}  // namespace

std::string TensorEntry::name() const {
  return (is_input ? "input_" : "output_") + std::to_string(index);
}

Result<Header> parse_header(std::span<const std::byte> file) {
  if (file.size() <= kLengthBytes) return Header{{}, {}, file.size()};
  const auto length = read_le<uint64_t>(file, 0);
  if (!range_fits(kLengthBytes, length, file.size()))
    return fail(Error(ErrorCode::kCorrupt, {}, 0) << "the header of the GE dump is said to be "
                                                  << length << " bytes long but the file has only "
                                                  << file.size() << "; it was probably cut short");
  if (length > kMaxHeaderBytes)
    return fail(Error(ErrorCode::kUnsupported, {}, 0)
                << "the header of the GE dump is said to be " << length << " bytes long; at most "
                << kMaxHeaderBytes << " are read");
  const auto message = file.subspan(kLengthBytes, length);
  if (message.size() >= sizeof kNanoMagic && read_le<uint32_t>(message, 0) == kNanoMagic)
    return fail(
        Error(ErrorCode::kUnsupported, {}, kLengthBytes)
        << "nano dump format is not supported, only that of the graph engine (a protobuf header)");
  return HeaderReader().read(message);
}

}  // namespace ait::formats::ge_dump
