#include "base/user_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace ait {
namespace {

namespace fs = std::filesystem;

class UserCacheTest : public testing::Test {
 protected:
  UserCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "ait_cache_XXXXXX").string();
    home_ = ::mkdtemp(pattern.data());
    folder_ = home_ / "cache/ait";
  }
  ~UserCacheTest() override {
    std::error_code ignored;
    fs::permissions(home_, fs::perms::owner_all, ignored);
    fs::remove_all(home_, ignored);
  }

  static mode_t mode_of(const fs::path& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  fs::path home_;
  fs::path folder_;
};

TEST_F(UserCacheTest, GivesBackWhatWasWrittenAndIsTheUsersAlone) {
  const UserCache cache(folder_.native());
  EXPECT_FALSE(cache.read("a", 100));
  ASSERT_TRUE(cache.write("a", "one"));
  ASSERT_TRUE(cache.write("a", "two"));
  EXPECT_EQ(cache.read("a", 100), "two");
  EXPECT_FALSE(cache.read("a", 2));  // larger than such a file can be
  EXPECT_EQ(mode_of(folder_), 0700U);
  EXPECT_EQ(mode_of(folder_ / "a"), 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing temporary is left
}

TEST_F(UserCacheTest, IsSilentWhereNothingCanBeWritten) {
  std::ofstream(home_ / "file") << "";
  EXPECT_FALSE(UserCache((home_ / "file/ait").native()).write("a", "one"));
  EXPECT_FALSE(UserCache((home_ / "file/ait").native()).read("a", 100));
  EXPECT_FALSE(UserCache("/proc/ait").write("a", "one"));
  EXPECT_FALSE(UserCache("").write("a", "one"));
  EXPECT_FALSE(UserCache("").read("a", 100));
  EXPECT_FALSE(UserCache("/dev/full").write("a", "one"));
}

TEST_F(UserCacheTest, LeavesWhatOthersCouldHaveWritten) {
  const UserCache cache(folder_.native());
  ASSERT_TRUE(cache.write("a", "one"));
  fs::permissions(folder_ / "a", fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(cache.read("a", 100));
  ASSERT_TRUE(cache.write("a", "one"));
  EXPECT_TRUE(cache.read("a", 100));
  fs::create_symlink("a", folder_ / "b");
  EXPECT_FALSE(cache.read("b", 100));
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.read("a", 100));
  EXPECT_FALSE(cache.write("a", "two"));
}

TEST_F(UserCacheTest, RemovesWhatWasNotUsedForLongest) {
  const UserCache cache(folder_.native(), 250);
  const std::string bytes(100, 'x');
  const auto age = [&](const char* name, int hours) {
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  ASSERT_TRUE(cache.write("a", bytes));
  ASSERT_TRUE(cache.write("b", bytes));
  age("a", 3);
  age("b", 2);
  ASSERT_TRUE(cache.read("a", 1000));  // it was used later than b now
  std::ofstream(folder_ / "c.1.2.tmp") << "left behind";
  age("c.1.2.tmp", 30);
  ASSERT_TRUE(cache.write("c", bytes));
  EXPECT_TRUE(cache.read("a", 1000));
  EXPECT_FALSE(cache.read("b", 1000));
  EXPECT_TRUE(cache.read("c", 1000));
  EXPECT_FALSE(fs::exists(folder_ / "c.1.2.tmp"));
  EXPECT_FALSE(cache.write("d", std::string(300, 'x')));  // larger than all may be together
}

TEST_F(UserCacheTest, ShowsOneOfTheFilesThatSeveralWriteAtOnce) {
  const UserCache cache(folder_.native());
  ASSERT_TRUE(cache.write("a", std::string(100'000, '0')));
  std::vector<std::thread> writers;
  for (const char c : {'1', '2', '3', '4'})
    writers.emplace_back([&cache, c] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(cache.write("a", std::string(100'000, c)));
    });
  for (int i = 0; i < 100; ++i) {
    const auto read = cache.read("a", 1'000'000);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, std::string(100'000, read->front()));
  }
  for (std::thread& writer : writers) writer.join();
}

TEST_F(UserCacheTest, LiesWhereTheEnvironmentSaysUnlessItIsSwitchedOff) {
  const auto with = [&](const char* off, const char* cache, const char* home) {
    const auto set = [](const char* name, const char* value) {
      value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    };
    std::vector<std::pair<const char*, std::optional<std::string>>> before;
    for (const char* name : {"AIT_CACHE", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before.emplace_back(name,
                          value == nullptr ? std::nullopt : std::optional<std::string>(value));
    }
    set("AIT_CACHE", off);
    set("XDG_CACHE_HOME", cache);
    set("HOME", home);
    const UserCache found = UserCache::of_user();
    for (const auto& [name, value] : before) set(name, value ? value->c_str() : nullptr);
    return found;
  };
  const std::string at = home_.native();
  EXPECT_TRUE(with(nullptr, (at + "/x").c_str(), "/proc").write("a", "one"));
  EXPECT_TRUE(fs::exists(home_ / "x/ait/a"));
  EXPECT_TRUE(with("1", "not/absolute", at.c_str()).write("a", "one"));
  EXPECT_TRUE(fs::exists(home_ / ".cache/ait/a"));
  EXPECT_FALSE(with("0", (at + "/x").c_str(), at.c_str()).is_usable());
  EXPECT_FALSE(with(nullptr, nullptr, nullptr).is_usable());
  EXPECT_FALSE(with(nullptr, "", "").is_usable());
}

}  // namespace
}  // namespace ait
