// Zip archives as torch.save and numpy.savez write them, read over a mapping.
//
//   auto archive = ZipArchive::open(file);
//   const ZipMember* member = archive->find("x.npy");  // null if there is none
//   auto contents = archive->contents(*member);        // stored: in place; deflated: a copy
//
// Layout, all numbers little-endian:
//
//   1. per member: local header "PK\3\4", 30 bytes, then name, extra field and the data
//   2. central directory: per member "PK\1\2", 46 bytes, then name, extra field and comment; the
//      extra field 0x0001 holds, in this order, those of uncompressed size, compressed size and
//      header offset that are all ones in the fixed part (zip64)
//   3. zip64 only: end record "PK\6\6", 56 bytes, and its locator "PK\6\7", 20 bytes
//   4. end record "PK\5\6", 22 bytes, then a comment of at most 65 535 bytes to the file's end
//
// Only the central directory is trusted for sizes; local headers are used to find where the data
// starts. Zip64 is understood; encryption, spanning and other methods are refused. Nothing is ever
// extracted by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace ait::formats {

// Deflate's limit: a match of 258 bytes takes at least two bits. Sizes that claim more lie.
inline constexpr uint64_t kMaxInflateRatio = 1032;

struct ZipMember {
  std::string name;
  uint64_t header_offset_bytes = 0;
  uint64_t end_offset_bytes = 0;  // where the next member or the directory starts; data ends before
  uint64_t compressed_bytes = 0;
  uint64_t uncompressed_bytes = 0;
  uint32_t crc32 = 0;
  uint16_t method = 0;  // 0 stored, 8 deflated
  bool encrypted = false;
};

// Bytes and what keeps them alive.
struct OwnedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// Thread-safe once opened.
class ZipArchive {
 public:
  static bool sniff(std::span<const std::byte> bytes);
  // Reads the directory. kCorrupt on one that is cut off, overlaps itself or names a member twice.
  static Result<ZipArchive> open(std::shared_ptr<const MappedFile> file);

  const std::vector<ZipMember>& members() const { return members_; }  // in the directory's order
  const ZipMember* find(std::string_view name) const;
  const std::string& path() const { return file_->path(); }

  // Stored members are mapped in place; deflated ones are inflated into a temporary file, at most
  // kMaxInflateRatio times their compressed size, and checked against their CRC.
  Result<OwnedBytes> contents(const ZipMember& member) const;

 private:
  ZipArchive() = default;

  std::shared_ptr<const MappedFile> file_;
  std::vector<ZipMember> members_;
  std::vector<size_t> by_name_;  // indices into members_, sorted by name
};

}  // namespace ait::formats
