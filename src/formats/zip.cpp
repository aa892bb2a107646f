#include "formats/zip.h"

#include <libdeflate.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "formats/little_endian.h"

namespace ait::formats {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocatorSignature = 0x07064b50;

constexpr size_t kLocalBytes = 30;
constexpr size_t kEntryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kMaxCommentBytes = 65535;

constexpr uint16_t kZip64ExtraId = 1;
constexpr uint16_t kEncryptedFlag = 1;
constexpr uint16_t kAllOnes16 = 0xffff;      // "see the zip64 record", or really 65 535
constexpr uint32_t kAllOnes32 = 0xffffffff;  // likewise

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

struct Directory {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t entries = 0;
};

bool has_signature(Bytes bytes, uint64_t offset, uint32_t signature) {
  return range_fits(offset, 4, bytes.size()) && read_le<uint32_t>(bytes, offset) == signature;
}

// The last record whose comment reaches exactly to the end of the file: a signature inside a
// comment or inside the data does not count.
std::optional<size_t> find_end_record(Bytes bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kEndBytes;
  const size_t first = last - std::min(last, kMaxCommentBytes);
  for (size_t at = last + 1; at-- > first;)
    if (has_signature(bytes, at, kEndSignature) && read_le<uint16_t>(bytes, at + 20) == last - at)
      return at;
  return std::nullopt;
}

Result<Directory> find_directory(const MappedFile& file) {
  const Bytes bytes = file.bytes();
  const auto end = find_end_record(bytes);
  if (!end)
    return fail(
        Error(ErrorCode::kCorrupt, file.path())
        << "starts like a zip archive but has no directory at its end; it was probably cut short");
  const auto disk = read_le<uint16_t>(bytes, *end + 4);
  if (disk != 0 && disk != kAllOnes16)
    return fail(Error(ErrorCode::kUnsupported, file.path(), *end)
                << "is part of a zip archive spread over several files; join them first");
  Directory directory{.offset_bytes = read_le<uint32_t>(bytes, *end + 16),
                      .size_bytes = read_le<uint32_t>(bytes, *end + 12),
                      .entries = read_le<uint16_t>(bytes, *end + 10)};
  uint64_t directory_limit = *end;
  if (*end >= kLocatorBytes && has_signature(bytes, *end - kLocatorBytes, kLocatorSignature)) {
    const auto end64 = read_le<uint64_t>(bytes, *end - kLocatorBytes + 8);
    if (!range_fits(end64, kEnd64Bytes, *end - kLocatorBytes) ||
        !has_signature(bytes, end64, kEnd64Signature))
      return fail(Error(ErrorCode::kCorrupt, file.path(), *end - kLocatorBytes)
                  << "the zip64 locator points at " << end64 << ", where no zip64 record is");
    directory_limit = end64;
    if (directory.entries == kAllOnes16) directory.entries = read_le<uint64_t>(bytes, end64 + 32);
    if (directory.size_bytes == kAllOnes32)
      directory.size_bytes = read_le<uint64_t>(bytes, end64 + 40);
    if (directory.offset_bytes == kAllOnes32)
      directory.offset_bytes = read_le<uint64_t>(bytes, end64 + 48);
  }
  if (!range_fits(directory.offset_bytes, directory.size_bytes, directory_limit))
    return fail(Error(ErrorCode::kCorrupt, file.path(), *end)
                << "the zip directory is said to be " << directory.size_bytes << " bytes at "
                << directory.offset_bytes << ", outside the file; it was probably cut short");
  if (directory.entries > directory.size_bytes / kEntryBytes)
    return fail(Error(ErrorCode::kCorrupt, file.path(), *end)
                << "the zip directory of " << directory.size_bytes << " bytes cannot hold the "
                << directory.entries << " members it claims");
  return directory;
}

// Replaces the sizes and the offset that are all ones by their zip64 values.
bool apply_zip64(Bytes extra, ZipMember& member) {
  uint64_t* const fields[] = {&member.uncompressed_bytes, &member.compressed_bytes,
                              &member.header_offset_bytes};
  const auto is_all_ones = [](const uint64_t* field) { return *field == kAllOnes32; };
  if (std::none_of(std::begin(fields), std::end(fields), is_all_ones)) return true;
  while (extra.size() >= 4) {
    const auto id = read_le<uint16_t>(extra, 0);
    const auto size = read_le<uint16_t>(extra, 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return false;
    if (id == kZip64ExtraId) {
      Bytes values = extra.first(size);
      for (uint64_t* field : fields) {
        if (!is_all_ones(field)) continue;
        if (values.size() < 8) return false;
        *field = read_le<uint64_t>(values, 0);
        values = values.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(size);
  }
  return true;  // without the field, 4 294 967 295 is the real value
}

Result<std::vector<ZipMember>> read_members(const MappedFile& file, const Directory& directory) {
  const Bytes bytes = file.bytes().subspan(directory.offset_bytes, directory.size_bytes);
  std::vector<ZipMember> members;
  members.reserve(directory.entries);
  size_t at = 0;
  const auto corrupt = [&] {
    return Error(ErrorCode::kCorrupt, file.path(), directory.offset_bytes + at)
           << "zip directory entry " << members.size() << " ";
  };
  while (members.size() < directory.entries) {
    if (!range_fits(at, kEntryBytes, bytes.size()) || !has_signature(bytes, at, kEntrySignature))
      return fail(corrupt() << "is missing or cut off");
    const size_t name_bytes = read_le<uint16_t>(bytes, at + 28);
    const size_t extra_bytes = read_le<uint16_t>(bytes, at + 30);
    const size_t comment_bytes = read_le<uint16_t>(bytes, at + 32);
    const size_t entry_bytes = kEntryBytes + name_bytes + extra_bytes + comment_bytes;
    if (!range_fits(at, entry_bytes, bytes.size())) return fail(corrupt() << "is cut off");
    ZipMember member{
        .name = {reinterpret_cast<const char*>(bytes.data()) + at + kEntryBytes, name_bytes},
        .header_offset_bytes = read_le<uint32_t>(bytes, at + 42),
        .compressed_bytes = read_le<uint32_t>(bytes, at + 20),
        .uncompressed_bytes = read_le<uint32_t>(bytes, at + 24),
        .crc32 = read_le<uint32_t>(bytes, at + 16),
        .method = read_le<uint16_t>(bytes, at + 10),
        .encrypted = (read_le<uint16_t>(bytes, at + 8) & kEncryptedFlag) != 0};
    if (!apply_zip64(bytes.subspan(at + kEntryBytes + name_bytes, extra_bytes), member))
      return fail(corrupt() << "has a damaged zip64 field");
    if (!range_fits(member.header_offset_bytes, kLocalBytes, directory.offset_bytes))
      return fail(corrupt() << "(" << printable(member.name) << ") points outside the file's data");
    members.push_back(std::move(member));
    at += entry_bytes;
  }
  if (at != bytes.size())
    return fail(Error(ErrorCode::kCorrupt, file.path(), directory.offset_bytes + at)
                << "the zip directory has " << bytes.size() - at << " bytes more than its "
                << directory.entries << " members need");
  return members;
}

std::vector<size_t> indices(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

// Gives each member the room up to the next one, and refuses those that need more: zip bombs share
// data.
Result<void> delimit(const MappedFile& file, uint64_t directory_offset_bytes,
                     std::vector<ZipMember>& members) {
  const auto start = [&](size_t i) { return members[i].header_offset_bytes; };
  std::vector<size_t> order = indices(members.size());
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return start(a) < start(b); });
  for (size_t k = 0; k < order.size(); ++k) {
    ZipMember& member = members[order[k]];
    member.end_offset_bytes = k + 1 < order.size() ? start(order[k + 1]) : directory_offset_bytes;
    const uint64_t room = member.end_offset_bytes - member.header_offset_bytes;
    if (!range_fits(kLocalBytes, member.compressed_bytes, room))
      return fail(Error(ErrorCode::kCorrupt, file.path(), member.header_offset_bytes)
                  << "zip member " << printable(member.name) << " of " << member.compressed_bytes
                  << " bytes runs into its neighbour or past the end of the data");
  }
  return {};
}

}  // namespace

bool ZipArchive::sniff(Bytes bytes) {
  return has_signature(bytes, 0, kLocalSignature) || has_signature(bytes, 0, kEndSignature);
}

Result<ZipArchive> ZipArchive::open(std::shared_ptr<const MappedFile> file) {
  const auto directory = find_directory(*file);
  if (!directory) return fail(directory.error());
  auto members = read_members(*file, *directory);
  if (!members) return fail(members.error());
  if (auto delimited = delimit(*file, directory->offset_bytes, *members); !delimited)
    return fail(delimited.error());

  ZipArchive archive;
  archive.members_ = std::move(*members);
  archive.by_name_ = indices(archive.members_.size());
  const auto name = [&](size_t i) -> const std::string& { return archive.members_[i].name; };
  std::sort(archive.by_name_.begin(), archive.by_name_.end(),
            [&](size_t a, size_t b) { return name(a) < name(b); });
  const auto twin = std::adjacent_find(archive.by_name_.begin(), archive.by_name_.end(),
                                       [&](size_t a, size_t b) { return name(a) == name(b); });
  if (twin != archive.by_name_.end())
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "the zip archive holds " << printable(name(*twin))
                << " twice; which of the two is meant cannot be told");
  archive.file_ = std::move(file);
  return archive;
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](size_t i, std::string_view wanted) { return members_[i].name < wanted; });
  if (found == by_name_.end() || members_[*found].name != name) return nullptr;
  return &members_[*found];
}

