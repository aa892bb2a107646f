// A folder of a test's own, gone when the test is over.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace ait::graph {

class TestFolder {
 public:
  TestFolder() {
    std::string name = testing::TempDir() + "graphXXXXXX";
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder for the test";
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name = "") const { return (path_ / name).string(); }

  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    EXPECT_TRUE(in) << name << " is not there";
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }

 private:
  std::filesystem::path path_;
};

}  // namespace ait::graph
