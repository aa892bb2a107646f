#include "compare/row_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "columns_text.h"
#include "compare/measure.h"
#include "record/crc32.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::compare {
namespace {

using formats::little_endian;
using formats::TempFolder;

capture::TensorRecord record(const std::string& path, const std::string& rank) {
  capture::TensorRecord out;
  out.path = path;
  out.rank = rank;
  out.round = "3";
  out.operation = "2_Layer/0_Linear";
  out.type = "LinearOperation";
  out.moment = capture::Moment::kBefore;
  out.direction = capture::Direction::kInput;
  out.index = 7;
  out.call = 2;
  return out;
}

// Rows of every kind: measured, failed, one-sided, sharded, described only.
Row row_number(size_t i) {
  const auto golden = floats({1, 2, static_cast<float>(i)});
  Options options{MetricCompat::kOwn, i % 3 == 0, 1};
  options.profile = i % 2 == 0;
  Row row;
  if (i % 5 == 4) {
    row = measure(fail(Error(ErrorCode::kNotFound) << "no counterpart in golden-path."), golden,
                  options);
  } else if (i % 5 == 3) {
    row = measure(golden, Content(formats::Description{DType::kBFloat16, {3}, false, {}}), options);
  } else {
    row = measure(golden, floats({1, 2, static_cast<float>(i) + 0.5F}), options);
    row.golden.records = {record("run/golden/" + std::to_string(i) + ".pth", "0")};
    row.certainty = match::Certainty::kLikely;
    row.certainty_reason = "types and order fit";
  }
  row.actual.records = {record("run/my/" + std::to_string(i) + ".bin", "0"),
                        record("run/my/" + std::to_string(i) + ".1.bin", "1")};
  row.actual.transform.join = match::Join::kColumns;
  row.token = std::to_string(i / 100);
  row.phase = i < 100 ? match::Phase::kPrefill : match::Phase::kDecode;
  row.subject.name = "2_Layer/" + std::to_string(i) + "_Linear";
  row.subject.tensor = "outtensor0";
  if (i % 2 == 0) row.subject.layer = static_cast<uint32_t>(i);
  if (i % 7 == 0) row.subject.first_column = 64;
  if (i % 6 == 0)
    row.estimate = {{0.5, 0.25, 0.75}, {0.9, 0.8, 0.95}, {{i, i + 3, 0.125}}, std::nullopt};
  if (i % 4 != 0) {
    row.origin.is_known = true;
    row.origin.operation = "root.model.layers." + std::to_string(i) + ".mlp";
    row.origin.kind = i % 4 == 1 ? capture::OpKind::kMove : capture::OpKind::kLinear;
    row.origin.is_copy = i % 4 == 1;
    row.origin.sources = {1};
    if (i % 4 == 3) row.origin.sources = {1, 2, static_cast<uint32_t>(i)};
    if (i % 4 == 2) row.origin.passed = {"view", "views", ""};
  }
  return row;
}

std::string store(const TempFolder& folder, size_t rows) {
  auto writer = RowStoreWriter::create(folder.path().string(), "report.rows");
  EXPECT_TRUE(writer) << writer.error().text();
  for (size_t i = 0; i < rows; ++i) EXPECT_TRUE(writer->append(row_number(i)));
  const auto path = writer->finish_beside((folder.path() / "report.csv").string());
  EXPECT_TRUE(path) << path.error().text();
  return path.value_or("");
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RowStore, GivesBackEveryFactInOrderAndByNumber) {
  const TempFolder folder;
  constexpr size_t kRows = 2 * kRowsPerBlock + 17;
  const auto opened = RowStore::open(store(folder, kRows));
  ASSERT_TRUE(opened) << opened.error().text();
  ASSERT_EQ(opened->size(), kRows);
  EXPECT_TRUE(opened->is_complete());
  std::vector<Row> read;
  std::vector<Row> written;
  for (size_t i = 0; i < kRows; ++i) {
    auto row = opened->at(i);
    ASSERT_TRUE(row) << row.error().text();
    written.push_back(row_number(i));
    EXPECT_EQ(row->subject, written.back().subject);
    EXPECT_EQ(row->phase, written.back().phase);
    EXPECT_EQ(row->origin, written.back().origin);
    EXPECT_EQ(row->golden.kept, written.back().golden.kept);
    EXPECT_EQ(row->actual.kept, written.back().actual.kept);
    EXPECT_EQ(row->distance_at_least, written.back().distance_at_least);
    EXPECT_EQ(row->estimate, written.back().estimate);
    EXPECT_EQ(row->actual.records.back().index, 7U);
    EXPECT_EQ(row->actual.records.back().moment, capture::Moment::kBefore);
    EXPECT_EQ(row->actual.transform, written.back().actual.transform);
    if (row->comparison) {
      EXPECT_EQ(row->comparison->golden.mean, written.back().comparison->golden.mean);
      EXPECT_EQ(row->comparison->profile, written.back().comparison->profile);
    }
    read.push_back(std::move(*row));
  }
  EXPECT_EQ(all_text(read), all_text(written));
  EXPECT_EQ(opened->at(kRows - 1)->subject.name, written.back().subject.name);
  EXPECT_EQ(opened->at(0)->subject.name, written.front().subject.name);
  EXPECT_FALSE(opened->at(kRows));
}

TEST(RowStore, OfNoRowsIsAStore) {
  const TempFolder folder;
  const auto opened = RowStore::open(store(folder, 0));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->size(), 0U);
}