Result<OwnedBytes> ZipArchive::contents(const ZipMember& member) const {
  const auto error = [&](ErrorCode code) {
    return Error(code, path(), member.header_offset_bytes)
           << "zip member " << printable(member.name) << " ";
  };
  if (member.encrypted)
    return fail(error(ErrorCode::kUnsupported) << "is encrypted; unpack the archive and repack it");
  if (member.method != kStored && member.method != kDeflated)
    return fail(error(ErrorCode::kUnsupported)
                << "is compressed by method " << member.method
                << "; only stored (0) and deflated (8) members are read");
  const Bytes bytes = file_->bytes();
  const uint64_t header = member.header_offset_bytes;
  if (!range_fits(header, kLocalBytes, bytes.size()) ||
      !has_signature(bytes, header, kLocalSignature))
    return fail(error(ErrorCode::kCorrupt) << "has no local header where the directory says");
  // The local extra field may be longer than the directory's: torch pads there to align the data.
  const uint64_t data = header + kLocalBytes + read_le<uint16_t>(bytes, header + 26) +
                        read_le<uint16_t>(bytes, header + 28);
  if (!range_fits(data, member.compressed_bytes, member.end_offset_bytes))
    return fail(error(ErrorCode::kCorrupt)
                << "of " << member.compressed_bytes
                << " bytes runs into its neighbour or past the end of the data");
  const Bytes packed = bytes.subspan(data, member.compressed_bytes);
  if (member.method == kStored) {
    if (member.compressed_bytes != member.uncompressed_bytes)
      return fail(error(ErrorCode::kCorrupt)
                  << "is stored without compression, but its two sizes differ: "
                  << member.uncompressed_bytes << " bytes in " << member.compressed_bytes);
    return OwnedBytes{file_, packed};
  }
  if (member.uncompressed_bytes / kMaxInflateRatio > member.compressed_bytes)
    return fail(error(ErrorCode::kCorrupt)
                << "claims to inflate from " << member.compressed_bytes << " to "
                << member.uncompressed_bytes << " bytes, more than deflate can do");
  auto inflated = MappedFile::temporary(
      member.uncompressed_bytes, [&](std::span<std::byte> out) -> Result<void> {
        const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
            decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
        if (!decompressor) throw std::bad_alloc();
        size_t used_bytes = 0;
        size_t made_bytes = 0;
        const libdeflate_result outcome =
            libdeflate_deflate_decompress_ex(decompressor.get(), packed.data(), packed.size(),
                                             out.data(), out.size(), &used_bytes, &made_bytes);
        if (outcome != LIBDEFLATE_SUCCESS || used_bytes != packed.size() ||
            made_bytes != out.size())
          return fail(error(ErrorCode::kCorrupt)
                      << "does not inflate to the " << out.size() << " bytes it should");
        if (libdeflate_crc32(0, out.data(), out.size()) != member.crc32)
          return fail(error(ErrorCode::kCorrupt) << "is damaged: its checksum is wrong");
        return {};
      });
  if (!inflated && inflated.error().code() == ErrorCode::kUnwritable)
    return fail(error(ErrorCode::kUnwritable) << "cannot be inflated: " << inflated.error().text());
  if (!inflated) return fail(inflated.error());
  return OwnedBytes{*inflated, (*inflated)->bytes()};
}

}  // namespace ait::formats
