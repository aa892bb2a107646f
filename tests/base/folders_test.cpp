#include "base/folders.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "../launch/scratch_folder.h"

namespace ait {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FoldersTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return scratch_ / name; }

  const ScratchFolder scratch_;
  std::vector<std::string> made_;
};

TEST_F(FoldersTest, MakesWhatIsMissingAndSaysWhatThatWas) {
  fs::create_directory(at("a"));
  EXPECT_FALSE(make_folders(at("a/b/c"), 0750, made_));
  EXPECT_THAT(made_, ElementsAre(at("a/b"), at("a/b/c")));
  EXPECT_EQ(fs::status(at("a/b/c")).permissions() & fs::perms::others_all, fs::perms::none);
  made_.clear();
  EXPECT_FALSE(make_folders(at("a/b/c/"), 0750, made_)) << "it is there";
  EXPECT_THAT(made_, IsEmpty());
}

TEST_F(FoldersTest, TakesALinkToAFolderForOne) {
  fs::create_directory(at("real"));
  fs::create_directory_symlink(at("real"), at("link"));
  EXPECT_FALSE(make_folders(at("link/below"), 0750, made_));
  EXPECT_TRUE(fs::is_directory(at("real/below")));
}

TEST_F(FoldersTest, NamesTheFileThatHasTheNameOfAFolder) {
  std::ofstream(at("file")) << "x";
  for (const char* path : {"file", "file/below"}) {
    const auto obstacle = make_folders(at(path), 0750, made_);
    ASSERT_TRUE(obstacle) << path;
    EXPECT_EQ(obstacle->path, at("file"));
    EXPECT_EQ(obstacle->error_number, ENOTDIR);
  }
}

TEST_F(FoldersTest, SaysWhyAFolderCannotBeMade) {
  const auto obstacle = make_folders("/proc/self/below/more", 0750, made_);
  ASSERT_TRUE(obstacle);
  EXPECT_EQ(obstacle->path, "/proc/self/below");
  EXPECT_NE(obstacle->error_number, 0);
}

}  // namespace
}  // namespace ait
