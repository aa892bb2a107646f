#include "formats/protobuf_wire.h"

#include <vector>

#include "base/checked.h"
#include "formats/little_endian.h"

namespace ait::formats {
namespace {

constexpr uint64_t kMaxNumber = (uint64_t{1} << 29) - 1;
constexpr size_t kMaxVarintBytes = 10;
// protobuf's own limit.
constexpr size_t kMaxGroups = 100;

constexpr uint8_t kEndOfGroup = 4;

}  // namespace

Error WireReader::corrupt() const {
  return Error(ErrorCode::kCorrupt, {}, offset_bytes_ + at_) << "the protobuf header ";
}

Result<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < kMaxVarintBytes; ++i) {
    if (at_ + i == message_.size())
      return fail(corrupt() << "ends inside a number; the file was probably cut short");
    const auto byte = std::to_integer<uint64_t>(message_[at_ + i]);
    // The tenth byte has room for one bit.
    if (i + 1 == kMaxVarintBytes && byte > 1) break;
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      at_ += i + 1;
      return value;
    }
  }
  return fail(corrupt() << "holds a number of more than 64 bits; the file is damaged");
}

Result<WireField> WireReader::header() {
  const auto tag = varint();
  if (!tag) return fail(tag.error());
  WireField field;
  const uint64_t number = *tag >> 3;
  const auto wire = static_cast<uint8_t>(*tag & 7);
  if (number == 0 || number > kMaxNumber || wire > static_cast<uint8_t>(Wire::kFixed32))
    return fail(corrupt() << "holds a field that no message can have; the file is damaged, or no "
                             "dump at all");
  field.number = static_cast<uint32_t>(number);
  field.wire = static_cast<Wire>(wire);
  return field;
}

Result<WireField> WireReader::next() {
  auto field = header();
  if (!field) return field;
  const auto fixed = [&](size_t bytes) -> Result<WireField> {
    if (message_.size() - at_ < bytes)
      return fail(corrupt() << "ends inside a number; the file was probably cut short");
    field->value = bytes == sizeof(uint32_t) ? read_le<uint32_t>(message_, at_)
                                             : read_le<uint64_t>(message_, at_);
    at_ += bytes;
    return field;
  };
  switch (field->wire) {
    case Wire::kVarint: {
      const auto value = varint();
      if (!value) return fail(value.error());
      field->value = *value;
      return field;
    }
    case Wire::kFixed64:
      return fixed(sizeof(uint64_t));
    case Wire::kFixed32:
      return fixed(sizeof(uint32_t));
    case Wire::kBytes: {
      const auto length = varint();
      if (!length) return fail(length.error());
      if (!range_fits(at_, *length, message_.size()))
        return fail(corrupt() << "has a field of " << *length << " bytes where "
                              << message_.size() - at_
                              << " are left; the file was probably cut short");
      field->bytes = message_.subspan(at_, *length);
      field->offset_bytes = offset_bytes_ + at_;
      at_ += *length;
      return field;
    }
    case Wire::kGroup:
      if (auto skipped = skip_group(field->number); !skipped) return fail(skipped.error());
      return field;
  }
  return fail(corrupt() << "ends a group that was not begun; the file is damaged");
}

Result<void> WireReader::skip_group(uint32_t number) {
  std::vector<uint32_t> open = {number};
  while (!open.empty()) {
    if (done()) return fail(corrupt() << "ends inside a group; the file was probably cut short");
    const size_t before = at_;
    const auto field = header();
    if (!field) return fail(field.error());
    if (static_cast<uint8_t>(field->wire) == kEndOfGroup) {
      if (field->number != open.back())
        return fail(corrupt() << "ends a group that was not begun; the file is damaged");
      open.pop_back();
    } else if (field->wire == Wire::kGroup) {
      if (open.size() == kMaxGroups)
        return fail(corrupt() << "nests groups deeper than any message; the file is damaged");
      open.push_back(field->number);
    } else {
      at_ = before;
      if (const auto skipped = next(); !skipped) return fail(skipped.error());
    }
  }
  return {};
}

}  // namespace ait::formats
