#include "record/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../launch/scratch_folder.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  WriteStatus write(const fs::path& path, const std::string& text,
                    const WriteOptions& options = {}) {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    return write_file(path.c_str(), &part, 1, options);
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::recursive_directory_iterator(folder_), {}));
  }
  static mode_t mode(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  const ScratchFolder scratch_;
  const fs::path folder_{scratch_.path()};
};

TEST_F(AtomicFile, WritesItsPartsInOrder) {
  // More parts than one call takes, some of them empty.
  std::vector<std::string> texts;
  std::string whole;
  for (int i = 0; i < 5000; ++i) {
    texts.push_back(std::string(static_cast<size_t>(i % 7), static_cast<char>('a' + i % 26)));
    whole += texts.back();
  }
  std::vector<iovec> parts;
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  ASSERT_TRUE(write_file((folder_ / "x").c_str(), parts.data(), parts.size()).ok());
  EXPECT_EQ(read(folder_ / "x"), whole);
}

TEST_F(AtomicFile, WritesAnEmptyFile) {
  ASSERT_TRUE(write_file((folder_ / "x").c_str(), nullptr, 0).ok());
  EXPECT_EQ(fs::file_size(folder_ / "x"), 0u);
}

TEST_F(AtomicFile, CreatesFoldersAndKeepsOthersOut) {
  const mode_t old = ::umask(0);
  const WriteStatus status = write(folder_ / "a" / "b" / "c.bin", "text");
  ::umask(old);
  ASSERT_TRUE(status.ok()) << status.step;
  EXPECT_EQ(mode(folder_ / "a"), 0750u);
  EXPECT_EQ(mode(folder_ / "a" / "b"), 0750u);
  EXPECT_EQ(mode(folder_ / "a" / "b" / "c.bin"), 0640u);
}

TEST_F(AtomicFile, WorksWithRelativePaths) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  const bool here = write("x", "1").ok();
  const bool below = write("n/x", "2").ok();
  fs::current_path(before);
  EXPECT_TRUE(here && below);
  EXPECT_EQ(read(folder_ / "n" / "x"), "2");
}

TEST_F(AtomicFile, ReplacesAFileAndLeavesNothingElse) {
  ASSERT_TRUE(write(folder_ / "x", "a long old text").ok());
  ASSERT_TRUE(write(folder_ / "x", "new", {.sync = true}).ok());
  EXPECT_EQ(read(folder_ / "x"), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFile, SaysWhetherItTookTheNameOfAnother) {
  EXPECT_FALSE(write(folder_ / "x", "old").replaced);
  EXPECT_TRUE(write(folder_ / "x", "new").replaced);
  EXPECT_FALSE(write(folder_ / "y", "other").replaced);
  EXPECT_FALSE(write("/dev/null", "refused").replaced);
}

// Whoever counts files afterwards must come to the same number.
TEST_F(AtomicFile, CountsReplacedFilesExactlyWhereManyWriteOne) {
  constexpr int kWrites = 200;
  std::atomic<int> replaced = 0;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 4; ++i)
      writers.emplace_back([&] {
        for (int n = 0; n < kWrites; ++n)
          replaced += write(folder_ / std::to_string(n), "text").replaced ? 1 : 0;
      });
  }
  EXPECT_EQ(replaced, 3 * kWrites);
  EXPECT_EQ(entries(), size_t{kWrites});
}

TEST_F(AtomicFile, KeepsTheLongestNames) {
  const std::string name(255, 'n');
  ASSERT_TRUE(write(folder_ / name, "text").ok());
  EXPECT_EQ(read(folder_ / name), "text");
}

TEST_F(AtomicFile, LeavesNothingBehindWhenWritingFails) {
  // The kernel refuses to read from this address, as it would refuse to write to a full disk.
  const iovec parts[] = {{const_cast<char*>("text"), 4}, {reinterpret_cast<void*>(8), 4096}};
  const WriteStatus status = write_file((folder_ / "x").c_str(), parts, 2);
  EXPECT_EQ(status.error_number, EFAULT);
  EXPECT_STREQ(status.step, "write the file");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFile, SaysWhichStepFailed) {
  ASSERT_TRUE(write(folder_ / "file", "text").ok());
  EXPECT_EQ(write(folder_ / "file" / "x", "text").error_number, ENOTDIR);
  EXPECT_EQ(write(folder_, "text").error_number, EISDIR);
  EXPECT_EQ(write("/dev/null", "text").error_number, EINVAL);
  EXPECT_EQ(write("", "text").error_number, ENOENT);
  EXPECT_EQ(write(std::string(5000, 'x'), "text").error_number, ENAMETOOLONG);
  EXPECT_EQ(write(folder_ / std::string(300, 'x'), "text").error_number, ENAMETOOLONG);
  EXPECT_EQ(write("/proc/ait/x", "text").error_number, ENOENT);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFile, OpensNothingButRegularFilesAndWaitsForNobody) {
  const auto error_of = [](const std::string& path) {
    const int fd = open_regular_file(path.c_str(), O_RDWR | O_APPEND | O_CREAT);
    const int error = fd < 0 ? errno : 0;
    if (fd >= 0) ::close(fd);
    return error;
  };
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(write(folder_ / "file", "text").ok());
  fs::create_symlink("file", folder_ / "link");
  EXPECT_EQ(error_of(folder_ / "file"), 0);
  EXPECT_EQ(error_of(folder_ / "new"), 0);
  EXPECT_EQ(error_of(fifo), EINVAL);
  EXPECT_EQ(error_of("/dev/null"), EINVAL);
  EXPECT_EQ(error_of(folder_), EISDIR);
  EXPECT_EQ(error_of(folder_ / "link"), ELOOP);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(error_of(fifo), EINVAL);
  ::close(reader);
  EXPECT_EQ(open_regular_file(fifo.c_str(), O_RDONLY), -1);
}

TEST_F(AtomicFile, NeverTakesTheNumberOfAStandardStream) {
  const std::string path = folder_ / "lines";
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    ::_exit(open_for_lines(path.c_str()) > STDERR_FILENO ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(AtomicFile, NeverShowsHalfAFileToAReader) {
  const std::string versions[] = {std::string(100'000, 'a'), std::string(100'000, 'b')};
  ASSERT_TRUE(write(folder_ / "x", versions[0]).ok());
  std::vector<std::jthread> writers;
  for (const std::string& text : versions)
    writers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(write(folder_ / "x", text).ok());
    });
  for (int i = 0; i < 100; ++i) {
    const std::string seen = read(folder_ / "x");
    EXPECT_TRUE(seen == versions[0] || seen == versions[1]) << seen.size();
  }
  writers.clear();
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace ait::record
