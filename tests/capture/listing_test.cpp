#include "capture/listing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

TEST(Listing, GivesParentsFilesFirstAndAllByName) {
  const formats::TempFolder folder;
  fs::create_directories(folder.path() / "b/after");
  fs::create_directories(folder.path() / "a");
  for (const char* name : {"z.bin", "b/after/y.bin", "a/x.bin", "b/w.bin"})
    std::ofstream(folder.path() / name) << "";
  std::vector<Error> problems;
  std::string files;
  each_file(list_files(folder.path(), problems),
            [&](std::string_view file) { files += std::string(file) + " "; });
  EXPECT_EQ(files, "z.bin a/x.bin b/w.bin b/after/y.bin ");
  EXPECT_TRUE(problems.empty());
}

TEST(Listing, LeavesAccessTimesOfFolders) {
  const formats::TempFolder folder;
  const fs::path inner = folder.path() / "a";
  fs::create_directories(inner);
  // A folder that was last read before it was last written: reading it would be noted.
  const std::array<timespec, 2> times = {timespec{1000, 0}, timespec{2000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, inner.c_str(), times.data(), 0), 0);
  std::vector<Error> problems;
  list_files(folder.path(), problems);
  struct stat status{};
  ASSERT_EQ(::stat(inner.c_str(), &status), 0);
  EXPECT_EQ(status.st_atim.tv_sec, 1000);
}

}  // namespace
}  // namespace ait::capture
