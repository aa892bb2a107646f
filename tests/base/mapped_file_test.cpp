#include "base/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "../launch/scratch_folder.h"

namespace ait {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return scratch_ / name; }

  std::string file(const std::string& name, const std::string& content) const {
    return scratch_.file(name, content);
  }

  const ScratchFolder scratch_;
  const fs::path folder_{scratch_.path()};
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  const auto opened = MappedFile::open(file("x", std::string("a\0b", 3)));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(text_of(**opened), std::string("a\0b", 3));
  EXPECT_EQ((*opened)->path(), at("x"));
}

TEST_F(MappedFileTest, OutlivesTheNameOfTheFile) {
  const auto opened = MappedFile::open(file("x", "kept"));
  ASSERT_TRUE(opened.has_value());
  fs::remove(at("x"));
  EXPECT_EQ(text_of(**opened), "kept");
}

TEST_F(MappedFileTest, HoldsFilesOfAnySize) {
  for (const size_t size : {1u, 4096u, 65536u, 65537u, 300000u}) {
    std::string content(size, 'x');
    content.back() = 'y';
    const auto opened = MappedFile::open(file("x", content));
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(text_of(**opened), content) << size;
  }
}

TEST_F(MappedFileTest, ASmallFileStaysWholeWhenItIsCut) {
  const auto opened = MappedFile::open(file("x", "all of it"));
  ASSERT_TRUE(opened.has_value());
  fs::resize_file(at("x"), 0);
  EXPECT_EQ(text_of(**opened), "all of it");
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  const auto opened = MappedFile::open(file("empty", ""));
  ASSERT_TRUE(opened.has_value());
  EXPECT_TRUE((*opened)->bytes().empty());
}

TEST_F(MappedFileTest, AMissingFileIsNotFound) {
  for (const std::string& path : {at("nowhere"), file("x", "") + "/below_a_file", std::string()}) {
    const auto opened = MappedFile::open(path);
    ASSERT_FALSE(opened.has_value()) << path;
    EXPECT_EQ(opened.error().code(), ErrorCode::kNotFound) << path;
    EXPECT_EQ(opened.error().path(), path);
  }
}

TEST_F(MappedFileTest, AFolderIsNamedAsOne) {
  const auto opened = MappedFile::open(folder_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnreadable);
  EXPECT_THAT(opened.error().text(), testing::HasSubstr("folder"));
}

TEST_F(MappedFileTest, AFifoNeitherHangsNorMaps) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  const auto opened = MappedFile::open(at("fifo"));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnreadable);
}

TEST_F(MappedFileTest, ADeviceIsNotAFile) {
  const auto opened = MappedFile::open("/dev/zero");
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnreadable);
}

// In a child process, because root, who may read everything, has to become somebody else first.
TEST_F(MappedFileTest, AnUnreadableFileSaysPermission) {
  constexpr uid_t kNobody = 65534;
  const std::string path = file("secret", "x");
  fs::permissions(path, fs::perms::none);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    const auto opened = MappedFile::open(path);
    const bool refused = !opened && opened.error().code() == ErrorCode::kUnreadable &&
                         opened.error().text().find("Permission denied") != std::string::npos;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MappedFileTest, ALoopOfLinksIsUnreadable) {
  fs::create_symlink(at("b"), at("a"));
  fs::create_symlink(at("a"), at("b"));
  const auto opened = MappedFile::open(at("a"));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnreadable);
}

Result<void> fill_with_x(std::span<std::byte> bytes) {
  std::memset(bytes.data(), 'x', bytes.size());
  return {};
}

TEST_F(MappedFileTest, ATemporaryHoldsWhatItWasFilledWith) {
  const auto made = MappedFile::temporary(5000, fill_with_x);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(text_of(**made), std::string(5000, 'x'));
}

TEST_F(MappedFileTest, ATemporaryOfNoBytesIsEmpty) {
  const auto made = MappedFile::temporary(0, [](std::span<std::byte>) { return Result<void>(); });
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE((*made)->bytes().empty());
}

TEST_F(MappedFileTest, ATemporaryPassesOnWhatWentWrongWhileFilling) {
  const auto made = MappedFile::temporary(8, [](std::span<std::byte>) -> Result<void> {
    return fail(Error(ErrorCode::kCorrupt) << "the stream ended early");
  });
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message(), "the stream ended early");
}

class TemporaryFolder : public MappedFileTest {
 protected:
  explicit TemporaryFolder() {
    if (const char* folder = std::getenv("TMPDIR")) before_ = folder;
  }
  ~TemporaryFolder() override {
    if (before_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before_.c_str(), 1);
  }
  std::string before_;
};

TEST_F(TemporaryFolder, IsTheOneOfTheEnvironmentAndStaysClean) {
  ::setenv("TMPDIR", folder_.c_str(), 1);
  const auto made = MappedFile::temporary(100, fill_with_x);
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ((*made)->path(), folder_.string());
}

TEST_F(TemporaryFolder, ThatDoesNotExistIsAnErrorThatNamesIt) {
  ::setenv("TMPDIR", at("nowhere").c_str(), 1);
  const auto made = MappedFile::temporary(100, fill_with_x);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnwritable);
  EXPECT_EQ(made.error().path(), at("nowhere"));
}

TEST_F(TemporaryFolder, GivesNoMoreThanHalfOfItsRoom) {
  ::setenv("TMPDIR", folder_.c_str(), 1);
  const uintmax_t free = fs::space(folder_).available;
  const auto made = MappedFile::temporary(free / 4 * 3, fill_with_x);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnwritable);
  EXPECT_THAT(made.error().text(), testing::HasSubstr("which is more than half of the "));
  EXPECT_THAT(made.error().text(), testing::HasSubstr("TMPDIR"));
  EXPECT_THAT(made.error().text(), testing::HasSubstr("AIT_MAX_TEMPORARY_BYTES"));
}

TEST_F(TemporaryFolder, GivesAsMuchAsTheEnvironmentSays) {
  const auto made_with = [](const char* limit, size_t bytes) {
    ::setenv("AIT_MAX_TEMPORARY_BYTES", limit, 1);
    const auto made = MappedFile::temporary(bytes, fill_with_x);
    ::unsetenv("AIT_MAX_TEMPORARY_BYTES");
    return made ? std::string("made") : made.error().message();
  };
  EXPECT_EQ(made_with("100", 100), "made");
  EXPECT_EQ(made_with("", 100), "made");
  EXPECT_EQ(made_with("100", 101),
            "is not used for 101 temporary bytes, which is more than AIT_MAX_TEMPORARY_BYTES=100 "
            "allows");
  EXPECT_EQ(made_with("10G", 101),
            "is not used for 101 temporary bytes: AIT_MAX_TEMPORARY_BYTES=10G is not a number of "
            "bytes");
}

TEST_F(TemporaryFolder, WithoutRoomIsAnErrorNotACrash) {
  const auto made = MappedFile::temporary(size_t{1} << 60, fill_with_x);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnwritable);
  EXPECT_THAT(made.error().text(), testing::HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace ait
