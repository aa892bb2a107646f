#include "record/crc32.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace ait::record {
namespace {

// One bit at a time, straight from the definition.
uint32_t crc32_by_bits(const std::string& data) {
  uint32_t state = ~uint32_t{0};
  for (const char byte : data) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~state;
}

TEST(Crc32, AgreesWithKnownChecksums) {
  EXPECT_EQ(crc32("", 0), 0u);
  EXPECT_EQ(crc32("123456789", 9), 0xCBF43926u);
  // zlib.crc32(bytes(range(256)) * 4)
  std::string counted;
  for (int i = 0; i < 1024; ++i) counted += static_cast<char>(i);
  EXPECT_EQ(crc32(counted.data(), counted.size()), 0xB70B4C26u);
}

TEST(Crc32, AgreesWithItsDefinitionForEveryLengthAndAlignment) {
  std::string data;
  uint32_t seed = 1;
  for (int i = 0; i < 700; ++i)
    data += static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  for (size_t length = 0; length < 600; ++length) {
    const std::string part = data.substr(length % 17, length);
    const char* unaligned = data.data() + length % 17;
    EXPECT_EQ(crc32(unaligned, length), crc32_by_bits(part)) << length;
    EXPECT_EQ(detail::crc32_by_tables(unaligned, length, 0), crc32_by_bits(part)) << length;
  }
}

RC_GTEST_PROP(Crc32, ContinuesWhereItStopped,
              (const std::string& first, const std::string& second)) {
  std::string whole;
  for (int i = 0; i < 20; ++i) whole += first;
  const size_t cut = whole.size();
  whole += second;
  const uint32_t begun = crc32(whole.data(), cut);
  RC_ASSERT(crc32(whole.data() + cut, whole.size() - cut, begun) ==
            crc32(whole.data(), whole.size()));
}

}  // namespace
}  // namespace ait::record
