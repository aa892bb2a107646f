#include "compare/row_store.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "record/crc32.h"

namespace ait::compare {
namespace {

using capture::TensorRecord;
using formats::read_le;
using metrics::Comparison;
using metrics::RowFinding;

constexpr std::string_view kMagic = "ait rows";
constexpr std::string_view kBlockMagic = "rows";
constexpr std::string_view kNoteMagic = "note";
constexpr std::string_view kEndMagic = "ait-end.";
constexpr size_t kHeaderBytes = 16;
constexpr size_t kBlockHeaderBytes = 16;
constexpr size_t kNoteHeaderBytes = 12;
constexpr size_t kEndBytes = 24;

// A row may be made of names that a hostile file chose. What is longer than this is cut when it is
// written, and a file that holds more is damaged. Text is stored as what differs from the row
// before, so that without a limit a few bytes could stand for gigabytes.
constexpr size_t kMaxTextBytes = size_t{1} << 16;
constexpr size_t kMaxRowTextBytes = size_t{1} << 20;
constexpr size_t kMaxRecords = 65536;
constexpr size_t kMaxSources = 65536;
constexpr size_t kMaxNoteBytes = size_t{16} << 20;

template <std::unsigned_integral T>
void append_le(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

// The text of each field in the row before it, from which the next one usually differs little.
// Fields are counted as they are visited, so writer and reader agree on the number.
class Texts {
 public:
  explicit Texts(std::vector<std::string>& previous) : previous_(previous) {}
  void start_row() {
    field_ = 0;
    left_bytes_ = kMaxRowTextBytes;
  }
  std::string& next() {
    if (field_ == previous_.size()) previous_.emplace_back();
    return previous_[field_++];
  }
  // The records of a side share their fields, however many there are.
  size_t mark() const { return field_; }
  void back_to(size_t mark) { field_ = mark; }
  // How long the next text of this row may be.
  size_t limit() const { return std::min(kMaxTextBytes, left_bytes_); }
  void use(size_t bytes) { left_bytes_ -= bytes; }

 private:
  std::vector<std::string>& previous_;
  size_t field_ = 0;
  size_t left_bytes_ = kMaxRowTextBytes;
};

class Encoder {
 public:
  static constexpr bool kReads = false;

  Encoder(std::string& out, std::vector<std::string>& previous) : texts(previous), out_(out) {}

  bool whole(uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    out_ += static_cast<char>(value);
    return true;
  }
  bool real(double value) {
    append_le(out_, std::bit_cast<uint64_t>(value));
    return true;
  }
  bool text(const std::string& whole_text) {
    const std::string_view value(whole_text.data(), std::min(whole_text.size(), texts.limit()));
    texts.use(value.size());
    std::string& before = texts.next();
    const auto differ = std::mismatch(value.begin(), value.end(), before.begin(), before.end());
    const auto shared = static_cast<size_t>(differ.first - value.begin());
    whole(shared);
    whole(value.size() - shared);
    out_.append(value.substr(shared));
    before = value;
    return true;
  }

  Texts texts;

 private:
  std::string& out_;
};

// Every member says whether there was enough and it made sense.
class Decoder {
 public:
  static constexpr bool kReads = true;

  Decoder(std::span<const std::byte> bytes, std::vector<std::string>& previous)
      : texts(previous), rest_(bytes) {}

  bool whole(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7F) << shift;
      // The tenth byte has room for one bit.
      if ((byte & 0x80) == 0) return shift < 63 || byte <= 1;
    }
    return false;
  }
  bool real(double& value) {
    if (rest_.size() < 8) return false;
    value = std::bit_cast<double>(read_le<uint64_t>(rest_, 0));
    rest_ = rest_.subspan(8);
    return true;
  }
  bool text(std::string& value) {
    std::string& before = texts.next();
    uint64_t shared = 0;
    uint64_t more = 0;
    if (!whole(shared) || !whole(more) || shared > before.size() || more > rest_.size() ||
        shared + more > texts.limit())
      return false;
    texts.use(shared + more);
    before.resize(shared);
    before.append(reinterpret_cast<const char*>(rest_.data()), more);
    rest_ = rest_.subspan(more);
    value = before;
    return true;
  }
  bool is_empty() const { return rest_.empty(); }

