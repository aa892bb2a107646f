// What is done with a plan of outside origin, and with a part: open it, make pairs, divide it, make rows. The replay of
// the corpora (tests/attacks) includes it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/checked.h"
#include "compare/part.h"
#include "compare/plan.h"
#include "formats/little_endian.h"
#include "fuzz/reader_fuzzer.h"
#include "fuzz/rows_fuzzer.h"
#include "record/crc32.h"

namespace ait::fuzz {

inline constexpr size_t kMaxPlannedPairs = 300;

// Why it cannot be read, if it cannot.
inline std::vector<Error> read_plan(std::shared_ptr<const MappedFile> file) {
  const auto plan = compare::Plan::read(std::move(file));
  if (!plan) return {plan.error()};
  std::vector<Error> errors;
  const match::Pairs pairs = plan->pairs();
  for (size_t i = 0; i < std::min<size_t>(pairs.count, kMaxPlannedPairs); ++i)
    static_cast<void>(compare::unread_row(pairs.at(i)));
  constexpr uint32_t kParts = 3;
  for (uint32_t part = 1; part <= kParts; ++part) {
    const auto found = plan->part({part, kParts});
    if (!found) {
      errors.push_back(found.error());
      continue;
    }
    for (size_t i = 0; i < found->pairs.count; ++i) {
      static_cast<void>(found->pairs.at(i));
      static_cast<void>(found->number(i));
    }
  }
  return errors;
}

inline std::vector<Error> read_part(std::shared_ptr<const MappedFile> file) {
  const auto rows = compare::rows_of_part(std::move(file));
  return rows ? std::vector<Error>() : std::vector<Error>{rows.error()};
}

// with_true_checksums, and that of the note, where the blocks end.
inline std::vector<std::byte> with_true_note(std::span<const std::byte> input) {
  std::vector<std::byte> out = with_true_checksums(input);
  constexpr uint64_t kHeader = 12;
  uint64_t at = 16;
  while (range_fits(at, 16, out.size()) && (out[at] == std::byte{'p'} || out[at] == std::byte{'r'}))
    at += 16 + uint64_t{formats::read_le<uint32_t>(out, at + 4)};
  if (!range_fits(at, kHeader, out.size()) || out[at] != std::byte{'n'}) return out;
  const uint64_t bytes = formats::read_le<uint32_t>(out, at + 4);
  if (!range_fits(at + kHeader, bytes, out.size())) return out;
  // The checksum that follows a block's header would have been written over the note.
  std::copy(input.begin() + static_cast<ptrdiff_t>(at), input.end(),
            out.begin() + static_cast<ptrdiff_t>(at));
  const uint32_t checksum = record::crc32(out.data() + at + kHeader, bytes);
  for (size_t i = 0; i < 4; ++i)
    out[at + 8 + i] = static_cast<std::byte>((checksum >> (8 * i)) & 0xFF);
  return out;
}

inline int read_as_plan(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const InputFile input(bytes); input.file()) read_plan(input.file());
  if (const InputFile input(with_true_note(bytes)); input.file()) read_plan(input.file());
  return 0;
}

inline int read_as_part(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const InputFile input(bytes); input.file()) read_part(input.file());
  if (const InputFile input(with_true_note(bytes)); input.file()) read_part(input.file());
  return 0;
}

}  // namespace ait::fuzz