TEST(RowStore, GivesBackItsNote) {
  for (const size_t rows : {0, 3, 300}) {
    const TempFolder folder;
    auto writer = RowStoreWriter::create(folder.path().string(), "report.rows");
    for (size_t i = 0; i < rows; ++i) ASSERT_TRUE(writer->append(row_number(i)));
    const auto path = writer->finish_beside((folder.path() / "report.csv").string(), "{\"a\": 1}");
    ASSERT_TRUE(path);
    auto store = RowStore::open(*path);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->size(), rows);
    EXPECT_EQ(*store->note(), "{\"a\": 1}");
    if (rows > 0) {
      EXPECT_EQ(store->at(rows - 1)->subject, row_number(rows - 1).subject);
    }

    std::fstream file(*path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    file.seekp(static_cast<std::streamoff>(bytes.find("{\"a\"")));
    file.put('[');
    file.close();
    store = RowStore::open(*path);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->note().error().code(), ErrorCode::kCorrupt);
  }
}

TEST(RowStore, WithoutANoteHasAnEmptyOne) {
  const TempFolder folder;
  auto writer = RowStoreWriter::create(folder.path().string(), "report.rows");
  ASSERT_TRUE(writer->append(row_number(0)));
  const auto store = RowStore::open(*writer->finish_beside((folder.path() / "x.csv").string()));
  ASSERT_TRUE(store);
  EXPECT_EQ(*store->note(), "");
}

TEST(RowStore, KeepsTheWholeBlocksOfAWriterThatWasKilled) {
  const TempFolder folder;
  const std::string whole = content(store(folder, 3 * kRowsPerBlock));
  for (const size_t kept : {whole.size() - 1, whole.size() / 2, whole.size() / 3, size_t{16}}) {
    const auto opened = RowStore::open(folder.write("cut.rows", whole.substr(0, kept)));
    ASSERT_TRUE(opened) << kept;
    EXPECT_FALSE(opened->is_complete());
    EXPECT_EQ(opened->size() % kRowsPerBlock, 0U);
    for (size_t i = 0; i < opened->size(); ++i) ASSERT_TRUE(opened->at(i));
  }
}

TEST(RowStore, RefusesForeignFilesAndOtherVersions) {
  const TempFolder folder;
  EXPECT_FALSE(RowStore::open(folder.write("x.rows", "")));
  EXPECT_FALSE(RowStore::open(folder.write("x.rows", "token_id,data_id\n1,2\n")));
  std::string other = content(store(folder, 3));
  for (const char version : {'\1', '\2'}) {
    other[8] = version;
    const auto opened = RowStore::open(folder.write("x.rows", other));
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().text().find("holds rows of version " + std::to_string(version) +
                                         ", this ait reads version 3; compare again"),
              std::string::npos)
        << opened.error().text();
  }
}

// A store of one block with this payload, whole but for its end.
std::string wrapped(const std::string& payload, uint32_t rows = 1) {
  return "ait rows" + little_endian(kRowStoreVersion, 4) + little_endian(0, 4) + "rows" +
         little_endian(payload.size(), 4) + little_endian(rows, 4) +
         little_endian(record::crc32(payload.data(), payload.size()), 4) + payload;
}

