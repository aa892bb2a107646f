#include "base/text_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../launch/scratch_folder.h"

namespace ait {
namespace {

namespace fs = std::filesystem;

class TextFileTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return scratch_ / name; }

  std::string file(const std::string& name, const std::string& content) const {
    return scratch_.file(name, content);
  }

  const ScratchFolder scratch_;
};

Error failure(const std::string& path, size_t max_bytes = 100) {
  const auto text = read_text(path, max_bytes);
  return text ? Error(ErrorCode::kUsage) << "was read" : text.error();
}

TEST_F(TextFileTest, HoldsTheWholeFileAndRoomForAParser) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 100000}) {
    const std::string content(bytes, 'x');
    const auto text = read_text(file("x", content), bytes);
    ASSERT_TRUE(text.has_value()) << bytes;
    EXPECT_EQ(*text, content);
    EXPECT_GE(text->capacity(), bytes + kTextPaddingBytes);
  }
}

TEST_F(TextFileTest, FilesThatSayNothingOfTheirSizeAreReadToTheEnd) {
  const auto text = read_text("/proc/self/environ", size_t{16} << 20);
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, testing::HasSubstr("PATH="));
  EXPECT_EQ(failure("/proc/self/environ", 3).code(), ErrorCode::kUnsupported);
}

TEST_F(TextFileTest, RefusesMoreThanTheLimitAndNamesIt) {
  const Error error = failure(file("x", std::string(101, 'x')));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error.path(), at("x"));
  EXPECT_EQ(error.message(), "is larger than 100 bytes, more than such a file can be");
  // Without storing or reading it.
  file("sparse", "");
  fs::resize_file(at("sparse"), uintmax_t{1} << 40);
  EXPECT_EQ(failure(at("sparse"), size_t{2} << 20).message(),
            "is larger than 2 MiB, more than such a file can be");
}

TEST_F(TextFileTest, IsNotHeldUpByWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(failure(at("fifo")).text(), at("fifo") + ": is a FIFO where a file is expected");
  EXPECT_EQ(failure("/dev/zero").message(), "is a device where a file is expected");
  EXPECT_EQ(failure(scratch_.path()).message(), "is a folder where a file is expected");
  for (const std::string& path : {at("fifo"), std::string("/dev/zero"), scratch_.path()})
    EXPECT_EQ(failure(path).code(), ErrorCode::kUnreadable);
}

TEST_F(TextFileTest, SaysThatAFileIsMissing) {
  EXPECT_EQ(failure(at("none")).code(), ErrorCode::kNotFound);
  EXPECT_EQ(failure(file("x", "") + "/below").code(), ErrorCode::kNotFound);
  EXPECT_EQ(failure("").code(), ErrorCode::kNotFound);
}

TEST_F(TextFileTest, SaysThatAFileMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  fs::permissions(file("x", "secret"), fs::perms::none);
  EXPECT_EQ(failure(at("x")).code(), ErrorCode::kUnreadable);
}

}  // namespace
}  // namespace ait
