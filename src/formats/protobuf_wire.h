// The fields of a protobuf message, one after the other. What they mean is for the caller to say.
//
//   WireReader reader(bytes);
//   while (!reader.done()) {
//     auto field = reader.next();
//     if (!field) return fail(field.error());  // kCorrupt: cut short, or no message at all
//     if (field->number == 6 && field->wire == Wire::kBytes) op_name = field->text();
//   }
//
// A message is a row of fields: a varint `number << 3 | wire type`, then a varint, 8 bytes, a length
// and so many bytes, a group (fields up to one that ends it), or 4 bytes. A varint has seven bits a
// byte, the lowest first, and the top bit set on all bytes but the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace ait::formats {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;                // of a varint or a fixed number
  std::span<const std::byte> bytes;  // of a text, a message or a packed list
  uint64_t offset_bytes = 0;         // of `bytes`, in the file

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class WireReader {
 public:
  // `offset_bytes` is where in the file the message begins, for errors.
  explicit WireReader(std::span<const std::byte> message, uint64_t offset_bytes = 0)
      : message_(message), offset_bytes_(offset_bytes) {}

  bool done() const { return at_ == message_.size(); }

  // The next field. A group comes without what is in it: no message of our time has one.
  Result<WireField> next();

  // A bare number, as in a packed list.
  Result<uint64_t> varint();

 private:
  Result<WireField> header();
  Result<void> skip_group(uint32_t number);
  Error corrupt() const;

  std::span<const std::byte> message_;
  uint64_t offset_bytes_;
  size_t at_ = 0;
};

}  // namespace ait::formats
