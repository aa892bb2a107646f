#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ait {
namespace {

TEST(Error, TextNamesPathMessageAndByte) {
  const auto error = Error(ErrorCode::kCorrupt, "x.npy", 12)
                     << "the header is cut off after " << 7u << " bytes";
  EXPECT_EQ(error.text(), "x.npy: the header is cut off after 7 bytes (at byte 12)");
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error.path(), "x.npy");
  EXPECT_EQ(error.offset_bytes(), 12u);
}

TEST(Error, TextLeavesOutWhatIsNotKnown) {
  EXPECT_EQ((Error(ErrorCode::kUsage) << "nothing to compare").text(), "nothing to compare");
  EXPECT_EQ((Error(ErrorCode::kNotFound, "a") << "no such file").text(), "a: no such file");
}

TEST(Error, TextIsOneLineWhateverAFileSays) {
  const auto error = Error(ErrorCode::kCorrupt, "a\nb") << "name \x1b[31mred\r\n"
                                                        << std::string_view("\0", 1);
  EXPECT_EQ(error.text(), "a\\x0ab: name \\x1b[31mred\\x0d\\x0a\\x00");
}

TEST(Error, TextOfAHugeMessageIsCut) {
  const auto error = Error(ErrorCode::kCorrupt) << std::string(1'000'000, 'x');
  EXPECT_LT(error.text().size(), 3000u);
}

TEST(Error, PassesThroughResult) {
  const auto read = [](bool good) -> Result<int> {
    if (good) return 3;
    return fail(Error(ErrorCode::kRefused) << "it would run code");
  };
  EXPECT_EQ(*read(true), 3);
  ASSERT_FALSE(read(false).has_value());
  EXPECT_EQ(read(false).error().code(), ErrorCode::kRefused);
  EXPECT_EQ(read(false).error().message(), "it would run code");
}

TEST(Printable, KeepsTextAndUtf8AndShowsControlBytes) {
  EXPECT_EQ(printable("weight.0 äß"), "weight.0 äß");
  EXPECT_EQ(printable("\t\x7f"), "\\x09\\x7f");
}

TEST(Printable, CutsLongTextAndSaysSo) {
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(SystemMessage, SpeaksWords) { EXPECT_EQ(system_message(ENOSPC), "No space left on device"); }

}  // namespace
}  // namespace ait
