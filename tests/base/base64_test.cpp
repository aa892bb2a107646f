#include "base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ait {
namespace {

// The examples of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const std::string word = "foobar";
  size_t length = 0;
  for (const char* text : {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"}) {
    const std::string bytes = word.substr(0, length++);
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Z===", "====", "Zm9v\n", "Zm-v", "Zg==Zm9v", "Zm9v===="})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

RC_GTEST_PROP(Base64, GivesBackAnyBytes, (const std::string& bytes)) {
  RC_ASSERT(from_base64(to_base64(bytes)) == bytes);
}

}  // namespace
}  // namespace ait
