#include "opcheck/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Words, OfIdsAreNumbersWithLinesBetweenThem) {
  const auto ids = parse_id_list({"24_1", "2_3_5", "0"});
  ASSERT_TRUE(ids);
  EXPECT_THAT(*ids, ElementsAre(ElementsAre(24, 1), ElementsAre(2, 3, 5), ElementsAre(0)));
  for (const char* wrong : {"", "_", "1_", "_1", "1__2", "a", "1-2", "-1", "99999999999999999999"})
    EXPECT_THAT(parse_id_list({wrong}).error().text(), HasSubstr("give ids as 24_1,2_3_5"))
        << wrong;
}

TEST(Words, OfMetricsAreTheDocuments) {
  const auto metrics = parse_metrics({"kl", "abs"});
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->kl && metrics->absolute && !metrics->cosine);
  EXPECT_TRUE(parse_metrics({"cos_sim"})->cosine);
  EXPECT_THAT(parse_metrics({"cos"}).error().text(), HasSubstr("give abs, cos_sim or kl"));
}

TEST(Words, OfMemoryAreGibibytes) {
  EXPECT_EQ(parse_memory("").value(), 0u);
  EXPECT_EQ(parse_memory("0.5").value(), size_t{1} << 29);
  for (const char* wrong : {"0", "-1", "nan", "inf", "8G", "1e99", " 8"})
    EXPECT_THAT(parse_memory(wrong).error().text(), HasSubstr("a number of GiB")) << wrong;
}

TEST(Words, OfADeviceAreANumber) {
  EXPECT_EQ(parse_device("").value(), 0);
  EXPECT_EQ(parse_device("7").value(), 7);
  for (const char* wrong : {"x", "-1", "1.5", "99999999999"})
    EXPECT_THAT(parse_device(wrong).error().text(), HasSubstr("is an invalid int value")) << wrong;
}

}  // namespace
}  // namespace ait::opcheck
