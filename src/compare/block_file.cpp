#include "compare/block_file.h"

#include <cstring>
#include <optional>

#include "base/checked.h"
#include "compare/block_codec.h"
#include "record/crc32.h"

namespace ait::compare {
namespace {

using formats::read_le;

constexpr std::string_view kNoteMagic = "note";
constexpr std::string_view kEndMagic = "ait-end.";
constexpr size_t kMagicBytes = 8;
constexpr size_t kHeaderBytes = 16;
constexpr size_t kBlockHeaderBytes = 16;
constexpr size_t kNoteHeaderBytes = 12;
constexpr size_t kEndBytes = 24;
constexpr size_t kMaxNoteBytes = size_t{16} << 20;

bool has_text(std::span<const std::byte> bytes, uint64_t offset, std::string_view text) {
  return range_fits(offset, text.size(), bytes.size()) &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

struct BlockHeader {
  uint32_t bytes;
  uint32_t items;
  uint32_t checksum;
};

// Nothing where no whole block is.
std::optional<BlockHeader> block_at(std::span<const std::byte> bytes, uint64_t offset,
                                    std::string_view magic) {
  if (!range_fits(offset, kBlockHeaderBytes, bytes.size()) || !has_text(bytes, offset, magic))
    return std::nullopt;
  const BlockHeader header{read_le<uint32_t>(bytes, offset + 4),
                           read_le<uint32_t>(bytes, offset + 8),
                           read_le<uint32_t>(bytes, offset + 12)};
  if (!range_fits(offset + kBlockHeaderBytes, header.bytes, bytes.size()) || header.items == 0 ||
      header.items > kItemsPerBlock)
    return std::nullopt;
  return header;
}

}  // namespace

Result<BlockWriter> BlockWriter::create(const std::string& folder, const std::string& name,
                                        const BlockKind& kind) {
  auto file = OutputFile::create(folder, name);
  if (!file) return fail(file.error());
  BlockWriter writer(std::move(*file), kind);
  std::string header(kind.magic);
  append_le(header, kind.version);
  append_le(header, uint32_t{0});
  if (auto written = writer.write(header); !written) return fail(written.error());
  return writer;
}

Result<void> BlockWriter::write(std::string_view bytes) {
  written_bytes_ += bytes.size();
  return file_.write(bytes);
}

Result<void> BlockWriter::append(std::string_view payload, uint32_t items) {
  blocks_.push_back(written_bytes_);
  items_ += items;
  std::string header(kind_->block_magic);
  append_le(header, static_cast<uint32_t>(payload.size()));
  append_le(header, items);
  append_le(header, record::crc32(payload.data(), payload.size()));
  checksum_ = record::crc32(header.data(), header.size(), checksum_);
  if (auto written = write(header); !written) return written;
  return write(payload);
}

Result<void> BlockWriter::end(std::string_view note) {
  if (note.size() > kMaxNoteBytes)
    return fail(Error(ErrorCode::kUnwritable)
                << "what is to be said of all " << kind_->items << " together takes " << note.size()
                << " bytes, which is more than a file may hold");
  std::string end;
  if (!note.empty()) {
    end += kNoteMagic;
    append_le(end, static_cast<uint32_t>(note.size()));
    append_le(end, record::crc32(note.data(), note.size()));
    end += note;
  }
  const uint64_t index_offset = written_bytes_ + end.size();
  for (const uint64_t offset : blocks_) append_le(end, offset);
  end += kEndMagic;
  append_le(end, items_);
  append_le(end, index_offset);
  return write(end);
}

Result<BlockFile> BlockFile::read(std::shared_ptr<const MappedFile> file, const BlockKind& kind) {
  const std::string& path = file->path();
  const auto bytes = file->bytes();
  if (bytes.size() < kHeaderBytes || !has_text(bytes, 0, kind.magic))
    return fail(Error(ErrorCode::kUnsupported, path) << kind.is_not);
  if (const auto version = read_le<uint32_t>(bytes, kMagicBytes); version != kind.version)
    return fail(Error(ErrorCode::kUnsupported, path)
                << "holds " << kind.items << " of version " << version
                << ", this ait reads version " << kind.version << "; " << kind.advice);
  BlockFile out;
  out.file_ = std::move(file);
  out.kind_ = &kind;
  if (auto end = out.read_end(); !end) return fail(end.error());
  return out;
}

Result<void> BlockFile::read_end() {
  const auto bytes = file_->bytes();
  if (bytes.size() < kHeaderBytes + kEndBytes ||
      !has_text(bytes, bytes.size() - kEndBytes, kEndMagic)) {
    scan();
    return {};
  }
  const uint64_t end = bytes.size() - kEndBytes;
  const uint64_t items = read_le<uint64_t>(bytes, end + 8);
  const uint64_t index = read_le<uint64_t>(bytes, end + 16);
  const uint64_t blocks = index <= end ? (end - index) / 8 : 0;
  const uint64_t least = items / kItemsPerBlock + (items % kItemsPerBlock != 0 ? 1 : 0);
  const uint64_t most = kind_->is_full ? least : items;
  if (index > end || (end - index) % 8 != 0 || blocks < least || blocks > most)
    return fail(Error(ErrorCode::kCorrupt, file_->path(), end)
                << "its index does not fit its number of " << kind_->items << "; "
                << kind_->advice);
  for (uint64_t i = 0; i < blocks; ++i) blocks_.push_back(read_le<uint64_t>(bytes, index + 8 * i));
  items_ = items;
  complete_ = true;
  return {};
}

// The blocks of a writer that did not come to its end.
void BlockFile::scan() {
  for (uint64_t at = kHeaderBytes;;) {
    const auto header = block_at(file_->bytes(), at, kind_->block_magic);
    if (!header) break;
    blocks_.push_back(at);
    items_ += header->items;
    at += kBlockHeaderBytes + header->bytes;
    if (header->items < kItemsPerBlock) break;
  }
}

Error BlockFile::damaged(size_t block) const {
  return Error(ErrorCode::kCorrupt, file_->path(), blocks_[block])
         << "holds a damaged block of " << kind_->items << "; " << kind_->advice;
}

Result<BlockFile::Block> BlockFile::block(size_t index) const {
  const auto header = block_at(file_->bytes(), blocks_[index], kind_->block_magic);
  if (!header) return fail(damaged(index));
  const auto payload = file_->bytes().subspan(blocks_[index] + kBlockHeaderBytes, header->bytes);
  if (record::crc32(payload.data(), payload.size()) != header->checksum)
    return fail(damaged(index));
  return Block{payload, header->items};
}

Result<std::string> BlockFile::note() const {
  uint64_t at = kHeaderBytes;
  if (!blocks_.empty()) {
    const auto last = block_at(file_->bytes(), blocks_.back(), kind_->block_magic);
    if (!last) return std::string();
    at = blocks_.back() + kBlockHeaderBytes + last->bytes;
  }
  const auto bytes = file_->bytes();
  if (!complete_ || !has_text(bytes, at, kNoteMagic) ||
      !range_fits(at, kNoteHeaderBytes, bytes.size()))
    return std::string();
  const uint32_t length = read_le<uint32_t>(bytes, at + 4);
  const uint64_t start = at + kNoteHeaderBytes;
  if (length > kMaxNoteBytes || !range_fits(start, length, bytes.size()) ||
      record::crc32(bytes.data() + start, length) != read_le<uint32_t>(bytes, at + 8))
    return fail(Error(ErrorCode::kCorrupt, file_->path(), at)
                << "holds a damaged note on its " << kind_->items << "; " << kind_->advice);
  const auto text = bytes.subspan(start, length);
  return std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

}  // namespace ait::compare
