// A file of many items in blocks that are read on their own: what stores of rows, parts of them and plans have
// in common (docs/formats/rows.md).
//
//   auto writer = BlockWriter::create("out", "x.rows", kRows);
//   if (auto ok = writer->append(payload, 256); !ok) return fail(ok.error());
//   if (auto ok = writer->end(note); !ok) return fail(ok.error());
//   auto path = writer->finish_as("out/x.rows");
//
//   auto file = BlockFile::read(*MappedFile::open(path), kRows);
//   auto payload = file->payload(0);
//
// Integers are little-endian:
//
//   1. the magic, 8 bytes, then the version as 4 bytes, 4 zero bytes
//   2. blocks: their magic, bytes of the payload, number of items, crc32 of the payload (4 bytes each), then the
//      payload
//   3. where there is one, the note: "note", its bytes and their crc32 (4 bytes each), then the text
//   4. the offset of every block, 8 bytes each
//   5. "ait-end.", then the number of items and the offset of part 4 (8 bytes each)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"

namespace ait::compare {

inline constexpr size_t kItemsPerBlock = 256;

struct BlockKind {
  std::string_view magic;
  std::string_view block_magic;
  uint32_t version;
  std::string_view items;   // "rows"
  std::string_view is_not;  // of any other file: "is not a store of rows; name a .rows file that …"
  std::string_view advice;  // where it is damaged: "compare again"
  bool is_full = true;      // every block but the last has kItemsPerBlock items
};

class BlockWriter {
 public:
  // As OutputFile::create.
  static Result<BlockWriter> create(const std::string& folder, const std::string& name,
                                    const BlockKind& kind);

  // A block of 1 to kItemsPerBlock items. After a failure (a full disk) the file can only be discarded.
  Result<void> append(std::string_view payload, uint32_t items);
  // A checksum of the blocks so far.
  uint32_t checksum() const { return checksum_; }
  // After the last block. kUnwritable where the note is longer than is ever read.
  Result<void> end(std::string_view note);
  // Makes the file appear, in place of whatever is there; without it nothing ever appears.
  Result<std::string> finish_as(const std::string& path) { return file_.finish_as(path); }

 private:
  BlockWriter(OutputFile file, const BlockKind& kind) : file_(std::move(file)), kind_(&kind) {}
  Result<void> write(std::string_view bytes);

  OutputFile file_;
  const BlockKind* kind_;
  uint64_t written_bytes_ = 0;
  uint64_t items_ = 0;
  uint32_t checksum_ = 0;
  std::vector<uint64_t> blocks_;
};

class BlockFile {
 public:
  BlockFile() = default;
  // kUnsupported: another kind of file, or another version. kCorrupt: an end that makes no sense.
  static Result<BlockFile> read(std::shared_ptr<const MappedFile> file, const BlockKind& kind);

  const std::string& path() const { return file_->path(); }
  std::span<const std::byte> bytes() const { return file_->bytes(); }
  size_t items() const { return items_; }
  size_t blocks() const { return blocks_.size(); }
  bool is_complete() const { return complete_; }  // the writer came to its end

  struct Block {
    std::span<const std::byte> payload;
    uint32_t items;
  };
  // kCorrupt where it is damaged.
  Result<Block> block(size_t index) const;
  Error damaged(size_t block) const;  // for a payload that makes no sense

  // As the writer was given it; empty where there is none. kCorrupt where it is damaged.
  Result<std::string> note() const;

 private:
  Result<void> read_end();
  void scan();

  std::shared_ptr<const MappedFile> file_;
  const BlockKind* kind_ = nullptr;
  size_t items_ = 0;
  bool complete_ = false;
  std::vector<uint64_t> blocks_;  // offsets
};

}  // namespace ait::compare
