// Zip archives as torch.save and numpy.savez write them, read over a mapping.
//
//   auto archive = ZipArchive::open(file);
//   for (const ZipMember& member : archive->members()) …
//   auto bytes = archive->contents(member);   // stored: a look into the mapping; deflated: a temporary mapping
//
// Only the central directory is trusted for sizes; local headers are used to find where the data starts.
// Zip64 is understood; encryption, spanning and other methods are refused. Nothing is ever extracted by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace ait::formats {

struct ZipMember {
  std::string name;
  uint64_t header_offset_bytes = 0;
  uint64_t compressed_bytes = 0;
  uint64_t uncompressed_bytes = 0;
  uint16_t method = 0;  // 0 stored, 8 deflated
};

// Bytes and what keeps them alive.
struct OwnedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

class ZipArchive {
 public:
  static bool sniff(std::span<const std::byte> bytes);
  static Result<ZipArchive> open(std::shared_ptr<const MappedFile> file);

  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(std::string_view name) const;
  const std::string& path() const { return file_->path(); }

  // Stored members are mapped in place; deflated ones are inflated into a temporary file, at most
  // kMaxInflateRatio times their compressed size (deflate cannot do more: beyond it the sizes lie).
  Result<OwnedBytes> contents(const ZipMember& member) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<ZipMember> members_;  // sorted by name for find(); archive order kept where it matters
};

}  // namespace ait::formats