  Texts texts;

 private:
  std::span<const std::byte> rest_;
};

// ---- One function for each kind of field, for both directions: T is const where it is written.

template <typename Codec, typename T>
bool field(Codec& codec, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, std::string>) {
    return codec.text(value);
  } else if constexpr (std::is_floating_point_v<Plain>) {
    return codec.real(value);
  } else if constexpr (Codec::kReads) {
    uint64_t whole = 0;
    if (!codec.whole(whole)) return false;
    if constexpr (std::is_same_v<Plain, bool>) {
      value = whole != 0;
      return whole <= 1;
    } else {
      value = static_cast<Plain>(whole);
      return static_cast<uint64_t>(value) == whole;
    }
  } else {
    return codec.whole(static_cast<uint64_t>(value));
  }
}

// Enumerations have a last value.
template <typename Codec, typename T>
bool choice(Codec& codec, T& value, std::remove_const_t<T> last) {
  using Plain = std::remove_const_t<T>;
  if constexpr (Codec::kReads) {
    uint64_t whole = 0;
    if (!codec.whole(whole) || whole > static_cast<uint64_t>(last)) return false;
    value = static_cast<Plain>(whole);
    return true;
  } else {
    return codec.whole(static_cast<uint64_t>(value));
  }
}

template <typename Codec, typename T, typename Inside>
bool optional(Codec& codec, T& value, Inside inside) {
  bool is_there = value.has_value();
  if (!field(codec, is_there)) return false;
  if constexpr (Codec::kReads) {
    if (is_there) value.emplace();
  }
  return !is_there || inside(*value);
}

template <typename Codec, typename T, typename Inside>
bool list(Codec& codec, T& values, size_t most, Inside inside) {
  uint64_t count = std::min(values.size(), most);
  if (!field(codec, count) || count > most) return false;
  for (size_t i = 0; i < count; ++i) {
    // One by one: what is said to be there need not be.
    if constexpr (Codec::kReads) values.emplace_back();
    if (!inside(values[i])) return false;
  }
  return true;
}

template <typename Codec, typename T>
bool statistics_fields(Codec& c, T& side) {
  return field(c, side.elements) && field(c, side.nan) && field(c, side.positive_inf) &&
         field(c, side.negative_inf) && field(c, side.minimum) && field(c, side.maximum) &&
         field(c, side.mean) && field(c, side.l2_norm);
}

template <typename Codec, typename T>
bool record_fields(Codec& c, T& record) {
  return field(c, record.path) && field(c, record.member) && field(c, record.rank) &&
         field(c, record.round) && field(c, record.operation) && field(c, record.type) &&
         choice(c, record.level, capture::Level::kKernel) &&
         choice(c, record.moment, capture::Moment::kBefore) &&
         choice(c, record.direction, capture::Direction::kInput) && field(c, record.index) &&
         field(c, record.call) && choice(c, record.kept, capture::Kept::kDescription);
}

template <typename Codec, typename T>
bool transform_fields(Codec& c, T& transform) {
  return field(c, transform.columns) && field(c, transform.first) && field(c, transform.taken) &&
         field(c, transform.period) && field(c, transform.heads_first) &&
         choice(c, transform.join, match::Join::kSum);
}

