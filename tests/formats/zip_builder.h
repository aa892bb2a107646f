// Zip archives made by hand, so that each field can be made to lie.
#pragma once

#include <libdeflate.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test_files.h"

namespace ait::formats {

inline std::string deflate(std::string_view text) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(6), &libdeflate_free_compressor);
  std::string out(libdeflate_deflate_compress_bound(compressor.get(), text.size()), '\0');
  out.resize(libdeflate_deflate_compress(compressor.get(), text.data(), text.size(), out.data(),
                                         out.size()));
  return out;
}

struct ZipEntry {
  std::string name = {};
  std::string data = {};  // as it lies in the archive
  uint16_t method = 0;
  uint16_t flags = 0;
  std::optional<uint64_t> claimed_compressed_bytes = {};    // default: the truth
  std::optional<uint64_t> claimed_uncompressed_bytes = {};  // default: data.size()
  std::optional<uint64_t> claimed_offset_bytes = {};
  std::optional<uint32_t> claimed_crc32 = {};  // default: that of `data`
  std::string local_extra = {};
  bool zip64 = false;  // sizes and offset only in the extra field
};

inline ZipEntry deflated(std::string name, std::string_view content) {
  ZipEntry entry{.name = std::move(name), .data = deflate(content), .method = 8};
  entry.claimed_uncompressed_bytes = content.size();
  entry.claimed_crc32 = libdeflate_crc32(0, content.data(), content.size());
  return entry;
}

struct ZipEnd {
  std::string comment = {};
  bool zip64 = false;
  std::optional<uint64_t> claimed_entries = {};
  std::optional<uint64_t> claimed_directory_bytes = {};
};

inline std::string build_zip(const std::vector<ZipEntry>& entries, const ZipEnd& end = {}) {
  constexpr uint64_t kOnes = 0xffffffff;
  std::string out;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const uint64_t offset = entry.claimed_offset_bytes.value_or(out.size());
    const uint64_t packed = entry.claimed_compressed_bytes.value_or(entry.data.size());
    const uint64_t plain = entry.claimed_uncompressed_bytes.value_or(entry.data.size());
    const uint32_t crc =
        entry.claimed_crc32.value_or(libdeflate_crc32(0, entry.data.data(), entry.data.size()));
    const std::string extra = entry.zip64 ? little_endian(1, 2) + little_endian(24, 2) +
                                                little_endian(plain, 8) + little_endian(packed, 8) +
                                                little_endian(offset, 8)
                                          : std::string();
    const std::string common =
        little_endian(20, 2) + little_endian(entry.flags, 2) + little_endian(entry.method, 2) +
        little_endian(0, 4) + little_endian(crc, 4) +
        little_endian(entry.zip64 ? kOnes : packed, 4) +
        little_endian(entry.zip64 ? kOnes : plain, 4) + little_endian(entry.name.size(), 2);
    out += "PK\3\4" + common + little_endian(entry.local_extra.size(), 2) + entry.name +
           entry.local_extra + entry.data;
    directory += "PK\1\2" + little_endian(20, 2) + common + little_endian(extra.size(), 2) +
                 little_endian(0, 2 + 2 + 2 + 4) + little_endian(entry.zip64 ? kOnes : offset, 4) +
                 entry.name + extra;
  }
  const uint64_t start = out.size();
  const uint64_t count = end.claimed_entries.value_or(entries.size());
  const uint64_t size = end.claimed_directory_bytes.value_or(directory.size());
  out += directory;
  if (end.zip64) {
    const uint64_t record = out.size();
    out += "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
           little_endian(0, 8) + little_endian(count, 8) + little_endian(count, 8) +
           little_endian(size, 8) + little_endian(start, 8);
    out += "PK\6\7" + little_endian(0, 4) + little_endian(record, 8) + little_endian(1, 4);
  }
  out += "PK\5\6" + little_endian(0, 4) + little_endian(end.zip64 ? 0xffff : count, 2) +
         little_endian(end.zip64 ? 0xffff : count, 2) + little_endian(end.zip64 ? kOnes : size, 4) +
         little_endian(end.zip64 ? kOnes : start, 4) + little_endian(end.comment.size(), 2) +
         end.comment;
  return out;
}

}  // namespace ait::formats
