#include "record/object_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "../launch/scratch_folder.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;

class ObjectFileTest : public testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static WriteStatus add(ObjectFile& file, const std::string& member) {
    return file.add(member.data(), member.size());
  }

  const ScratchFolder scratch_;
  const fs::path path_ = fs::path(scratch_.path()) / "new" / "info.json";
};

TEST_F(ObjectFileTest, IsADocumentAfterEachMember) {
  ObjectFile file;
  ASSERT_TRUE(file.create(path_.c_str()).ok());
  EXPECT_EQ(read(path_), "{\n}");
  ASSERT_TRUE(add(file, "\"a\": 1").ok());
  EXPECT_EQ(read(path_), "{\n\"a\": 1\n}");
  ASSERT_TRUE(add(file, "\"b\": [2,\n3]").ok());
  EXPECT_EQ(read(path_), "{\n\"a\": 1,\n\"b\": [2,\n3]\n}");
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
}

TEST_F(ObjectFileTest, LeavesWhatHasItsNameAlone) {
  fs::create_directories(path_.parent_path());
  std::ofstream(path_) << "mine";
  ObjectFile file;
  EXPECT_EQ(file.create(path_.c_str()).error_number, EEXIST);
  EXPECT_EQ(read(path_), "mine");
}

TEST_F(ObjectFileTest, FollowsNoLink) {
  fs::create_directories(path_.parent_path());
  fs::create_symlink("elsewhere", path_);
  ObjectFile file;
  EXPECT_FALSE(file.create(path_.c_str()).ok());
  EXPECT_FALSE(fs::exists(path_.parent_path() / "elsewhere"));
}

TEST_F(ObjectFileTest, IsADocumentWhereThereIsNoRoomForMore) {
  // In a child, because a limit on the size of files cannot be raised again.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    ObjectFile file;
    bool good = file.create(path_.c_str()).ok() && add(file, "\"a\": 1").ok();
    const rlimit limit{64, 64};
    good = good && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    good = good && !add(file, "\"b\": \"" + std::string(200, 'b') + "\"").ok();
    good = good && add(file, "\"c\": 3").ok();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(path_), "{\n\"a\": 1,\n\"c\": 3\n}");
}

TEST_F(ObjectFileTest, SurvivesTheDeathOfItsProcess) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ObjectFile file;
    if (file.create(path_.c_str()).ok() && add(file, "\"a\": 1").ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read(path_), "{\n\"a\": 1\n}");
}

}  // namespace
}  // namespace ait::record
