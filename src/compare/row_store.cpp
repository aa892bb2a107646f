#include "compare/row_store.h"

#include <algorithm>

#include "compare/row_codec.h"

namespace ait::compare {
namespace {

constexpr BlockKind kRows = {"ait rows",
                             "rows",
                             kRowStoreVersion,
                             "rows",
                             "is not a store of rows; name a .rows file that ait llm compare wrote",
                             "compare again"};
constexpr size_t kMaxNoteBytes = size_t{16} << 20;

}  // namespace

Result<RowStoreWriter> RowStoreWriter::create(const std::string& folder, const std::string& name) {
  auto file = BlockWriter::create(folder, name, kRows);
  if (!file) return fail(file.error());
  return RowStoreWriter(std::move(*file));
}

Result<void> RowStoreWriter::append(const Row& row) {
  Encoder encoder(payload_, previous_);
  row_fields(encoder, row);
  return ++payload_rows_ == kRowsPerBlock ? end_block() : Result<void>();
}

Result<void> RowStoreWriter::end_block() {
  auto written = file_.append(payload_, payload_rows_);
  payload_.clear();
  payload_rows_ = 0;
  previous_.clear();  // a block is read on its own
  return written;
}

Result<std::string> RowStoreWriter::finish_beside(const std::string& report,
                                                  std::string_view note) {
  if (payload_rows_ > 0)
    if (auto ended = end_block(); !ended) return fail(ended.error());
  // Rows can be read without their note.
  if (note.size() > kMaxNoteBytes) note = {};
  if (auto ended = file_.end(note); !ended) return fail(ended.error());
  return file_.finish_as(rows_path_of(report));
}

Result<RowStore> RowStore::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return read(std::move(*file));
}

Result<RowStore> RowStore::read(std::shared_ptr<const MappedFile> file) {
  auto blocks = BlockFile::read(std::move(file), kRows);
  if (!blocks) return fail(blocks.error());
  RowStore store;
  store.file_ = std::move(*blocks);
  return store;
}

Result<std::vector<Row>> RowStore::read_block(size_t block) const {
  const auto found = file_.block(block);
  if (!found) return fail(found.error());
  const size_t first = block * kRowsPerBlock;
  if (found->items != std::min(kRowsPerBlock, size() - std::min(first, size())))
    return fail(file_.damaged(block));
  std::vector<Row> rows(found->items);
  std::vector<std::string> previous;
  Decoder decoder(found->payload, previous);
  for (size_t i = 0; i < rows.size(); ++i)
    if (!row_fields(decoder, rows[i]) || !complete_row(rows[i], first + i))
      return fail(file_.damaged(block));
  if (!decoder.is_empty()) return fail(file_.damaged(block));
  return rows;
}

Result<Row> RowStore::at(size_t index) const {
  if (index >= size())
    return fail(Error(ErrorCode::kUsage, file_.path())
                << "holds " << size() << " rows, there is no row " << index);
  const size_t block = index / kRowsPerBlock;
  if (block != loaded_) {
    block_ = read_block(block);
    loaded_ = block;
  }
  if (!block_) return fail(block_.error());
  return (*block_)[index % kRowsPerBlock];
}

std::string rows_path_of(const std::string& report) {
  const size_t slash = report.rfind('/');
  const size_t dot = report.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return (has_extension ? report.substr(0, dot) : report) + ".rows";
}

}  // namespace ait::compare
