#include "base/read_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../launch/scratch_folder.h"
#include "base/mapped_file.h"

namespace ait {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(ReadBuffers, WhatGoesBackIsUsedAgain) {
  const ReadBuffers buffers;
  auto first = buffers.take(kMebibyte);
  ASSERT_NE(first, nullptr);
  const std::byte* const at = first.get();
  const auto second = buffers.take(kMebibyte);
  EXPECT_NE(second.get(), at);
  first.reset();
  EXPECT_EQ(buffers.take(kMebibyte - 100000).get(), at);
}

TEST(ReadBuffers, TheSmallestThatIsLargeEnoughIsTaken) {
  const ReadBuffers buffers;
  auto large = buffers.take(4 * kMebibyte);
  auto small = buffers.take(kMebibyte);
  const std::byte* const of_small = small.get();
  const std::byte* const of_large = large.get();
  small.reset();
  large.reset();
  const auto one = buffers.take(kMebibyte);
  const auto other = buffers.take(kMebibyte);
  EXPECT_EQ(one.get(), of_small);
  EXPECT_EQ(other.get(), of_large);
}

TEST(ReadBuffers, AreNoLargerTogetherThanAllowed) {
  const ReadBuffers buffers(4 * kMebibyte);
  std::vector<std::shared_ptr<std::byte[]>> taken;
  for (int i = 0; i < 4; ++i) ASSERT_NE(taken.emplace_back(buffers.take(kMebibyte)), nullptr);
  EXPECT_EQ(buffers.take(kMebibyte), nullptr);
  taken.clear();
  // Those that are too small give way.
  EXPECT_NE(buffers.take(4 * kMebibyte), nullptr);
  EXPECT_EQ(buffers.take(5 * kMebibyte), nullptr);
  EXPECT_EQ(ReadBuffers().take(ReadBuffers::kMostOfAFile + 1), nullptr);
}

TEST(ReadBuffers, ABufferMayOutliveThem) {
  std::optional<ReadBuffers> buffers(std::in_place);
  const auto kept = buffers->take(kMebibyte);
  buffers.reset();
  std::memset(kept.get(), 1, kMebibyte);
}

TEST(ReadBuffers, FilesAreReadIntoThemAndLargeOnesMapped) {
  const ScratchFolder scratch;
  const ReadBuffers buffers;
  for (const size_t size :
       {size_t{100000}, 3 * kMebibyte, ReadBuffers::kMostOfAFile, ReadBuffers::kMostOfAFile + 1}) {
    SCOPED_TRACE(size);
    std::string content(size, 'a');
    for (size_t i = 0; i < size; i += 4093) content[i] = static_cast<char>('a' + i % 26);
    const std::string path = scratch.file("x", content);
    const auto file = MappedFile::open(path, &buffers);
    ASSERT_TRUE(file.has_value());
    ASSERT_EQ((*file)->bytes().size(), size);
    EXPECT_EQ(std::memcmp((*file)->bytes().data(), content.data(), size), 0);
    // Who has read a file does not notice that it is cut.
    if (size > ReadBuffers::kMostOfAFile) continue;
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(std::memcmp((*file)->bytes().data(), content.data(), size), 0);
  }
}

}  // namespace
}  // namespace ait