template <typename Codec, typename T>
bool side_fields(Codec& c, T& side) {
  const size_t mark = c.texts.mark();
  const auto one_record = [&](auto& record) {
    c.texts.back_to(mark);
    return record_fields(c, record);
  };
  if (!list(c, side.records, kMaxRecords, one_record)) return false;
  // A side without records has the fields of one, so that later fields keep their numbers.
  constexpr size_t kRecordTexts = 6;
  c.texts.back_to(mark);
  for (size_t i = 0; i < kRecordTexts; ++i) c.texts.next();
  const auto last_dtype = static_cast<DType>(kDTypeCount - 1);
  return field(c, side.lacks_member) && transform_fields(c, side.transform) &&
         choice(c, side.kept, capture::Kept::kDescription) &&
         optional(c, side.dtype, [&](auto& dtype) { return choice(c, dtype, last_dtype); }) &&
         list(c, side.shape, kMaxRank, [&](auto& size) { return field(c, size); }) &&
         (!Codec::kReads || count_elements(side.shape)) &&
         optional(c, side.statistics, [&](auto& s) { return statistics_fields(c, s); });
}

template <typename Codec, typename T>
bool finding_fields(Codec& c, T& finding) {
  return field(c, finding.rows) && field(c, finding.worst_row) &&
         field(c, finding.worst_row_cosine) && field(c, finding.kl_mean) &&
         field(c, finding.kl_max);
}

template <typename Codec, typename T>
bool profile_fields(Codec& c, T& profile) {
  return field(c, profile.error) && field(c, profile.rows) && field(c, profile.worst_row) &&
         field(c, profile.worst_row_error) && field(c, profile.usual_row_error) &&
         field(c, profile.columns) && field(c, profile.column_rows) &&
         field(c, profile.worst_column) && field(c, profile.worst_column_error) &&
         field(c, profile.usual_column_error) && field(c, profile.saturated) &&
         field(c, profile.flushed);
}

// Statistics of the two sides are the row's own and not stored twice.
template <typename Codec, typename T>
bool comparison_fields(Codec& c, T& m) {
  return field(c, m.elements) && field(c, m.compared) && field(c, m.identical) &&
         field(c, m.withheld) && field(c, m.cosine_similarity) && field(c, m.max_relative_error) &&
         field(c, m.mean_relative_error) && field(c, m.max_absolute_error) &&
         field(c, m.mean_absolute_error) && field(c, m.kl_divergence) &&
         field(c, m.relative_euclidean_distance) && field(c, m.differing) &&
         field(c, m.zero_golden_mismatch) && field(c, m.non_finite_agree) &&
         field(c, m.worst_index) && field(c, m.worst_golden) && field(c, m.worst_actual) &&
         field(c, m.golden_zero) && field(c, m.actual_zero) &&
         optional(c, m.row, [&](auto& finding) { return finding_fields(c, finding); }) &&
         optional(c, m.profile, [&](auto& profile) { return profile_fields(c, profile); });
}

// The last fields of a row: where nothing is known, the numbers of the texts are those of no others.
template <typename Codec, typename T>
bool origin_fields(Codec& c, T& origin) {
  if (!field(c, origin.is_known)) return false;
  if (!origin.is_known) return true;
  if (!field(c, origin.operation) || !choice(c, origin.kind, capture::OpKind::kMove) ||
      !list(c, origin.sources, kMaxSources, [&](auto& source) { return field(c, source); }) ||
      !field(c, origin.is_copy))
    return false;
  const size_t mark = c.texts.mark();
  return list(c, origin.passed, kMaxSources, [&](auto& operation) {
    c.texts.back_to(mark);
    return field(c, operation);
  });
}

// Sources are earlier rows: who follows them must not be led out of the file, nor in a circle.
bool are_before(const std::vector<uint32_t>& sources, size_t row) {
  return std::all_of(sources.begin(), sources.end(),
                     [&](uint32_t source) { return source >= 1 && source <= row; });
}

template <typename Codec, typename T>
bool row_fields(Codec& c, T& row) {
  c.texts.start_row();
  auto& subject = row.subject;
  return field(c, row.token) && choice(c, row.phase, match::Phase::kDecode) &&
         field(c, subject.name) && field(c, subject.tensor) && field(c, subject.member) &&
         field(c, subject.rank) &&
         optional(c, subject.first_column, [&](auto& column) { return field(c, column); }) &&
         optional(c, subject.layer, [&](auto& layer) { return field(c, layer); }) &&
         optional(c, row.certainty,
                  [&](auto& how) { return choice(c, how, match::Certainty::kLikely); }) &&
         field(c, row.certainty_reason) && side_fields(c, row.golden) &&
         side_fields(c, row.actual) &&
         optional(c, row.comparison, [&](auto& m) { return comparison_fields(c, m); }) &&
         optional(c, row.distance_at_least, [&](auto& d) { return field(c, d); }) &&
         field(c, row.reason) && origin_fields(c, row.origin);
}