std::string payload_of(const std::string& whole) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, whole.data() + 20, sizeof bytes);
  return whole.substr(32, bytes);
}

TEST(RowStore, CutsTextThatNoRealRowHas) {
  const TempFolder folder;
  auto writer = RowStoreWriter::create(folder.path().string(), "report.rows");
  Row row = row_number(0);
  row.subject.name = std::string(100'000, 'n');
  row.actual.records.assign(70'000, record(std::string(40, 'p'), "0"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->append(row));
  const auto opened = RowStore::open(*writer->finish_beside((folder.path() / "x.csv").string()));
  ASSERT_TRUE(opened);
  for (size_t i = 0; i < 3; ++i) {
    const auto read = opened->at(i);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->subject.name, std::string(1 << 16, 'n'));
    EXPECT_EQ(read->golden.records[0].path, row.golden.records[0].path);
    ASSERT_EQ(read->actual.records.size(), 65536U);
    EXPECT_EQ(read->actual.records[0].path, std::string(40, 'p'));
    EXPECT_EQ(read->actual.records.back().path, "") << "there is room for 1 MiB in a row";
  }
}

TEST(RowStore, RefusesSourcesThatAreNoEarlierRows) {
  const TempFolder folder;
  for (const uint32_t source : {0U, 4U, ~0U}) {
    auto writer = RowStoreWriter::create(folder.path().string(), "report.rows");
    for (size_t i = 0; i < 4; ++i) {
      Row row = row_number(i);
      if (i == 3) row.origin.sources = {1, source};
      ASSERT_TRUE(writer->append(row));
    }
    const auto opened = RowStore::open(*writer->finish_beside((folder.path() / "x.csv").string()));
    EXPECT_FALSE(opened->at(0)) << source;
  }
}

TEST(RowStore, DoesNotGrowBeyondTheLimitOfARow) {
  const TempFolder folder;
  const std::string text(60'000, 'x');
  // "0", unknown phase, then a name of 60 KB; the records of golden repeat their path of 60 KB in
  // two bytes.
  std::string payload = std::string(
                            "\0\1"
                            "0\0",
                            4) +
                        std::string("\0\xe0\xd4\3", 4) + text + std::string(10, '\0') +
                        std::string("\xe8\7", 2);  // 1000 records
  payload += std::string("\0\xe0\xd4\3", 4) + text + std::string(16, '\0');
  for (int i = 1; i < 1000; ++i) payload += std::string("\xe0\xd4\3\0", 4) + std::string(16, '\0');
  const auto opened = RowStore::open(folder.write("x.rows", wrapped(payload)));
  ASSERT_TRUE(opened);
  ASSERT_EQ(opened->size(), 1U);
  const auto row = opened->at(0);
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code(), ErrorCode::kCorrupt);
}

TEST(RowStore, RefusesPayloadsThatMakeNoSense) {
  const TempFolder folder;
  const auto reads = [&](const std::string& payload, uint32_t rows = 1) {
    const auto opened = RowStore::open(folder.write("x.rows", wrapped(payload, rows)));
    EXPECT_TRUE(opened);
    return opened && opened->size() == rows && opened->at(0);
  };
  const std::string good = payload_of(content(store(folder, 1)));
  ASSERT_TRUE(reads(good));
  EXPECT_FALSE(reads(good + "x")) << "something left over";
  EXPECT_FALSE(reads(good, 2)) << "one row less than said";
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(reads(good.substr(0, length))) << length;
  std::string phase = good;
  phase[3] = 3;
  EXPECT_FALSE(reads(phase));
  std::string shared = good;
  shared[0] = 1;
  EXPECT_FALSE(reads(shared)) << "the first row of a block shares with nothing";
}

TEST(RowStore, NoticesDamageWhereverItIs) {
  const TempFolder folder;
  const std::string whole = content(store(folder, 40));
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    const size_t at = 16 + random() % (damaged.size() - 16);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const auto opened = RowStore::open(folder.write("x.rows", damaged));
    if (!opened) continue;
    size_t good = 0;
    for (size_t row = 0; row < opened->size(); ++row) good += opened->at(row) ? 1 : 0;
    // Only the reserved bytes and an end that is no longer one leave the rows as they were.
    if (opened->is_complete()) {
      EXPECT_EQ(good, 0U) << "byte " << at;
    }
  }
}

}  // namespace
}  // namespace ait::compare
