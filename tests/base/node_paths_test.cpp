#include "base/node_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ait {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NodePaths : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ait_node_paths_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directories(folder_ / "n1/dumps");
    use_node_paths({"n0", "n1"});
    ::setenv("AIT_NODE", "n0", 1);
    ::setenv("AIT_NODE_FILES", folder_.c_str(), 1);
  }
  void TearDown() override {
    use_node_paths({});
    ::unsetenv("AIT_NODE");
    ::unsetenv("AIT_NODE_FILES");
    fs::remove_all(folder_);
  }

  fs::path folder_;
};

TEST_F(NodePaths, AreWhereTheEnvironmentSays) {
  std::ofstream(folder_ / "n1/dumps/x.bin") << "x";
  EXPECT_EQ(local_path("n0:/dumps/x.bin").value(), "/dumps/x.bin");
  EXPECT_EQ(local_path("n1:/dumps/x.bin").value(), (folder_ / "n1/dumps/x.bin").native());
  EXPECT_EQ(local_path("n1:/dumps/y.bin").value(), "/dumps/y.bin");
  EXPECT_EQ(local_path("n2:/dumps/x.bin").value(), "n2:/dumps/x.bin");
}

TEST_F(NodePaths, OfAFileThatCannotBeHadSayWhy) {
  for (const auto& [number, words] :
       {std::pair(" 13", "n1:/dumps/x.bin: cannot be opened for reading: Permission denied"),
        std::pair(" 2", "n1:/dumps/x.bin: no such file")}) {
    fs::remove(folder_ / "n1/dumps/x.bin");
    fs::create_symlink(number, folder_ / "n1/dumps/x.bin");
    const auto path = local_path("n1:/dumps/x.bin");
    ASSERT_FALSE(path);
    EXPECT_THAT(path.error().text(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace ait