bool has_text(std::span<const std::byte> bytes, uint64_t offset, std::string_view text) {
  return range_fits(offset, text.size(), bytes.size()) &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

struct BlockHeader {
  uint32_t bytes;
  uint32_t rows;
  uint32_t checksum;
};

// Nothing where no whole block is.
std::optional<BlockHeader> block_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (!range_fits(offset, kBlockHeaderBytes, bytes.size()) || !has_text(bytes, offset, kBlockMagic))
    return std::nullopt;
  const BlockHeader header{read_le<uint32_t>(bytes, offset + 4),
                           read_le<uint32_t>(bytes, offset + 8),
                           read_le<uint32_t>(bytes, offset + 12)};
  if (!range_fits(offset + kBlockHeaderBytes, header.bytes, bytes.size()) || header.rows == 0 ||
      header.rows > kRowsPerBlock)
    return std::nullopt;
  return header;
}

}  // namespace

Result<RowStoreWriter> RowStoreWriter::create(const std::string& folder, const std::string& name) {
  auto file = OutputFile::create(folder, name);
  if (!file) return fail(file.error());
  RowStoreWriter writer(std::move(*file));
  std::string header(kMagic);
  append_le(header, kRowStoreVersion);
  append_le(header, uint32_t{0});
  if (auto written = writer.write(header); !written) return fail(written.error());
  return writer;
}

Result<void> RowStoreWriter::write(std::string_view bytes) {
  written_bytes_ += bytes.size();
  return file_.write(bytes);
}

Result<void> RowStoreWriter::append(const Row& row) {
  Encoder encoder(payload_, previous_);
  row_fields(encoder, row);
  ++rows_;
  return ++payload_rows_ == kRowsPerBlock ? end_block() : Result<void>();
}

Result<void> RowStoreWriter::end_block() {
  blocks_.push_back(written_bytes_);
  std::string header(kBlockMagic);
  append_le(header, static_cast<uint32_t>(payload_.size()));
  append_le(header, payload_rows_);
  append_le(header, record::crc32(payload_.data(), payload_.size()));
  if (auto written = write(header); !written) return written;
  if (auto written = write(payload_); !written) return written;
  payload_.clear();
  payload_rows_ = 0;
  previous_.clear();  // a block is read on its own
  return {};
}

Result<std::string> RowStoreWriter::finish_beside(const std::string& report,
                                                  std::string_view note) {
  if (payload_rows_ > 0)
    if (auto ended = end_block(); !ended) return fail(ended.error());
  std::string end;
  if (!note.empty() && note.size() <= kMaxNoteBytes) {
    end += kNoteMagic;
    append_le(end, static_cast<uint32_t>(note.size()));
    append_le(end, record::crc32(note.data(), note.size()));
    end += note;
  }
  const uint64_t index_offset = written_bytes_ + end.size();
  for (const uint64_t offset : blocks_) append_le(end, offset);
  end += kEndMagic;
  append_le(end, rows_);
  append_le(end, index_offset);
  if (auto written = write(end); !written) return fail(written.error());
  return file_.finish_as(rows_path_of(report));
}

Result<RowStore> RowStore::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return read(std::move(*file));
}

Result<RowStore> RowStore::read(std::shared_ptr<const MappedFile> file) {
  const std::string& path = file->path();
  const auto bytes = file->bytes();
  if (bytes.size() < kHeaderBytes || !has_text(bytes, 0, kMagic))
    return fail(Error(ErrorCode::kUnsupported, path)
                << "is not a store of rows; name a .rows file that ait llm compare wrote");
  if (const auto version = read_le<uint32_t>(bytes, kMagic.size()); version != kRowStoreVersion)
    return fail(Error(ErrorCode::kUnsupported, path)
                << "holds rows of version " << version << ", this ait reads version "
                << kRowStoreVersion << "; compare again");
  RowStore store;
  store.file_ = std::move(file);
  if (auto end = store.read_end(); !end) return fail(end.error());
  return store;
}

