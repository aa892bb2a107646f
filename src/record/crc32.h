// The checksum of zip archives (polynomial 0x04C11DB7, reflected), fast enough not to slow a dump
// down: carry-less multiplication where the CPU has it, tables elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ait::record {

// `previous` continues an earlier checksum: crc32(ab) == crc32(b, crc32(a)).
uint32_t crc32(const void* data, size_t bytes, uint32_t previous = 0);

namespace detail {
// The oracle of the fast path and what runs on other CPUs.
uint32_t crc32_by_tables(const void* data, size_t bytes, uint32_t previous);
}  // namespace detail

}  // namespace ait::record
