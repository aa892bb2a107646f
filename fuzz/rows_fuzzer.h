// What is done with a store of rows of outside origin: open it, read rows by number, make the texts
// of a report of them. The replay of the corpus (tests/attacks) includes it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checked.h"
#include "compare/row_store.h"
#include "formats/little_endian.h"
#include "fuzz/reader_fuzzer.h"
#include "record/crc32.h"
#include "tables/comparison.h"

namespace ait::fuzz {

inline constexpr size_t kMaxRows = 300;

// How many of the first and last rows could be read, and why the others could not.
struct RowsReading {
  size_t read = 0;
  std::vector<Error> errors;
};

inline RowsReading read_rows(std::shared_ptr<const MappedFile> file) {
  RowsReading reading;
  const auto store = compare::RowStore::read(std::move(file));
  if (!store) {
    reading.errors.push_back(store.error());
    return reading;
  }
  static const auto kColumns = tables::comparison_columns(true);
  const size_t count = std::min(store->size(), kMaxRows);
  for (size_t i = 0; i < 2 * count; ++i) {
    const auto row = store->at(i < count ? i : store->size() - 1 - (i - count));
    if (row) {
      ++reading.read;
      static_cast<void>(report::column_texts(kColumns, *row));
    } else {
      reading.errors.push_back(row.error());
    }
  }
  return reading;
}

// The input with the checksum of each block that its index or its order leads to set right: a
// fuzzer would never find one that fits.
inline std::vector<std::byte> with_true_checksums(std::span<const std::byte> input) {
  std::vector<std::byte> out(input.begin(), input.end());
  constexpr uint64_t kHeader = 16;
  for (uint64_t at = kHeader; range_fits(at, kHeader, out.size());) {
    const uint64_t bytes =
        std::min<uint64_t>(formats::read_le<uint32_t>(out, at + 4), out.size() - at - kHeader);
    const uint32_t checksum = record::crc32(out.data() + at + kHeader, bytes);
    for (size_t i = 0; i < 4; ++i)
      out[at + 12 + i] = static_cast<std::byte>((checksum >> (8 * i)) & 0xFF);
    at += kHeader + bytes;
  }
  return out;
}

inline int read_as_rows(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const InputFile input(bytes); input.file()) read_rows(input.file());
  if (const InputFile input(with_true_checksums(bytes)); input.file()) read_rows(input.file());
  return 0;
}

}  // namespace ait::fuzz
