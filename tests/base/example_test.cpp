// The example at the head of base/error.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"

namespace ait {
namespace {

Result<std::string> read_magic(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  if (bytes.size() < 6)
    return fail(Error(ErrorCode::kCorrupt, path, bytes.size())
                << "6 bytes were expected; the file was probably cut short");
  return std::string(reinterpret_cast<const char*>(bytes.data()), 6);
}

TEST(BaseExample, GivesTheValueOrSaysWhatIsWrong) {
  const std::string path = testing::TempDir() + "base_example.npy";
  std::ofstream(path) << "numpy!";
  EXPECT_EQ(read_magic(path).value(), "numpy!");
  std::ofstream(path) << "nump";
  EXPECT_EQ(read_magic(path).error().text(),
            path + ": 6 bytes were expected; the file was probably cut short (at byte 4)");
  std::filesystem::remove(path);
  EXPECT_EQ(read_magic(path).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ait
