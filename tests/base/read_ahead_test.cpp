#include "base/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text_file.h"

namespace ait {
namespace {

using std::chrono::steady_clock;

constexpr size_t kBytes = size_t{4} << 20;

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() { std::filesystem::create_directories(folder_); }
  ~ReadAheadTest() override { std::filesystem::remove_all(folder_); }

  // A file of which nothing is in memory; empty where the file system keeps it there.
  std::string cold_file(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << std::string(kBytes, 'x');
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    return is_in_memory(path) ? "" : path;
  }

  // Its last page. To try to read it would be to ask for it.
  static bool is_in_memory(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    constexpr size_t kPage = 4096;
    void* page = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file.get(), kBytes - kPage);
    unsigned char state = 0;
    const bool known = page != MAP_FAILED && ::mincore(page, kPage, &state) == 0;
    if (page != MAP_FAILED) ::munmap(page, kPage);
    return known && (state & 1) != 0;
  }

  static bool comes(const std::string& path) {
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (!is_in_memory(path) && steady_clock::now() < end) ::usleep(1000);
    return is_in_memory(path);
  }

  const std::string folder_ = testing::TempDir() + "read_ahead." + std::to_string(::getpid());
};

TEST_F(ReadAheadTest, WhatIsWantedComes) {
  const std::string one = cold_file("one"), other = cold_file("other");
  if (one.empty() || other.empty()) GTEST_SKIP() << "files here are always in memory";
  ReadAhead ahead;
  ahead.want({folder_ + "/missing", folder_, one});
  ahead.want({other});
  EXPECT_TRUE(comes(one));
  EXPECT_TRUE(comes(other));
}

TEST_F(ReadAheadTest, AsMuchAsAllowedUntilItIsTaken) {
  const std::string one = cold_file("one"), other = cold_file("other");
  if (one.empty() || other.empty()) GTEST_SKIP() << "files here are always in memory";
  ReadAhead ahead(1);
  ahead.want({one});
  ASSERT_TRUE(comes(one));
  ::usleep(50000);  // so that what was asked for is counted
  ahead.want({other});
  ::usleep(100000);
  EXPECT_FALSE(is_in_memory(other));
  ahead.take();
  EXPECT_TRUE(comes(other));
}

// Nobody looks at every file of a dump that is in memory, but what is not there is seen soon.
TEST_F(ReadAheadTest, AfterManyInMemorySomeAreLookedAtUntilOneIsNot) {
  constexpr size_t kCold = 24;
  std::vector<std::string> cold;
  for (size_t i = 0; i < kCold; ++i) cold.push_back(cold_file(std::to_string(i)));
  if (cold[0].empty()) GTEST_SKIP() << "files here are always in memory";
  const std::string warm = folder_ + "/warm";
  std::ofstream(warm) << "x";
  ReadAhead ahead(kCold * kBytes * 2);
  for (int i = 0; i < 100; ++i) {
    ahead.want({warm});
    ::usleep(1000);
    ahead.take();
  }
  for (const std::string& path : cold) {
    ahead.want({path});
    ::usleep(20000);  // so that it is seen before the next is wanted
  }
  for (size_t i = 8; i < kCold; ++i) EXPECT_TRUE(comes(cold[i])) << i;
  EXPECT_FALSE(std::all_of(cold.begin(), cold.end(), is_in_memory));
}

TEST_F(ReadAheadTest, WhatIsTakenBeforeItsTurnCountsNothing) {
  ReadAhead ahead;
  for (int i = 0; i < 1000; ++i) {
    ahead.want({folder_ + "/missing"});
    ahead.want({});
    ahead.take();
    ahead.take();
  }
}

}  // namespace
}  // namespace ait