Result<void> RowStore::read_end() {
  const auto bytes = file_->bytes();
  if (bytes.size() < kHeaderBytes + kEndBytes ||
      !has_text(bytes, bytes.size() - kEndBytes, kEndMagic))
    return scan();
  const uint64_t end = bytes.size() - kEndBytes;
  const uint64_t rows = read_le<uint64_t>(bytes, end + 8);
  const uint64_t index = read_le<uint64_t>(bytes, end + 16);
  const uint64_t blocks = rows / kRowsPerBlock + (rows % kRowsPerBlock != 0 ? 1 : 0);
  if (index > end || (end - index) % 8 != 0 || (end - index) / 8 != blocks)
    return fail(Error(ErrorCode::kCorrupt, file_->path(), end)
                << "its index does not fit its number of rows; compare again");
  for (uint64_t i = 0; i < blocks; ++i) blocks_.push_back(read_le<uint64_t>(bytes, index + 8 * i));
  rows_ = rows;
  complete_ = true;
  return {};
}

// The blocks of a writer that did not come to its end.
Result<void> RowStore::scan() {
  for (uint64_t at = kHeaderBytes;;) {
    const auto header = block_at(file_->bytes(), at);
    if (!header) break;
    blocks_.push_back(at);
    rows_ += header->rows;
    at += kBlockHeaderBytes + header->bytes;
    if (header->rows < kRowsPerBlock) break;
  }
  return {};
}

Result<std::vector<Row>> RowStore::read_block(size_t block) const {
  const uint64_t offset = blocks_[block];
  const auto damaged = [&] {
    return Error(ErrorCode::kCorrupt, file_->path(), offset)
           << "holds a damaged block of rows; compare again";
  };
  const auto header = block_at(file_->bytes(), offset);
  const size_t expected = std::min(kRowsPerBlock, rows_ - block * kRowsPerBlock);
  if (!header || header->rows != expected) return fail(damaged());
  const auto payload = file_->bytes().subspan(offset + kBlockHeaderBytes, header->bytes);
  if (record::crc32(payload.data(), payload.size()) != header->checksum) return fail(damaged());
  std::vector<Row> rows(header->rows);
  std::vector<std::string> previous;
  Decoder decoder(payload, previous);
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    if (!row_fields(decoder, row) || !are_before(row.origin.sources, block * kRowsPerBlock + i))
      return fail(damaged());
    if (row.comparison && row.golden.statistics) row.comparison->golden = *row.golden.statistics;
    if (row.comparison && row.actual.statistics) row.comparison->actual = *row.actual.statistics;
  }
  if (!decoder.is_empty()) return fail(damaged());
  return rows;
}

Result<Row> RowStore::at(size_t index) const {
  if (index >= rows_)
    return fail(Error(ErrorCode::kUsage, file_->path())
                << "holds " << rows_ << " rows, there is no row " << index);
  const size_t block = index / kRowsPerBlock;
  if (block != loaded_) {
    block_ = read_block(block);
    loaded_ = block;
  }
  if (!block_) return fail(block_.error());
  return (*block_)[index % kRowsPerBlock];
}

Result<std::string> RowStore::note() const {
  uint64_t at = kHeaderBytes;
  if (!blocks_.empty()) {
    const auto last = block_at(file_->bytes(), blocks_.back());
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
                << "holds a damaged note on its rows; compare again");
  const auto text = bytes.subspan(start, length);
  return std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

std::string rows_path_of(const std::string& report) {
  const size_t slash = report.rfind('/');
  const size_t dot = report.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return (has_extension ? report.substr(0, dot) : report) + ".rows";
}

}  // namespace ait::compare
