#include "record/repeat_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "../launch/scratch_folder.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;

class RepeatFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  WriteStatus repeat(const std::string& from, const std::string& to) const {
    return repeat_file(path(from).c_str(), path(to).c_str());
  }

  ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(RepeatFileTest, IsALinkInAFolderThatIsMadeForIt) {
  write("first", "bytes");
  const WriteStatus status = repeat("first", "a/b/second");
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(status.linked);
  EXPECT_EQ(read("a/b/second"), "bytes");
  EXPECT_EQ(fs::hard_link_count(path("first")), 2U);
}

TEST_F(RepeatFileTest, IsACopyWhereAFileHasTheNameAlready) {
  const std::string large(200'000, 'x');
  write("first", large);
  write("second", "something older");
  const WriteStatus status = repeat("first", "second");
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(status.linked);
  EXPECT_TRUE(status.replaced);
  EXPECT_EQ(read("second"), large);
  EXPECT_EQ(fs::hard_link_count(path("first")), 1U);
}

TEST_F(RepeatFileTest, SaysThatTheFirstIsMissing) {
  const WriteStatus status = repeat("first", "second");
  EXPECT_EQ(status.error_number, ENOENT);
  EXPECT_STREQ(status.step, "find the first file of the same tensor");
  EXPECT_FALSE(fs::exists(path("second")));
}

TEST_F(RepeatFileTest, FollowsNoLinkAndReadsNoFolder) {
  write("elsewhere", "secret");
  fs::create_symlink("elsewhere", path("first"));
  fs::create_directory(path("folder"));
  EXPECT_EQ(repeat("first", "second").error_number, ELOOP);
  EXPECT_EQ(repeat("folder", "second").error_number, EISDIR);
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("second"))));
}

TEST_F(RepeatFileTest, AFileThatWasReplacedSinceIsNotLinked) {
  write("first", "bytes");
  const int fd = ::open(path("first").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  write("other", "other bytes");
  fs::rename(path("other"), path("first"));
  EXPECT_EQ(link_open_file(fd, path("first").c_str(), path("second").c_str()), ENOENT);
  EXPECT_FALSE(fs::exists(path("second")));
  ::close(fd);
}

}  // namespace
}  // namespace ait::record
