// What is done with an index of folders of outside origin: read it, find every unit, and write it again, which must
// give what was read. The replay of the corpus (tests/attacks) includes it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "capture/folder_index_file.h"
#include "record/crc32.h"

namespace ait::fuzz {

inline void read_folder_index(std::string_view bytes) {
  const capture::FolderIdentity of{"/dump/0_77", 1, 2};  // as the seeds have it
  capture::KnownFolders known;
  if (!known.read(bytes, of)) {
    if (known.units() != 0 || !known.shapes.empty()) std::abort();
    return;
  }
  for (const auto& [round, units] : known.rounds)
    for (const capture::KnownUnit& unit : units) {
      const capture::KnownShape& shape = known.shapes[unit.shape];
      const capture::KnownUnit* found = known.find(round, shape.unit);
      if (found != &unit) std::abort();
      for (size_t i = 0; i < shape.folder_count; ++i)
        static_cast<void>(capture::stamp_at(unit.stamps, i));
    }
  const std::string again = folder_index_bytes(known, of);
  if (!capture::KnownFolders().read(again, of)) std::abort();
}

inline int read_as_folder_index(const uint8_t* data, size_t size) {
  // A copy of exactly this size, which AddressSanitizer watches.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read_folder_index(bytes);
  // A fuzzer would never find a checksum that fits.
  constexpr size_t kHeader = 16;
  if (size < kHeader) return 0;
  const uint32_t checksum = record::crc32(bytes.data() + kHeader, size - kHeader);
  for (size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<char>((checksum >> (8 * i)) & 0xFF);
  read_folder_index(bytes);
  return 0;
}

}  // namespace ait::fuzz
