// Every row of a comparison in a file, to be read again in order or by number in bounded memory:
// what findings, pages and `ait locate` look at after a run of a million rows.
//
//   auto writer = RowStoreWriter::create("out", "ait_cmp_report_20250102030405.rows");
//   for (const Row& row : rows)
//     if (auto ok = writer->append(row); !ok) return fail(ok.error());
//   auto path = writer->finish_beside("out/ait_cmp_report_20250102030405.csv");
//
//   auto store = RowStore::open(*path);
//   if (!store) return fail(store.error());            // kCorrupt, kUnsupported: another version
//   for (size_t i = 0; i < store->size(); ++i)
//     if (auto row = store->at(i)) use(*row);
//
// The file is that of block_file.h (docs/formats/rows.md); every block but the last has kRowsPerBlock rows.
//
// A payload is the fields of its rows one after the other, in the order of row_fields() in
// row_codec.h: whole numbers as LEB128, reals as 8 bytes, text as the length that it shares with
// the same field of the row before and the rest. Text beyond 64 KiB, or 1 MiB in a row, is cut when
// it is written and refused when it is read. Without an end (a writer that was killed) the
// blocks that are whole are read. A change of fields is a new version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "compare/block_file.h"
#include "compare/row.h"

namespace ait::compare {

inline constexpr uint32_t kRowStoreVersion = 3;
inline constexpr size_t kRowsPerBlock = kItemsPerBlock;

class RowStoreWriter {
 public:
  // As OutputFile::create.
  static Result<RowStoreWriter> create(const std::string& folder, const std::string& name);

  // After a failure (a full disk) the store can only be discarded.
  Result<void> append(const Row& row);

  // Makes the store appear as `report` with the extension .rows; without it nothing ever appears.
  // `note` is what is to be known of all rows together. Returns the path.
  Result<std::string> finish_beside(const std::string& report, std::string_view note = {});

 private:
  explicit RowStoreWriter(BlockWriter file) : file_(std::move(file)) {}
  Result<void> end_block();

  BlockWriter file_;
  std::string payload_;
  uint32_t payload_rows_ = 0;
  std::vector<std::string> previous_;  // text of the row before, by field
};

// Reading keeps the block that was asked for last, or why it could not be read, so that rows in
// order are decoded once. Not for several threads at once.
class RowStore {
 public:
  static Result<RowStore> open(const std::string& path);
  static Result<RowStore> read(std::shared_ptr<const MappedFile> file);

  size_t size() const { return file_.items(); }
  bool is_complete() const { return file_.is_complete(); }  // the writer came to its end
  Result<Row> at(size_t index) const;
  // As the writer was given it; empty where there is none. kCorrupt where it is damaged.
  Result<std::string> note() const { return file_.note(); }

 private:
  RowStore() = default;
  Result<std::vector<Row>> read_block(size_t block) const;

  BlockFile file_;
  mutable size_t loaded_ = ~size_t{0};
  mutable Result<std::vector<Row>> block_;
};

// "out/ait_cmp_report_20250102030405.rows" of "out/ait_cmp_report_20250102030405.csv".
std::string rows_path_of(const std::string& report);

}  // namespace ait::compare
